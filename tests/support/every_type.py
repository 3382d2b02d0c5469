"""Rows of every type that files can hold, with the values at the edges of each."""

import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

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
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.parquet.file.constants import plain_to_arrow

_DAY = 86_400_000_000
_POINT = StructType((NestedField(101, "x", True, INT), NestedField(102, "y", False, DOUBLE)))
_DEEP = MapType(104, INT, 105, StructType((NestedField(106, "z", False, STRING),)), False)
COLUMNS: dict[str, tuple[IcebergType, list[Any]]] = {
    "boolean": (BOOLEAN, [True, False, True, None]),
    "int": (INT, [1, -(2**31), 2**31 - 1, None]),
    "long": (LONG, [1, -(2**63), 2**63 - 1, None]),
    "float": (FLOAT, [1.5, -math.inf, math.nan, None]),
    "double": (DOUBLE, [-0.0, math.inf, math.nan, None]),
    "zero": (DOUBLE, [0.0, 0.0, None, None]),
    "zeros": (FLOAT, [0.0, -0.0, None, 0.0]),
    "nan": (FLOAT, [math.nan, math.nan, None, math.nan]),
    "date": (DATE, [17_486, -719_162, 2_932_896, None]),
    "time": (TIME, [81_068_000_000, 0, _DAY - 1, None]),
    "timestamp": (TIMESTAMP, [17_486 * _DAY + 1, -719_162 * _DAY, 2_932_896 * _DAY, None]),
    "timestamptz": (TIMESTAMPTZ, [17_486 * _DAY + 1, -719_162 * _DAY, None, 0]),
    "timestamp_ns": (TIMESTAMP_NS, [1_510_871_468_000_000_001, -(2**62), 2**62, None]),
    "timestamptz_ns": (TIMESTAMPTZ_NS, [1_510_871_468_000_000_001, -1, None, 0]),
    "string": (STRING, ["zürich", "", "\U0010ffff" * 20, None]),
    "long_string": (STRING, ["a" * 15 + "\U0010ffff" * 3, "😀" * 17, "\ud7ff" * 17, None]),
    "uuid": (UUID, [uuid.UUID(int=2**127 + 1), uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), None]),
    "binary": (BINARY, [b"\x00", b"", b"a\xff" * 20, None]),
    "full_binary": (BINARY, [b"\xff" * 17, b"\xfe", None, None]),
    "fixed": (FixedType(20), [b"abc" + bytes(17), bytes(20), b"\xff" * 20, None]),
    "decimal9": (DecimalType(9, 2), [Decimal("1.50"), Decimal("-9999999.99"), Decimal("9999999.99"), None]),
    "decimal18": (DecimalType(18, 2), [Decimal("0.01"), Decimal("-1.28"), Decimal("1.28"), None]),
    "decimal38": (DecimalType(38, 10), [Decimal("1.5000000000"), Decimal(f"-{'9' * 28}.{'9' * 10}"), Decimal(0), None]),
    "nothing": (STRING, [None, None, None, None]),
    "point": (_POINT, [{"x": 1, "y": 2.0}, {"x": 3, "y": None}, {"x": -1, "y": math.nan}, None]),
    "list": (ListType(107, LONG, False), [[1, None, 3], [], [None], None]),
    "uuids": (ListType(108, UUID, True), [[uuid.UUID(int=5)], [], [uuid.UUID(int=6)], None]),
    "map": (MapType(109, STRING, 110, DOUBLE, False), [[("a", 1.0), ("b", None)], [], [("", math.nan)], None]),
    "deep": (ListType(103, _DEEP, True), [[[(1, {"z": "a"}), (2, None)], []], [], [[(3, {"z": None})]], None]),
}
V3_ONLY = {"timestamp_ns", "timestamptz_ns"}


def every_type_schema(*, without: set[str] | frozenset[str] = frozenset()) -> Schema:
    """One optional column of each type."""
    names = [n for n in COLUMNS if n not in without]
    return Schema(fields=tuple(NestedField(i, n, False, COLUMNS[n][0]) for i, n in enumerate(names, 1)))


def every_type_rows(*, without: set[str] | frozenset[str] = frozenset()) -> pa.Table:
    """Four rows; the last is mostly null."""
    return pa.table({n: plain_to_arrow(t, values) for n, (t, values) in COLUMNS.items() if n not in without})


def comparable(rows: pa.Table) -> list[str]:
    """Rows as text, where NaN is NaN and -0.0 is not 0.0; nanoseconds as numbers."""
    columns = []
    for name in rows.column_names:
        column = rows.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        columns.append([repr(v) for v in column.to_pylist()])
    return sorted(f"{row}" for row in zip(*columns, strict=True))
