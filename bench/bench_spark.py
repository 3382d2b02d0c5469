"""PySpark with bergline beside PySpark with the official Iceberg runtime and on plain Parquet files, all in one run.

The tables and their files are the same. Parts: `files` reads them and makes small appends, `tasks` appends from ever
more tasks, `wide` works on ever more columns, `large` appends many rows in a process that has done so before, `cold`
in one that has done nothing.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline import Lake, Table
from bergline.datafiles.write.write_spec import write_spec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.format.manifest.manifest import DataFile
from made_up import SCHEMA, AppendInManifests
from sides import Part, Sizes, make_parquet, run_parts

SIDE = Path(__file__).with_name("spark_side.py")
FULL = {
    "rows": 5_000_000, "parts": 2000, "appends": 30, "files": 20_000, "tasks": 1000, "columns": 501, "wide_rows": 10_000
}  # fmt: skip
QUICK = {"rows": 50_000, "parts": 100, "appends": 3, "files": 1000, "tasks": 20, "columns": 200, "wide_rows": 1000}
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


def make_rows(lake: Lake, name: str, rows: int) -> Table:
    """A table of so many rows, in files of half a million each."""
    table = lake.create_table(f"db.{name}", COLUMNS, properties={"write.delete.mode": "merge-on-read"})
    for first in range(0, rows, BATCH):
        table.append(rows_from(first, min(BATCH, rows - first)))
    return table


def make_tables(lake: Lake, sizes: Sizes, directory: Path) -> None:
    """The tables that are read, written by bergline without Spark."""
    lake.create_table("db.start", COLUMNS).append(rows_from(0, 1000))
    make_rows(lake, "rows", sizes["rows"])
    make_rows(lake, "deleted", sizes["rows"]).delete("part = 7")
    parts = lake.create_table("db.parts", COLUMNS, partition_by=["part"])
    parts.append(rows_from(0, sizes["parts"] * ROWS_IN_PART, sizes["parts"]))
    make_many_files(lake.create_table("db.many", SCHEMA), sizes["files"])
    make_parquet(lake, directory, ("start", "rows", "parts", "many"))


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


PARTS = {"files": Part(make_tables), "tasks": Part(), "wide": Part(), "large": Part(), "cold": Part()}

if __name__ == "__main__":
    run_parts(__doc__, PARTS, SIDE, FULL, QUICK)
