"""Rows that change, with bergline beside the official Iceberg runtime: both sides in one run, on the same data files.

DELETE, UPDATE, MERGE and compaction, each on copies of the same tables (registered again under a name of their own).
Each side runs in fresh processes, by turns; a figure is the median of the rounds. `--small` shows that all works.
"""

from collections.abc import Iterator
from pathlib import Path

from bench_spark import BATCH, COLUMNS, print_table, rows_from, run_rounds
from bergline import Lake

SIDE = Path(__file__).with_name("rows_side.py")
FULL = {"rows": 10_000_000, "merged": 5_000_000, "source": 100_000, "small": 1000}
SMALL = {"rows": 100_000, "merged": 50_000, "source": 1000, "small": 50}
ROWS_IN_SMALL = 100
MERGE_ON_READ = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}


def cases(sizes: dict[str, int]) -> dict[str, str]:
    rows, merged, source = sizes["rows"], sizes["merged"], sizes["source"]
    modes = {"cow": "copy-on-write", "mor": "merge-on-read"}
    found = {}
    for version in ("v2", "v3"):
        found[f"delete {version}"] = f"DELETE 1 % of {rows:,} rows, merge-on-read, {version}"
        found[f"read {version}"] = f"read all columns after it, {version}"
    for mode, words in modes.items():
        found[f"update {mode}"] = f"UPDATE 1 % of {merged:,} rows, {words}"
        found[f"merge {mode}"] = f"MERGE {source:,} rows into {merged:,}, {words}"
    return found | {"compact": f"rewrite_data_files of {sizes['small']:,} small files"}


def make_tables(lake: Lake, sizes: dict[str, int]) -> None:
    """The tables whose copies are changed, written by bergline without Spark."""
    lake.create_namespace("db")
    for name, rows in (("deleted", sizes["rows"]), ("merged", sizes["merged"])):
        table = lake.create_table(f"db.{name}", COLUMNS)
        for first in range(0, rows, BATCH):
            table.append(rows_from(first, min(BATCH, rows - first)))
    small = lake.create_table("db.small", COLUMNS)
    for number in range(sizes["small"]):
        small.append(rows_from(number * ROWS_IN_SMALL, ROWS_IN_SMALL))


def copies(mark: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    yield f"delete_v2_{mark}", "deleted", MERGE_ON_READ
    yield f"delete_v3_{mark}", "deleted", MERGE_ON_READ
    for command in ("update", "merge"):
        yield f"{command}_cow_{mark}", "merged", {}
        yield f"{command}_mor_{mark}", "merged", MERGE_ON_READ
    yield f"small_{mark}", "small", {}
    yield "delete_v2_warm", "deleted", MERGE_ON_READ


def register_copies(lake: Lake, mark: str) -> None:
    """Tables of one process, with the data files of others."""
    for name, original, properties in copies(mark):
        if lake.table_exists(f"db.{name}"):
            lake.drop_table(f"db.{name}")
        copy = lake.register_table(f"db.{name}", lake.load_table(f"db.{original}").metadata_location)
        if properties:
            copy.set_properties(properties)
        if "_v3_" in name:
            copy.upgrade_format(3)


def main() -> None:
    sizes, (ours, theirs) = run_rounds(__doc__, FULL, SMALL, make_tables, script=SIDE, prepare=register_copies)
    print_table(cases(sizes), ours, theirs)
    print(f"\nPython driver at most {max(one['driver_mb'] for one in ours):.0f} MB (bergline)")


if __name__ == "__main__":
    main()
