"""Columns of files as the table has them now."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.errors import FormatError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.io.memory import MemoryFileIO
from support.fixtures.stored_files import LOCATION, foreign, read, stored, with_id


def optional(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(field_id, name, False, type_)


def required(field_id: int, name: str, type_: IcebergType) -> NestedField:
    return NestedField(field_id, name, True, type_)


def defaulted(field_id: int, name: str, type_: IcebergType, default: Any) -> NestedField:
    return NestedField(field_id, name, True, type_, initial_default=default)


def evolved(before: NestedField, after: NestedField, values: list[Any]) -> list[Any]:
    """Values written under one field and read under another."""
    files = MemoryFileIO()
    old = Schema(fields=(required(99, "row", INT), before))
    rows = [{"row": n, before.name: v} for n, v in enumerate(values)]
    table = read(files, stored(files, old, rows), Schema(fields=(after,)))
    table.validate(full=True)
    assert table.schema.equals(arrow_schema(Schema(fields=(after,))), check_metadata=True)
    return table.column(after.name).to_pylist()


A_UUID = uuid.UUID(int=2**127 + 1)


DAY = dt.datetime(2020, 1, 1)  # noqa: DTZ001


STRUCT = StructType((optional(2, "a", INT), optional(3, "b", STRING)))


MAP = MapType(2, STRING, 3, INT, False)


MANY = [[1, None], [], None, [2]]


@pytest.mark.parametrize(
    ("before", "after", "values", "expected"),
    [
        (optional(1, "old", INT), optional(1, "new", INT), [1, None], [1, None]),
        (optional(1, "c", INT), optional(1, "c", LONG), [2**31 - 1, None], [2**31 - 1, None]),
        (optional(1, "c", FLOAT), optional(1, "c", DOUBLE), [1.5, None], [1.5, None]),
        (
            optional(1, "c", DecimalType(5, 2)),
            optional(1, "c", DecimalType(38, 2)),
            [Decimal("-1.50"), None],
            [Decimal("-1.50"), None],
        ),
        (optional(1, "c", DATE), optional(1, "c", TIMESTAMP), [dt.date(2020, 1, 1), None], [DAY, None]),
        (optional(1, "c", DATE), optional(1, "c", TIMESTAMP_NS), [dt.date(2020, 1, 1), None], [DAY, None]),
        (
            optional(1, "c", ListType(2, DATE, False)),
            optional(1, "c", ListType(2, TIMESTAMP, False)),
            [[dt.date(2020, 1, 1)]],
            [[DAY]],
        ),
        (optional(1, "c", INT), optional(2, "c", INT), [1, 2], [None, None]),
        (optional(1, "c", INT), defaulted(2, "d", LONG, 7), [1, 2], [7, 7]),
        (optional(1, "c", INT), defaulted(2, "d", DATE, "2020-01-01"), [1], [dt.date(2020, 1, 1)]),
        (optional(1, "c", INT), defaulted(2, "d", UUID, str(A_UUID)), [1], [A_UUID]),
        (optional(1, "c", INT), defaulted(2, "d", DecimalType(5, 2), "1.50"), [1], [Decimal("1.50")]),
        (
            optional(1, "c", INT),
            defaulted(2, "d", ListType(3, DATE, False), ["2020-01-01"]),
            [1],
            [[dt.date(2020, 1, 1)]],
        ),
        (
            optional(1, "c", INT),
            defaulted(2, "d", MapType(3, STRING, 4, INT, False), {"keys": ["a"], "values": [1]}),
            [1],
            [[("a", 1)]],
        ),
        (
            optional(1, "c", INT),
            defaulted(2, "s", StructType((defaulted(3, "a", INT, 5), optional(4, "b", INT))), {}),
            [1],
            [{"a": 5, "b": None}],
        ),
        (
            optional(1, "s", STRUCT),
            optional(1, "s", StructType((optional(2, "a", INT), defaulted(9, "n", STRING, "x")))),
            [{"a": 1, "b": "y"}, None],
            [{"a": 1, "n": "x"}, None],
        ),
        (optional(1, "c", INT), optional(2, "u", UNKNOWN), [1, 2], [None, None]),
        (optional(1, "c", INT), optional(2, "g", GeometryType("OGC:CRS84")), [1], [None]),
        (optional(1, "c", INT), optional(2, "v", VARIANT), [1], [None]),
        (optional(1, "c", INT), optional(5, "s", STRUCT), [1, 2], [None, None]),
        (
            optional(1, "s", STRUCT),
            optional(1, "s", StructType((optional(3, "b", STRING), optional(9, "n", LONG), optional(2, "z", LONG)))),
            [{"a": 1, "b": "x"}, {"a": None, "b": None}, None],
            [{"b": "x", "n": None, "z": 1}, {"b": None, "n": None, "z": None}, None],
        ),
        (
            optional(1, "s", STRUCT),
            optional(1, "s", StructType((optional(9, "n", LONG),))),
            [{"a": 1, "b": "x"}, None],
            [{"n": None}, None],
        ),
        (optional(1, "c", ListType(2, INT, False)), optional(1, "d", ListType(2, LONG, False)), MANY, MANY),
        (
            optional(1, "c", ListType(9, STRUCT, False)),
            optional(1, "c", ListType(9, StructType((optional(2, "z", LONG),)), False)),
            [[{"a": 1, "b": "x"}, None], [], None],
            [[{"z": 1}, None], [], None],
        ),
        (
            optional(1, "c", MAP),
            optional(1, "d", MapType(2, STRING, 3, LONG, False)),
            [[("a", 1), ("b", None)], [], None],
            [[("a", 1), ("b", None)], [], None],
        ),
        (
            optional(1, "c", MapType(8, INT, 9, STRUCT, False)),
            optional(1, "c", MapType(8, LONG, 9, StructType((optional(3, "b", STRING), optional(7, "n", INT))), False)),
            [[(1, {"a": 1, "b": "x"}), (2, None)], None, []],
            [[(1, {"b": "x", "n": None}), (2, None)], None, []],
        ),
    ],
)
def test_column_is_found_by_id_after_the_schema_changed(
    before: NestedField, after: NestedField, values: list[Any], expected: list[Any]
) -> None:
    assert evolved(before, after, values) == expected


@pytest.mark.parametrize(
    ("arrow", "value", "type_"),
    [
        (pa.int32(), 1, STRUCT),
        (pa.int32(), 1, ListType(2, INT, False)),
        (pa.int32(), 1, MAP),
        (pa.struct([with_id("a", pa.int32(), 2)]), {"a": 1}, INT),
        (pa.struct([with_id("a", pa.int32(), 2)]), {"a": 1}, ListType(2, INT, False)),
        (pa.list_(with_id("element", pa.int32(), 2)), [1], STRUCT),
        (pa.list_(with_id("element", pa.int32(), 2)), [1], MAP),
        (pa.list_view(with_id("element", pa.int32(), 2)), [1], ListType(2, INT, False)),
        (pa.struct([with_id("a", pa.int32(), 2)]), {"a": 1}, StructType((required(3, "b", INT),))),
        (pa.int64(), 1, INT),
        (pa.float64(), 1.5, FLOAT),
        (pa.decimal128(5, 1), Decimal("1.5"), DecimalType(5, 2)),
        (pa.decimal128(9, 2), Decimal("1000.00"), DecimalType(5, 2)),
        (pa.binary(), b"\xff", STRING),
        (pa.binary(3), b"abc", BINARY),
        (pa.binary(3), b"abc", FixedType(4)),
        (pa.binary(3), b"abc", UUID),
        (pa.date32(), 1, TIMESTAMPTZ),
        (pa.date32(), 10**6, TIMESTAMP_NS),
        (pa.int32(), 1, DATE),
        (pa.string(), "x", BINARY),
        (pa.struct([("metadata", pa.binary())]), {"metadata": b"m"}, VARIANT),
        (pa.string(), "x", INT),
        (pa.timestamp("ns"), 1001, TIMESTAMP),
    ],
    ids=str,
)
def test_file_of_the_wrong_type_is_a_format_error(arrow: pa.DataType, value: Any, type_: IcebergType) -> None:
    table = pa.Table.from_arrays([pa.array([value], arrow)], schema=pa.schema([with_id("c", arrow, 1)]))
    with pytest.raises(FormatError, match=rf"expected .* in {LOCATION}"):
        read(foreign(table), None, Schema(fields=(optional(1, "c", type_),)))


def test_missing_required_column_is_a_format_error() -> None:
    table = pa.table([pa.array([1])], schema=pa.schema([with_id("c", pa.int64(), 1)]))
    with pytest.raises(FormatError, match=rf"required column `d` \(id 2\), found none in {LOCATION}"):
        read(foreign(table), None, Schema(fields=(required(2, "d", INT),)))
