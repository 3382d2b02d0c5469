"""The reader: columns by field id, rows by three-valued logic."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.reader import read_plan
from bergline.errors import FormatError, NotFoundError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARIANT,
    DecimalType,
    GeometryType,
    IcebergType,
    ListType,
    NestedField,
)
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from support.fixtures.stored_files import LOCATION, foreign, read, stored, with_id


def optional(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(field_id, name, False, type_)


def test_every_type_comes_back_as_it_was_written(every_type: Schema, every_row: pa.Table) -> None:
    files = MemoryFileIO()
    table = read(files, stored(files, every_type, every_row.to_pylist()), every_type)
    assert table.schema.equals(arrow_schema(every_type), check_metadata=True)
    assert repr(table.to_pylist()) == repr(every_row.to_pylist())  # as text, where NaN is NaN


MANY = [[1, None], [], None, [2]]


def test_columns_come_in_the_order_asked_for() -> None:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", INT), optional(2, "b", INT)))
    table = read(files, stored(files, schema, [{"a": 1, "b": 2}]), schema, columns=["b", "a"])
    assert table.to_pylist() == [{"b": 2, "a": 1}]
    assert table.column_names == ["b", "a"]


def test_filter_may_use_columns_that_are_not_asked_for() -> None:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", INT), optional(2, "b", INT)))
    file = stored(files, schema, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    table = read(files, file, schema, columns=["a"], row_filter=parse_predicate("b = 4"))
    assert table.to_pydict() == {"a": [3]}


def test_plan_without_files_has_the_columns_and_no_rows(every_type: Schema) -> None:
    table = read_plan(MemoryFileIO(), ScanPlan(None, every_type, every_type, ALWAYS_TRUE, ()))
    assert table.num_rows == 0
    assert table.schema.equals(arrow_schema(every_type), check_metadata=True)


def test_several_files_are_read_in_order() -> None:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", INT),))
    first = stored(files, schema, [{"a": 1}])
    files.create(LOCATION, files.read(first.file_path))
    both = (PlannedFile(first, 1), PlannedFile(DataFile(LOCATION, "PARQUET", (), 1, 1), 2))
    assert read_plan(files, ScanPlan(1, schema, schema, ALWAYS_TRUE, both)).to_pydict() == {"a": [1, 1]}


MOMENT = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("arrow", "values", "type_", "expected"),
    [
        (pa.large_string(), ["a", None], STRING, ["a", None]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", None], STRING, ["a", None]),
        (pa.large_binary(), [b"a"], BINARY, [b"a"]),
        (pa.uuid(), [b"a" * 16, None], UUID, [uuid.UUID(bytes=b"a" * 16), None]),
        (pa.binary(16), [b"a" * 16, None], UUID, [uuid.UUID(bytes=b"a" * 16), None]),
        (pa.large_list(with_id("item", pa.int32(), 2)), MANY, ListType(2, LONG, False), MANY),
        (pa.list_(with_id("item", pa.int32(), 2), 1), [[1], [None]], ListType(2, LONG, False), [[1], [None]]),
        (pa.timestamp("ms"), [MOMENT], TIMESTAMP, [MOMENT]),
        (pa.timestamp("ns", "UTC"), [MOMENT], TIMESTAMPTZ, [MOMENT.replace(tzinfo=dt.UTC)]),
        (pa.int16(), [5, None], INT, [5, None]),
        (pa.uint32(), [2**32 - 1], LONG, [2**32 - 1]),
        (pa.timestamp("us", "Europe/Berlin"), [MOMENT], TIMESTAMP, [MOMENT]),
        (pa.time32("ms"), [dt.time(1, 2, 3)], TIME, [dt.time(1, 2, 3)]),
        (pa.decimal128(9, 2), [Decimal("1.50")], DecimalType(12, 2), [Decimal("1.50")]),
        (pa.binary(), [b"a"], STRING, ["a"]),
        (pa.binary(), [b"wkb"], GeometryType("OGC:CRS84"), [b"wkb"]),
        (pa.null(), [None, None], STRING, [None, None]),
        (
            pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())]),
            [{"metadata": b"m", "value": b"v"}, None],
            VARIANT,
            [{"metadata": b"m", "value": b"v"}, None],
        ),
    ],
    ids=str,
)
def test_files_of_other_writers_are_read(
    arrow: pa.DataType, values: list[Any], type_: IcebergType, expected: list[Any]
) -> None:
    table = pa.Table.from_arrays([pa.array(values, arrow)], schema=pa.schema([with_id("c", arrow, 1)]))
    found = read(foreign(table), None, Schema(fields=(optional(1, "c", type_),)))
    assert found.column("c").to_pylist() == expected


def test_many_row_groups_are_one_column() -> None:
    arrow = pa.list_(with_id("element", pa.int32(), 2))
    table = pa.Table.from_arrays([pa.array(MANY * 10, arrow)], schema=pa.schema([with_id("c", arrow, 1)]))
    found = read(foreign(table, row_group_size=3), None, Schema(fields=(optional(1, "c", ListType(2, INT, False)),)))
    assert found.column("c").to_pylist() == MANY * 10


def test_file_without_field_ids_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match=f"expected field ids or a name mapping, found neither in {LOCATION}"):
        read(foreign(pa.table({"c": [1]})), None, Schema(fields=(optional(1, "c", LONG),)))


def test_shredded_variants_are_put_together() -> None:
    arrow = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    rows = [{"metadata": b"\x01\x00\x00", "typed_value": 7}, None, {"metadata": b"\x01\x00\x00", "value": b"\x05x"}]
    table = pa.table([pa.array(rows, arrow)], schema=pa.schema([with_id("v", arrow, 1)]))
    schema = Schema(fields=(optional(1, "v", VARIANT), optional(2, "c", INT)))
    found = read(foreign(table), None, schema)
    assert found.schema == arrow_schema(schema)
    values = [v and v["value"] for v in found.column("v").to_pylist()]
    assert values == [b"\x18" + (7).to_bytes(8, "little"), None, b"\x05x"]
    assert read(foreign(table), None, schema, columns=["c"]).to_pydict() == {"c": [None] * 3}


def test_field_id_that_stands_twice_is_a_format_error() -> None:
    fields = [with_id("a", pa.int32(), 1), with_id("b", pa.int32(), 1)]
    table = pa.table([pa.array([1], pa.int32())] * 2, schema=pa.schema(fields))
    with pytest.raises(FormatError, match=f"found 1 twice in {LOCATION}"):
        read(foreign(table), None, Schema(fields=(optional(1, "c", INT),)))


def test_text_that_is_no_text_is_a_format_error() -> None:
    text = pa.array([b"\xff\xfe"]).view(pa.string())
    table = pa.table([text], schema=pa.schema([with_id("c", pa.string(), 1)]))
    with pytest.raises(FormatError, match=LOCATION):
        read(foreign(table), None, Schema(fields=(optional(1, "c", STRING),)))


def test_file_of_another_format_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match=f"found `LANCE` at {LOCATION}"):
        read(MemoryFileIO(), DataFile(LOCATION, "LANCE", (), 1, 1), Schema(fields=(optional(1, "c", LONG),)))


def test_encrypted_files_are_refused_by_name() -> None:
    file = DataFile(LOCATION, "PARQUET", (), 1, 1, key_metadata=b"k")
    with pytest.raises(UnsupportedError, match=f"encrypted file {LOCATION}"):
        read(MemoryFileIO(), file, Schema(fields=(optional(1, "c", LONG),)))


def test_missing_file_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=LOCATION):
        read(MemoryFileIO(), None, Schema(fields=(optional(1, "c", LONG),)))


def whole_file() -> tuple[bytes, Schema]:
    files, schema = MemoryFileIO(), Schema(fields=(optional(1, "a", LONG), optional(2, "b", STRING)))
    return files.read(stored(files, schema, [{"a": n, "b": str(n)} for n in range(20)]).file_path), schema


def test_truncated_file_is_a_format_error_wherever_it_is_cut() -> None:
    data, schema = whole_file()
    for cut in range(0, len(data), 7):
        files = MemoryFileIO()
        files.create(LOCATION, data[:cut])
        with pytest.raises(FormatError, match=f"in {LOCATION}"):
            read(files, None, schema)


def test_damaged_footer_gives_rows_or_our_error() -> None:
    data, schema = whole_file()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    problems = []
    for position in range(len(data) - footer, len(data)):
        files = MemoryFileIO()
        files.create(LOCATION, bytes([*data[:position], data[position] ^ 0xFF, *data[position + 1 :]]))
        try:
            read(files, None, schema)
        except (FormatError, UnsupportedError) as error:
            problems.append(str(error))
    assert problems
    assert all(LOCATION in text for text in problems)
