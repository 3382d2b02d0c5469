"""Values survive their bytes; truncated bounds stay bounds; transforms keep order."""

import math
import struct
import uuid
from decimal import Decimal
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from bergline.errors import FormatError
from bergline.format.partition.transforms import Bucket, TimeTransform, Truncate
from bergline.format.types.single_values import decode_value, encode_value, truncate_lower, truncate_upper
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    PRIMITIVES,
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
)

ints, longs = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]))
days = st.integers(-719_162, 2_932_896)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(
        lambda units: Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))
    )


VALUES: dict[IcebergType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: ints,
    LONG: longs,
    FLOAT: st.floats(width=32),
    DOUBLE: st.floats(),
    DATE: ints,
    TIME: st.integers(0, 86_399_999_999),
    TIMESTAMP: longs,
    TIMESTAMPTZ: longs,
    TIMESTAMP_NS: longs,
    TIMESTAMPTZ_NS: longs,
    STRING: texts,
    UUID: st.uuids(),
    BINARY: st.binary(),
    FixedType(5): st.binary(min_size=5, max_size=5),
    DecimalType(9, 2): decimals(9, 2),
    DecimalType(38, 0): decimals(38, 0),
    DecimalType(38, 38): decimals(38, 38),
}
typed = st.sampled_from(list(VALUES)).flatmap(lambda t: st.tuples(st.just(t), VALUES[t]))


@given(typed)
def test_value_survives_its_bytes(typed_value: tuple[IcebergType, Any]) -> None:
    type_, value = typed_value
    back = decode_value(type_, encode_value(type_, value))
    if isinstance(value, float):
        assert struct.pack("<d", back) == struct.pack("<d", value) or (math.isnan(back) and math.isnan(value))
    else:
        assert (back, type(back)) == (value, type(value))
        assert str(back) == str(value)


@given(decimals(38, 3))
def test_decimal_bytes_are_as_short_as_can_be(value: Decimal) -> None:
    data = encode_value(DecimalType(38, 3), value)
    assert len(data) == 1 or data[0] not in (0x00, 0xFF) or (data[0] == 0xFF) != (data[1] >= 0x80)


@given(st.sampled_from([*PRIMITIVES.values(), DecimalType(9, 2), FixedType(3)]), st.binary(max_size=20))
def test_any_bytes_decode_or_are_a_format_error(type_: IcebergType, data: bytes) -> None:
    try:
        outcome = decode_value(type_, data)
    except FormatError as error:
        outcome = str(error)
    assert isinstance(outcome, bool | int | float | str | bytes | Decimal | uuid.UUID | None)


@given(st.one_of(texts, st.binary()), st.integers(1, 5))
@example("\U0010ffff" * 3, 2)
@example("a\ud7ffx", 2)
@example(b"\xff\xff\xff", 2)
@example(b"\x00\xff\xff", 2)
def test_truncated_bounds_are_bounds(value: Any, length: int) -> None:
    lower, upper = truncate_lower(value, length), truncate_upper(value, length)
    assert lower <= value
    assert len(lower) <= length
    if upper is not None:
        assert upper >= value
        assert len(upper) <= length
        # the order of text is the order of its bytes
        assert isinstance(upper, bytes) or upper.encode() >= value.encode()
    else:
        top = b"\xff" if isinstance(value, bytes) else "\U0010ffff"
        assert value[:length] == top * length


@given(st.sampled_from([INT, LONG, DATE, STRING, UUID, BINARY, DecimalType(38, 0)]), st.data(), st.integers(1, 1000))
def test_bucket_is_below_its_count(type_: IcebergType, data: st.DataObject, count: int) -> None:
    value = data.draw(VALUES[type_])
    assert 0 <= Bucket(count).apply(type_, value) < count


@given(st.integers(-(2**63) + 1000, 2**63 - 1), st.integers(1, 1000))
def test_truncate_goes_down_by_less_than_its_width(value: int, width: int) -> None:
    truncated = Truncate(width).apply(LONG, value)
    assert truncated % width == 0
    assert 0 <= value - truncated < width


@given(days, days, st.sampled_from(["year", "month", "day"]))
def test_time_keeps_the_order(a: int, b: int, unit: str) -> None:
    transform = TimeTransform(unit)
    assert (a <= b) <= (transform.apply(DATE, a) <= transform.apply(DATE, b))
    assert transform.apply(DATE, a) == transform.apply(TIMESTAMP, a * 86_400_000_000 + 86_399_999_999)
