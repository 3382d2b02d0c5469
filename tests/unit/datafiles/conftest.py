"""A table of every v2 type with nulls at every level, shared by the tests of writer and reader."""

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_POINT = StructType((NestedField(41, "x", True, INT), NestedField(42, "y", False, DOUBLE)))
_COLUMNS: list[tuple[int, str, IcebergType]] = [
    (1, "boolean", BOOLEAN),
    (2, "int", INT),
    (3, "long", LONG),
    (4, "float", FLOAT),
    (5, "double", DOUBLE),
    (6, "date", DATE),
    (7, "time", TIME),
    (8, "timestamp", TIMESTAMP),
    (9, "timestamptz", TIMESTAMPTZ),
    (10, "string", STRING),
    (11, "uuid", UUID),
    (12, "binary", BINARY),
    (13, "fixed", FixedType(3)),
    (14, "decimal", DecimalType(38, 10)),
    (20, "point", _POINT),
    (21, "list", ListType(43, LONG, False)),
    (22, "map", MapType(44, STRING, 45, INT, False)),
    (23, "deep", ListType(46, MapType(47, INT, 48, StructType((NestedField(49, "z", False, STRING),)), False), True)),
]


@pytest.fixture(scope="session")
def every_type() -> Schema:
    """One optional column of each type; ids are not in order of columns on purpose."""
    return Schema(fields=tuple(NestedField(i, name, False, t) for i, name, t in _COLUMNS), schema_id=0)


@pytest.fixture(scope="session")
def every_row(every_type: Schema) -> pa.Table:
    """Ordinary values, extreme ones, empty ones, and a row of nulls."""
    columns = {
        "boolean": [True, False, True, None],
        "int": [1, -(2**31), 2**31 - 1, None],
        "long": [1, -(2**63), 2**63 - 1, None],
        "float": [1.5, float("-inf"), float("nan"), None],
        "double": [-0.0, float("inf"), float("nan"), None],
        "date": [dt.date(2017, 11, 16), dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        "time": [dt.time(22, 31, 8), dt.time(0), dt.time(23, 59, 59, 999_999), None],
        "timestamp": [_naive(2017), _naive(1), _naive(9999), None],
        "timestamptz": [_naive(2017).replace(tzinfo=dt.UTC), _naive(1).replace(tzinfo=dt.UTC), None, None],
        "string": ["zürich", "", "\U0010ffff" * 20, None],
        "uuid": [uuid.UUID(int=2**100), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), None],
        "binary": [b"\x00", b"", b"\xff" * 20, None],
        "fixed": [b"abc", b"\x00\x00\x00", b"\xff\xff\xff", None],
        "decimal": [Decimal("1.5"), Decimal("-" + "9" * 28 + "." + "9" * 10), Decimal("9" * 28 + "." + "9" * 10), None],
        "point": [{"x": 1, "y": 2.0}, {"x": 3, "y": None}, None, None],
        "list": [[1, None, 3], [], [None], None],
        "map": [[("a", 1), ("b", None)], [], [("", 2)], None],
        "deep": [[[(1, {"z": "a"}), (2, None)], []], [], [[(3, {"z": None})]], None],
    }
    schema = arrow_schema(every_type)
    arrays = [pa.array(values, schema.field(name).type) for name, values in columns.items()]
    return pa.Table.from_arrays(arrays, schema=schema)


def _naive(year: int) -> dt.datetime:
    return dt.datetime(year, 11, 16, 22, 31, 8, 1)  # noqa: DTZ001
