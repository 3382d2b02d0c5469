"""Data files and their metrics next to the official runtime and PyIceberg, both ways.

Variants are compared in test_variants. Not compared with PyIceberg: what only version 3 has, as it writes none.
"""

import math
import struct
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.datafiles.file.footer import read_physical_schema
from bergline.datafiles.read.reader import read_plan
from bergline.datafiles.write.write_spec import write_spec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.types import GeographyType, GeometryType, NestedField
from bergline.scan.plan import PlannedFile
from support.fixtures.every_type import V3_ONLY, comparable, every_type_rows, every_type_schema
from support.servers.peers import OfficialRuntime

JAVA = """
def plain(numbers):
    return {} if numbers is None else {str(e.getKey()): value(e.getValue()) for e in numbers.entrySet()}

def value(found):
    return found if isinstance(found, int) else jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(found).hex()

def described(m):
    return {
        "record_count": m.recordCount(),
        "column_sizes": plain(m.columnSizes()),
        "value_counts": plain(m.valueCounts()),
        "null_value_counts": plain(m.nullValueCounts()),
        "nan_value_counts": plain(m.nanValueCounts()),
        "lower_bounds": plain(m.lowerBounds()),
        "upper_bounds": plain(m.upperBounds()),
    }

iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)

def file_metrics(path):
    config = iceberg.MetricsConfig.forTable(table)
    return iceberg.parquet.ParquetUtil.fileMetrics(table.io().newInputFile(path), config)

def append(path, size):
    builder = iceberg.DataFiles.builder(table.spec()).withPath(path).withFileSizeInBytes(size).withFormat("PARQUET")
    table.newAppend().appendFile(builder.withMetrics(file_metrics(path)).build()).commit()

def copy(path):
    writer = iceberg.data.GenericFileWriterFactory.Builder(table).build().newDataWriter(
        iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(table.io().newOutputFile(path)), table.spec(), None)
    rows = iceberg.data.IcebergGenerics.read(table).build()
    iterator = rows.iterator()
    while iterator.hasNext():
        writer.write(iterator.next())
    rows.close()
    writer.close()
    return writer.toDataFile()
"""


def described(file: DataFile) -> dict[str, Any]:
    """The metrics of an entry as the Java code above gives them."""

    def plain(numbers: dict[int, Any] | None) -> dict[str, Any]:
        return {str(i): v.hex() if isinstance(v, bytes) else v for i, v in (numbers or {}).items()}

    names = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    return {"record_count": file.record_count, **{n: plain(getattr(file, n)) for n in names}}


def write(table: Table, rows: pa.Table) -> DataFile:
    with DataFileWriter(table.io, write_spec(table.metadata), "ours") as writer:
        writer.write(rows)
        (file,) = writer.finish()
        return file


@pytest.fixture
def every(lake: Lake, tmp_path: Path, official_runtime: OfficialRuntime) -> Table:
    """A v3 table with a column of every type, at hand in the official runtime."""
    table = lake.create_table("db.every", every_type_schema(), properties={"format-version": "3"})
    official_runtime.use_catalog(tmp_path / "catalog.db", tmp_path / "warehouse", lake.name)
    return table


METRICS = {
    "default": {},
    "full": {"write.metadata.metrics.default": "full"},
    "counts": {"write.metadata.metrics.default": "counts", "write.metadata.metrics.column.string": "truncate(2)"},
    "none": {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.point.y": "full"},
    "few": {"write.metadata.metrics.max-inferred-column-defaults": "30"},
}


@pytest.mark.official
def test_java_reads_our_file_and_we_read_what_it_writes(every: Table, official_runtime: OfficialRuntime) -> None:
    ours = write(every, every_type_rows())
    copied = f"{every.location}/data/java.parquet"
    size = official_runtime.python(
        JAVA + "append(path, size)\ntable.refresh()\nresult = copy(copied).fileSizeInBytes()",
        name=f"{every.name.namespace[0]}.every",
        path=ours.file_path,
        size=ours.file_size_in_bytes,
        copied=copied,
    )
    plan = every.refresh().scan().plan()
    assert comparable(read_plan(every.io, plan)) == comparable(every_type_rows())
    theirs = msgspec.structs.replace(ours, file_path=copied, file_size_in_bytes=size)
    plan = msgspec.structs.replace(plan, files=(PlannedFile(theirs, 1),))
    assert comparable(read_plan(every.io, plan)) == comparable(every_type_rows())


@pytest.mark.official
@pytest.mark.parametrize("properties", METRICS.values(), ids=METRICS)
def test_metrics_are_those_of_java(every: Table, official_runtime: OfficialRuntime, properties: dict[str, str]) -> None:
    if properties:
        every.set_properties(properties)
    ours = write(every, every_type_rows())
    code = """
found = described(file_metrics(path))
append(path, size)
table.refresh()
written = copy(copied)
result = [found, described(written), list(written.splitOffsets())]
"""
    footer, written, offsets = official_runtime.python(
        JAVA + code,
        name=f"{every.name.namespace[0]}.every",
        path=ours.file_path,
        size=ours.file_size_in_bytes,
        copied=f"{every.location}/data/java.parquet",
    )
    expected = described(ours)
    assert set(written.pop("column_sizes")) == set(expected["column_sizes"])
    assert written == {n: v for n, v in expected.items() if n != "column_sizes"}
    assert offsets == list(ours.split_offsets or ())
    floats = {str(f.id) for f in every.schema.ids.values() if str(f.type) in {"float", "double"}}
    for name, numbers in footer.items():
        if name == "nan_value_counts":
            assert numbers == {}  # footers do not count them
        elif name.endswith("bounds"):
            # and know neither the sign of zero nor, beside NaN, any bound
            assert without(numbers, floats) == without(expected[name], floats)
        else:
            assert numbers == expected[name]


def without(numbers: dict[str, Any], ids: set[str]) -> dict[str, Any]:
    return {i: v for i, v in numbers.items() if i not in ids}


@pytest.mark.official
def test_spark_sees_our_rows(every: Table, official_runtime: OfficialRuntime, lake: Lake) -> None:
    without = {"time", "timestamp_ns", "timestamptz_ns"}  # types that Spark lacks
    table = lake.create_table("db.spark", every_type_schema(without=without))
    rows = every_type_rows(without=without)
    table.append(rows)
    (counts,) = official_runtime.sql(
        "SELECT count(*), count(uuid), max(decimal38), max(date), min(fixed) FROM db.spark"
    )
    assert counts[:2] == (4, 3)
    assert str(counts[3]) == "9999-12-31"
    assert official_runtime.sql("SELECT uuid FROM db.spark WHERE int = 1") == [
        ("80000000-0000-0000-0000-000000000001",)
    ]
    official_runtime.sql("INSERT INTO db.spark SELECT * FROM db.spark")
    assert comparable(table.refresh().scan().to_arrow()) == sorted(comparable(rows) * 2)


def test_pyiceberg_reads_our_file_and_we_read_what_it_writes(lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.t", every_type_schema(without=V3_ONLY))
    rows = every_type_rows(without=V3_ONLY)
    table.append(rows)
    theirs = pyiceberg.load_table("db.t")
    found = theirs.scan().to_arrow()
    assert comparable(found.select(rows.column_names)) == comparable(rows)
    theirs.append(found)
    assert comparable(table.refresh().scan().to_arrow()) == sorted(comparable(rows) * 2)


def shape(kind: int, *parts: Any, order: str = "<") -> bytes:
    """Well-known binary of counts, coordinates and shapes."""
    data = struct.pack(f"{order}BI", order == "<", kind)
    for part in parts:
        data += (
            part if isinstance(part, bytes) else struct.pack(f"{order}{'I' if isinstance(part, int) else 'd'}", part)
        )
    return data


POINT, NOWHERE = shape(1, 1.0, 2.0), shape(1, math.nan, math.nan)
LINE = shape(2, 2, 1.0, 2.0, 3.0, -4.0, order=">")
SHAPES = {
    "points": [POINT, shape(1, -7.0, 8.0), None],
    "z": [shape(1001, 1.0, 2.0, 3.0), shape(1001, 0.0, 5.0, -3.0)],
    "m": [shape(2001, 1.0, 2.0, 3.0)],
    "zm": [shape(3001, 1.0, 2.0, 3.0, 4.0, order=">")],
    "mixed": [shape(1001, 1.0, 2.0, 3.0), POINT],
    "lines": [LINE, shape(3, 1, 4, 0.0, 0.0, 9.0, 9.0, 9.0, 0.0, 0.0, 0.0)],
    "collections": [shape(7, 2, POINT, LINE), shape(4, 1, shape(1, 5.0, 50.0))],
    "empty": [NOWHERE, None],
    "partly empty": [NOWHERE, POINT],
}


@pytest.mark.official
def test_java_reads_our_shapes_and_has_the_same_bounds(
    lake: Lake, tmp_path: Path, official_runtime: OfficialRuntime
) -> None:
    types = (GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "spherical"))
    schema = Schema(fields=tuple(NestedField(n, f"c{n}", False, type_) for n, type_ in enumerate(types, 1)))
    official_runtime.use_catalog(tmp_path / "catalog.db", tmp_path / "warehouse", lake.name)
    for n, (name, shapes) in enumerate(SHAPES.items()):
        table = lake.create_table(f"db.t{n}", schema, properties={"format-version": "3"})
        column = pa.array(shapes, pa.binary())
        table.append(pa.table({"c1": column, "c2": column}))
        ours = described(table.scan().plan().files[0].file)
        path = f"file:{tmp_path}/java{n}.parquet"
        theirs = official_runtime.python(JAVA + "result = described(copy(path))", name=f"db.t{n}", path=path)
        for counts in ("value_counts", "null_value_counts"):
            assert ours[counts] == theirs[counts], name
        for bounds in ("lower_bounds", "upper_bounds"):
            # Java bounds x and y, and no geographies
            assert {i: point[:32] for i, point in ours[bounds].items() if i == "1"} == theirs[bounds], name
        assert pq.read_table(path.removeprefix("file:")).column("c2").to_pylist() == shapes
        stored = read_physical_schema(table.io, path)
        assert [field.type for field in stored.fields] == list(types)
