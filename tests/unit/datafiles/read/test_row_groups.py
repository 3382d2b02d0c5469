"""Row groups passed over by their statistics."""

import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.read.row_groups import matching_groups
from bergline.errors import FormatError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    IcebergType,
    NestedField,
)


def groups(
    arrow: pa.DataType, values: list[Any], type_: IcebergType, text: str, *, name: str = "c", **options: Any
) -> list[int]:
    """The groups, of two rows each, that may match a condition on `c`."""
    out = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values, arrow)}), out, row_group_size=2, **options)
    file = pq.ParquetFile(out)
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    found = matching_groups(out, {1: file.schema_arrow.field(0)}, bind(parse_predicate(text), schema), schema)
    return list(range(file.num_row_groups)) if found is None else found


NUMBERS = [1, 2, 3, None, None, None]


@pytest.mark.parametrize(
    ("arrow", "type_"),
    [
        (pa.int32(), INT),
        (pa.int64(), LONG),
        (pa.int32(), LONG),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c = 2", [0]),
        ("c > 2", [1]),
        ("c IS NULL", [1, 2]),
        ("c IS NOT NULL", [0, 1]),
        ("c = 9", []),
        ("true", [0, 1, 2]),
    ],
)
def test_groups_that_cannot_match_are_left_out(
    arrow: pa.DataType, type_: IcebergType, text: str, expected: list[int]
) -> None:
    assert groups(arrow, NUMBERS, type_, text) == expected


@pytest.mark.parametrize(
    ("arrow", "values", "type_", "text"),
    [
        (pa.date32(), [0, 1, 10, 11], DATE, "c < DATE '1970-01-05'"),
        (pa.timestamp("us"), [0, 1, 10**12, 10**12], TIMESTAMP, "c < TIMESTAMP '1970-01-05 00:00:00'"),
        (pa.timestamp("us", "UTC"), [0, 1, 10**12, 10**12], TIMESTAMPTZ, "c < '1970-01-05T00:00:00+00:00'"),
        (pa.string(), ["a", "b", "x", "\U0010ffff"], STRING, "c < 'c'"),
    ],
    ids=str,
)
def test_every_ordered_type_is_compared(arrow: pa.DataType, values: list[Any], type_: IcebergType, text: str) -> None:
    assert groups(arrow, values, type_, text) == [0]


@pytest.mark.parametrize(
    ("arrow", "values", "type_", "text"),
    [
        (pa.float64(), [1.0, math.nan, 2.0, -0.0], DOUBLE, "c > 5"),
        (pa.timestamp("ms"), [0, 1, 2, 3], TIMESTAMP, "c > TIMESTAMP '2020-01-01 00:00:00'"),
        (pa.date32(), [0, 1, 2, 3], TIMESTAMP, "c > TIMESTAMP '2020-01-01 00:00:00'"),
        (pa.timestamp("us"), [0, 1, 2, 3], TIMESTAMPTZ, "c > '2020-01-01T00:00:00+00:00'"),
        (pa.binary(), [b"a"] * 4, STRING, "c = 'b'"),
        (pa.string(), ["x" * 5000] * 4, STRING, "c = 'b'"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_statistics_that_say_less_are_not_used(
    arrow: pa.DataType, values: list[Any], type_: IcebergType, text: str
) -> None:
    assert groups(arrow, values, type_, text) == [0, 1]


def test_names_with_dots_are_no_paths() -> None:
    assert groups(pa.int64(), NUMBERS, LONG, "c = 2", name="a.b") == [0]


def test_files_without_statistics_are_read_whole() -> None:
    assert groups(pa.int64(), NUMBERS, LONG, "c = 9", write_statistics=False) == [0, 1, 2]
    old = {"use_deprecated_int96_timestamps": True, "store_schema": False}
    assert groups(pa.timestamp("us"), [0, 1], TIMESTAMP, "c > TIMESTAMP '2020-01-01 00:00:00'", **old) == [0]


@pytest.mark.long
def test_damaged_footers_give_groups_or_our_error() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"c": [1, 2, 3, 4], "d": list("abcd")}), out, row_group_size=2)
    data = out.getvalue()
    schema = Schema(fields=(NestedField(1, "c", False, LONG), NestedField(2, "d", False, STRING)))
    columns = {1: pa.field("c", pa.int64()), 2: pa.field("d", pa.string())}
    predicate = bind(parse_predicate("c > 2 AND d < 'z'"), schema)
    outcomes = set()
    for bit in range(len(data) // 3 * 8, len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            outcomes.add(type(matching_groups(io.BytesIO(damaged), columns, predicate, schema)))
        except FormatError:
            outcomes.add(FormatError)
    assert outcomes <= {list, type(None), FormatError}
    assert {list, FormatError} <= outcomes
