"""Rows that change, with bergline beside the official Iceberg runtime and, where they can, plain Parquet files.

Part `many`: DELETE, UPDATE and MERGE of 1 % of a table's rows, spread over all files and clustered, in every mode, and
the read after each, beside a read of the files without any deletes; compaction. Each works on a copy of the same table
(registered again under a name of its own). Part `few`: the same on tables of eight rows of many shapes.
"""

import sys
from pathlib import Path

import pyarrow as pa

from bench_spark import make_rows, rows_from
from bergline import Lake, Table
from row_changes import CHANGES, WARM, properties
from sides import Part, Sizes, make_parquet, run_parts

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.fixtures.add_deletes import add_deletes, equality_deletes

SIDE = Path(__file__).with_name("rows_side.py")
FULL = {"rows": 10_000_000, "merged": 5_000_000, "source": 100_000, "small": 1000, "again": 10}
QUICK = {"rows": 100_000, "merged": 50_000, "source": 1000, "small": 50, "again": 3}
ROWS_IN_SMALL = 100


def make_tables(lake: Lake, sizes: Sizes, directory: Path) -> None:
    """The tables whose copies are changed, written by bergline without Spark."""
    for name in ("rows", "merged"):
        make_rows(lake, name, sizes[name])
    small = lake.create_table("db.small", rows_from(0, 1).schema)
    for number in range(sizes["small"]):
        small.append(rows_from(number * ROWS_IN_SMALL, ROWS_IN_SMALL))
    deleted = copy_table(lake, "rows", "equality")
    add_deletes(deleted, equality_deletes(deleted, pa.table({"id": range(7, sizes["rows"], 100)}), [1]))
    make_parquet(lake, directory, ("rows", "merged"))


def copy_table(lake: Lake, original: str, name: str) -> Table:
    """A table with the data files of another."""
    return lake.register_table(f"db.{name}", lake.load_table(f"db.{original}").metadata_location)


def register_copies(lake: Lake, mark: str) -> None:
    """The tables that one process changes."""
    copy_table(lake, "small", f"small_{mark}")
    for change in (*CHANGES, WARM):
        table = copy_table(lake, change.original, f"{change.table}_{mark}")
        table.set_properties(properties(change.mode))
        if change.version > table.metadata.format_version:
            table.upgrade_format(change.version)


PARTS = {"many": Part(make_tables, register_copies), "few": Part()}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, SIDE, FULL, QUICK)
