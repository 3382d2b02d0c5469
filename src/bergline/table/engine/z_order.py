"""Z-order values as in Iceberg's Spark runtime: the interleaved bits of several columns, as sortable bytes.

Runs in this process and in Spark's tasks, column by column; only texts are processed row by row.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.errors import UnsupportedError
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    FixedType,
    IcebergType,
)

NUMBER_BYTES: Final = 8
"""How many bytes each column of numbers, dates and times contributes, and by default text and bytes."""
_TYPES: Final = (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, UUID, BINARY)
# Iceberg's ZOrderByteUtils stores true as -127
_TRUE: Final = 0x81
_SIGN: Final = -(2**63)
_NAN: Final = 0x7FF8000000000000
_MICROS: Final = 1_000_000
_CONTINUES: Final = 0b10


class ZOrder(msgspec.Struct, frozen=True):
    """The columns to interleave, by name, and how many bytes of text and of the result to use."""

    columns: tuple[str, ...]
    text_bytes: int = NUMBER_BYTES
    most_bytes: int | None = None


def check_z_type(type_: IcebergType, column: str) -> None:
    """UnsupportedError for a type that has no z-order."""
    if type_ not in _TYPES and not isinstance(type_, FixedType):
        raise UnsupportedError(f"cannot use column `{column}` of type `{type_}` in zorder(…)")


def z_values(columns: Sequence[pa.Array], order: ZOrder) -> pa.Array:
    """The z-order value of each row, of Arrow columns in the order of `order.columns`."""
    rows = len(columns[0])
    parts = [_ordered_bytes(column, order.text_bytes) for column in columns]
    widths = tuple(order.text_bytes if _is_bytes(column.type) else NUMBER_BYTES for column in columns)
    width = min(sum(widths), order.most_bytes or sum(widths))
    interleaved = bytearray(rows * width)
    for byte, sources in enumerate(_tables(widths, width)):
        # A plane has one byte of the result for every row. Translating a byte of all rows with one table, and combining
        # planes as big integers, takes the place of a loop over rows.
        plane = 0
        for column, position, table in sources:
            found = parts[column][position :: widths[column]].translate(table)
            plane |= int.from_bytes(found, "little")
        interleaved[byte::width] = plane.to_bytes(rows, "little")
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(interleaved)])
    return values.cast(pa.binary())


_Table = tuple[int, int, bytes]


@cache
def _tables(widths: tuple[int, ...], width: int) -> tuple[tuple[_Table, ...], ...]:
    """For each byte of the result: the column, the byte in it, and the contribution of each value of that byte."""
    bits = [
        (column, place)
        for place in range(8 * max(widths))
        for column, bytes_ in enumerate(widths)
        if place < 8 * bytes_
    ]
    tables: list[dict[tuple[int, int], list[tuple[int, int]]]] = [{} for _ in range(width)]
    for position, (column, place) in enumerate(bits[: 8 * width]):
        moved = tables[position // 8].setdefault((column, place // 8), [])
        moved.append((7 - place % 8, 7 - position % 8))
    return tuple(
        tuple(
            (column, byte, bytes(sum((value >> at & 1) << to for at, to in moved) for value in range(256)))
            for (column, byte), moved in sources.items()
        )
        for sources in tables
    )


def _ordered_bytes(column: pa.Array, text_bytes: int) -> bytes:
    """The values of a column as concatenated bytes of fixed length that sort like the values; null is zeros."""
    type_ = column.type
    if isinstance(type_, pa.UuidType):
        return b"".join(_cut(None if v is None else str(v).encode(), text_bytes) for v in column.to_pylist())
    if _is_bytes(type_):
        is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
        cut: Callable[[bytes | None, int], bytes] = _cut_text if is_text else _cut
        return b"".join(cut(v, text_bytes) for v in column.cast(pa.large_binary()).to_pylist())
    if pa.types.is_boolean(type_):
        flags = pc.fill_null(column, False)
        return b"".join(bytes([_TRUE if v else 0]) + bytes(NUMBER_BYTES - 1) for v in flags.to_pylist())
    numbers = pc.fill_null(_ordered_numbers(column), 0)
    little = pa.concat_arrays([numbers]).buffers()[1].to_pybytes()[: NUMBER_BYTES * len(numbers)]
    # Arrow's numbers are little-endian; as big-endian bytes they sort like the numbers
    big = bytearray(len(little))
    for byte in range(NUMBER_BYTES):
        big[byte::NUMBER_BYTES] = little[NUMBER_BYTES - 1 - byte :: NUMBER_BYTES]
    return bytes(big)


def _ordered_numbers(column: pa.Array) -> pa.Array:
    """64-bit numbers whose unsigned order is that of the values."""
    type_ = column.type
    if pa.types.is_floating(type_):
        doubles = column.cast(pa.float64())
        bits = pc.if_else(pc.is_nan(doubles), pa.scalar(_NAN, pa.int64()), doubles.view(pa.int64()))
        # IEEE doubles sort like unsigned integers once negative ones have all bits flipped and others the sign bit
        mask = pc.if_else(pc.less(bits, 0), pa.scalar(-1, pa.int64()), pa.scalar(_SIGN, pa.int64()))
        return pc.bit_wise_xor(bits, mask)
    if pa.types.is_date32(type_):
        whole = column.cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_timestamp(type_):
        micros = column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64())
        # Spark casts times with a zone to seconds, and Iceberg uses these
        whole = micros if type_.tz is None else _floor_divided(micros, _MICROS)
    else:
        whole = column.cast(pa.int64())
    return pc.bit_wise_xor(whole, pa.scalar(_SIGN, pa.int64()))


def _floor_divided(values: pa.Array, by: int) -> pa.Array:
    quotient = pc.divide(values, by)
    below = pc.less(values, pc.multiply(quotient, by))
    return pc.subtract(quotient, below.cast(pa.int64()))


def _is_bytes(type_: pa.DataType) -> bool:
    return (
        isinstance(type_, pa.UuidType)
        or pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def _cut(value: bytes | None, length: int) -> bytes:
    return (value or b"")[:length].ljust(length, b"\0")


def _cut_text(value: bytes | None, length: int) -> bytes:
    """Cut text between characters: bytes of an incomplete character become zeros."""
    if value is None or len(value) <= length:
        return _cut(value, length)
    end = length
    while end and value[end] >> 6 == _CONTINUES:
        end -= 1
    return value[:end].ljust(length, b"\0")
