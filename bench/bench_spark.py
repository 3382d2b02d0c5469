"""PySpark with bergline beside PySpark with the official Iceberg runtime and on plain Parquet files, all in one run.

The tables and their files are the same. Each side runs in fresh processes of its own with the same settings, by turns;
a figure is the median of the rounds. `--small` takes about a minute, with sizes that show only that everything works.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

import bergline
from bergline import Lake, Table
from bergline.format.manifest.manifest import DataFile
from bergline.parquet.write.write_spec import write_spec
from bergline.parquet.write.writer import DataFileWriter
from made_up import SCHEMA, AppendInManifests
from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support" / "servers"))
from peers import OfficialRuntime

SIDE = Path(__file__).with_name("spark_side.py")
FULL = {"rows": 5_000_000, "parts": 2000, "appends": 30, "files": 20_000}
SMALL = {"rows": 50_000, "parts": 100, "appends": 3, "files": 1000}
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("region", pa.string()),
        ("part", pa.int32()),
        ("amount", pa.float64()),
        ("note", pa.string()),
    ]
)
ROWS_IN_PART = 1000
BATCH = 500_000


def cases(sizes: dict[str, int]) -> dict[str, str]:
    rows, parts, files = sizes["rows"], sizes["parts"], sizes["files"]
    return {
        "start": "a new process to the first rows of a table",
        "first append": "append 100 rows, the first of a process",
        "append 100": "append 100 rows",
        "append": f"append {rows:,} rows",
        "append again": f"append {rows:,} rows to a table that has rows",
        "count": f"count(*) of {rows:,} rows",
        "one row": f"read one of {rows:,} rows, by a filter",
        "full scan": f"read all columns of {rows:,} rows",
        "filtered": f"read {parts // 40:,} partitions of {parts:,}, a file each, by a filter",
        "deleted": f"read {rows:,} rows, 1 % of them deleted by delete files",
        "small appends": f"{sizes['appends']} INSERTs of two rows each",
        "plan": f"plan {files:,} files",
        "few of many": f"read the 10 files of {files:,} that a filter needs",
        "open many": f"open {files:,} files for a query",
    }


def rows_from(first: int, count: int, parts: int = 100) -> pa.Table:
    """Rows like those that the sides append, from a number on."""
    ids = pa.array(range(first, first + count), pa.int64())
    text = pc.cast(ids, pa.string())
    part = pc.subtract(ids, pc.multiply(pc.divide(ids, parts), parts))
    columns = [
        ids,
        pc.cast(pc.add(pc.multiply(ids, 1000), 1_700_000_000_000_000), COLUMNS.field("ts").type),
        pc.binary_join_element_wise("region-", pc.cast(pc.bit_wise_and(ids, 7), pa.string()), ""),
        pc.cast(part, pa.int32()),
        pc.multiply(pc.cast(pc.bit_wise_and(pc.multiply(ids, 7919), 0xFFFF), pa.float64()), 0.015),
        pc.binary_join_element_wise("note number ", text, ""),
    ]
    return pa.Table.from_arrays(columns, schema=COLUMNS)


def make_tables(lake: Lake, sizes: dict[str, int]) -> None:
    """The tables that are read, written by bergline without Spark."""
    lake.create_namespace("db")
    lake.create_table("db.start", COLUMNS).append(rows_from(0, 1000))
    for name in ("rows", "deleted"):
        table = lake.create_table(f"db.{name}", COLUMNS, properties={"write.delete.mode": "merge-on-read"})
        for first in range(0, sizes["rows"], BATCH):
            table.append(rows_from(first, min(BATCH, sizes["rows"] - first)))
    lake.load_table("db.deleted").delete("part = 7")
    parts = lake.create_table("db.parts", COLUMNS, partition_by=["part"])
    parts.append(rows_from(0, sizes["parts"] * ROWS_IN_PART, sizes["parts"]))
    make_many_files(lake.create_table("db.many", SCHEMA), sizes["files"])


def make_parquet(lake: Lake, directory: Path) -> None:
    """The data files of the tables once more (hard links), as directories that Spark reads without a table."""
    for name in ("start", "rows", "parts", "many"):
        for planned in lake.load_table(f"db.{name}").scan().plan().files:
            file = planned.file
            source = Path(file.file_path.removeprefix("file://"))
            folder = directory / "parquet" / name / (f"part={file.partition[0]}" if file.partition else "")
            folder.mkdir(parents=True, exist_ok=True)
            os.link(source, folder / source.name)


def make_many_files(table: Table, files: int) -> None:
    """Two tiny files under many names (hard links), in manifests of a hundred; ten are of the second."""
    groups: list[list[DataFile]] = []
    (common,), (rare,) = (tiny_files(table, first) for first in (0, 10))
    for number in range(files):
        file = rare if number % (files // 10) == 0 else common
        source = Path(file.file_path.removeprefix("file://"))
        path = source.with_name(f"{number:08d}-{source.name}")
        os.link(source, path)
        if number % 100 == 0:
            groups.append([])
        groups[-1].append(msgspec.structs.replace(file, file_path=f"file://{path}"))
    table.commit(AppendInManifests(table, groups))


def tiny_files(table: Table, first: int) -> Sequence[DataFile]:
    """A file of ten rows, written and committed to nothing."""
    numbers = list(range(first, first + 10))
    rows = pa.table(dict.fromkeys(SCHEMA.names[:-1], numbers) | {"region": ["eu"] * 10}, schema=SCHEMA)
    with DataFileWriter(table.io, write_spec(table.metadata), f"tiny-{first}") as writer:
        writer.write(rows)
        return writer.finish()


def official_jars(directory: Path) -> str:
    """Where the official runtime's jars are on this machine; brought here if they are not."""
    with OfficialRuntime(directory / "official.txt") as runtime:
        jars: str = runtime.python("result = spark.sparkContext.getConf().get('spark.jars')")
    return ",".join(jar for jar in jars.split(",") if "iceberg" in jar or "sqlite" in jar)


def run_side(side: str, directory: Path, sizes: Any, mark: str, script: Path = SIDE) -> dict[str, Any]:
    """One fresh process: the seconds of each case, and the answers."""
    log = directory / f"log-{mark}.txt"
    started = time.time()
    with log.open("w") as errors:
        command = [sys.executable, str(script), side, str(directory), json.dumps(sizes), mark]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        sys.exit(f"{mark} failed: {log.read_text()[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    found["seconds"]["start"] = found.pop("ready") - started
    return found


def run_rounds(
    description: str | None,
    full: dict[str, int],
    small: dict[str, int],
    make_tables: Callable[[Lake, dict[str, int]], None],
    *,
    script: Path = SIDE,
    prepare: Callable[[Lake, str], None] | None = None,
    make_files: Callable[[Lake, Path], None] | None = None,
) -> tuple[dict[str, int], list[list[dict[str, Any]]]]:
    """All sides in fresh processes, by turns: the sizes asked for, and what the processes of each side found.

    `prepare` makes what one process needs, named by its mark; with `make_files` Parquet files are a third side.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="sizes that take about a minute")
    parser.add_argument("--rounds", type=int, default=None, help="processes of each side (3; 1 with --small)")
    given = parser.parse_args()
    sizes, rounds = (small, given.rounds or 1) if given.small else (full, given.rounds or 3)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
            make_tables(lake, sizes)
            sides = {"bergline": "bergline", "official": official_jars(directory)}
            if make_files is not None:
                make_files(lake, directory)
                sides["parquet"] = "parquet"
            found: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
            for number in range(rounds):
                for side in sides if number % 2 == 0 else reversed(sides):
                    mark = f"{side}_{number}"
                    if prepare is not None:
                        prepare(lake, mark)
                    found[side].append(run_side(sides[side], directory, sizes, mark, script))
                    print(f"round {number + 1} of {rounds}: {side} done", file=sys.stderr)
    for ours, *others in zip(*found.values(), strict=True):
        for other in others:
            same = {case: ours["answers"][case] for case in other["answers"]}
            assert same == other["answers"], (same, other["answers"])
    return sizes, list(found.values())


def print_table(words: dict[str, str], *sides: Sequence[dict[str, Any]]) -> None:
    """The seconds of bergline, the official runtime and, where they are given, of Parquet files."""
    heads = ["case", "bergline", "official runtime", "relative speed", "Parquet"][: 2 + len(sides)]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for case, said in words.items():
        rounds = [[one["seconds"][case] for one in side if case in one["seconds"]] for side in sides]
        mine, other, *plain = (statistics.median(found) if found else None for found in rounds)
        assert mine is not None
        assert other is not None
        files = "".join(" |" if found is None else f" {found:.2f} s |" for found in plain)
        print(f"| {said} | {mine:.2f} s | {other:.2f} s | {other / mine:.1f} |{files}")
        for peer, theirs in zip(("official runtime", "Parquet files"), rounds[1:], strict=False):
            if theirs:
                record(said, rounds[0], theirs, peer)


def main() -> None:
    sizes, sides = run_rounds(__doc__, FULL, SMALL, make_tables, make_files=make_parquet)
    print_table(cases(sizes), *sides)


if __name__ == "__main__":
    main()
