"""What footers say of the columns of files."""

import io
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake
from bergline.datafiles.file.annotations import annotated
from bergline.datafiles.file.footer import read_physical_schema, read_physical_schemas
from bergline.errors import FormatError
from bergline.format.schema.physical_schema import NO_ID, OTHER
from bergline.format.types.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.io.memory import MemoryFileIO
from support.fixtures.data_files import written_files
from support.fixtures.every_type import every_type_rows, every_type_schema


def written(schema: pa.Schema, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(schema.empty_table(), stream, **{"store_schema": False, **options})
    return stream.getvalue()


def found(data: bytes) -> StructType:
    files = MemoryFileIO()
    files.create("memory://f.parquet", data)
    return read_physical_schema(files, "memory://f.parquet")


def stored(*columns: tuple[str, pa.DataType], **options: Any) -> list[IcebergType]:
    return [f.type for f in found(written(pa.schema(list(columns)), **options)).fields]


@pytest.mark.parametrize("integers", [True, False])
def test_types_are_those_that_the_files_columns_have(integers: bool) -> None:
    columns = [
        ("i8", pa.int8()),
        ("i64", pa.int64()),
        ("d", pa.decimal128(12, 3)),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "Europe/Vienna")),
        ("date", pa.date32()),
        ("s", pa.large_string()),
        ("b", pa.binary()),
        ("fixed", pa.binary(7)),
    ]
    types = [INT, LONG, DecimalType(12, 3), TIMESTAMP, TIMESTAMPTZ, DATE, STRING, BINARY, FixedType(7)]
    assert stored(*columns, store_decimal_as_integer=integers) == types
    assert stored(*columns, store_schema=True, version="1.0") == types


@pytest.mark.parametrize(
    "type_",
    [
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.null()),
        *(pa.timestamp("ms"), pa.timestamp("ns"), pa.time64("us")),
    ],
)
def test_what_iceberg_has_no_type_for_is_none_of_its_types(type_: pa.DataType) -> None:
    assert stored(("a", type_)) == [OTHER]
    assert stored(("a", pa.list_(type_))) == [ListType(NO_ID, OTHER, False)]


def test_int96_is_none_of_its_types() -> None:
    data = written(pa.schema([("a", pa.timestamp("us"))]), use_deprecated_int96_timestamps=True)
    assert [f.type for f in found(data).fields] == [OTHER]


@pytest.mark.parametrize("compliant", [True, False])
def test_nested_columns_with_their_ids(compliant: bool) -> None:
    def field(name: str, type_: pa.DataType, field_id: int) -> pa.Field:
        return pa.field(name, type_, metadata={"PARQUET:field_id": str(field_id)})

    point = pa.struct([field("x", pa.int32(), 3), field("y", pa.string(), 4)])
    schema = pa.schema(
        [
            field("l", pa.list_(field("element", point, 2)), 1),
            field("m", pa.map_(field("key", pa.string(), 6).with_nullable(False), field("value", pa.int64(), 7)), 5),
            field("none", pa.int32(), -5),
        ]
    )
    inside = StructType((NestedField(3, "x", False, INT), NestedField(4, "y", False, STRING)))
    assert found(written(schema, use_compliant_nested_type=compliant)) == StructType(
        (
            NestedField(1, "l", False, ListType(2, inside, False)),
            NestedField(5, "m", False, MapType(6, STRING, 7, LONG, False)),
            NestedField(NO_ID, "none", False, INT),
        )
    )


def test_our_own_writer_says_what_its_files_say(lake: Lake) -> None:
    table = lake.create_table("db.t", every_type_schema(), properties={"format-version": "3"})
    (file,) = written_files(table, every_type_rows())
    assert file.physical_schema is not None
    lacking = {TIME, TIMESTAMP_NS, TIMESTAMPTZ_NS}
    columns = [
        f if f.type not in lacking else msgspec.structs.replace(f, type=OTHER) for f in file.physical_schema.fields
    ]
    assert read_physical_schema(table.io, file.file_path) == StructType(tuple(columns))


def test_schemas_of_any_size_are_parsed_once() -> None:
    columns = [pa.field(f"column number {n}", pa.int64()) for n in range(3000)]
    data = written(pa.schema(columns))
    assert len(data) > 128 * 1024
    assert len(found(data).fields) == 3000
    assert found(data) is found(data)  # what is known is not parsed again
    assert found(written(pa.schema(columns[:2999]))) != found(data)
    few = pa.table({"a": pa.array(range(20_000), pa.int64())})
    stream = io.BytesIO()
    pq.write_table(few, stream, row_group_size=20)
    assert len(found(stream.getvalue()).fields) == 1


def test_files_without_a_footer_have_no_columns() -> None:
    data = written(pa.schema([("a", pa.int64())]))
    for broken in (b"", b"PAR1", data[:-1], data[:-8] + b"\xff\xff\xff\x7fPAR1", data[:-8] + b"\x00\x00\x00\x00PAR1"):
        with pytest.raises(FormatError):
            found(broken)
    files = MemoryFileIO()
    files.create("memory://good.parquet", data)
    files.create("memory://bad.parquet", data[:-1])
    paths = [f"memory://{name}.parquet" for name in ("gone", "good", "bad", "good")]
    assert list(read_physical_schemas(files, paths).values()) == [[1, 3]]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("metadata", False), ("value", False)], VARIANT),
        ([("value", False), ("metadata", False)], VARIANT),
        ([("metadata", False), ("value", True)], OTHER),
        ([("metadata", False), ("value", True), ("typed_value", True)], OTHER),
        ([("metadata", False), ("typed_value", True)], OTHER),
    ],
)
def test_variants_are_known_if_nothing_of_them_is_shredded(
    parts: list[tuple[str, bool]], expected: IcebergType
) -> None:
    arrow = pa.struct([pa.field(name, pa.binary(), nullable) for name, nullable in parts])
    data = written(pa.schema([pa.field("v", arrow, metadata={b"PARQUET:field_id": b"7"})]))
    io_ = MemoryFileIO()
    io_.create("memory:/f", annotated(data, {7: b"\x0c\x20\x13\x01\x00\x00"}))
    assert read_physical_schema(io_, "memory:/f") == StructType((NestedField(7, "v", False, expected),))
