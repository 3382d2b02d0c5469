"""Values of columns in the binary single-value encoding, each once."""

import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from bergline.format.types.types import DATE, DOUBLE, INT, LONG, STRING, UUID, DecimalType, FixedType, IcebergType
from bergline.table.engine.sketches import encoded_values


@pytest.mark.parametrize(
    ("type_", "array", "expected"),
    [
        (INT, pa.array([1, None, 1, -1], pa.int32()), [b"\x01\0\0\0", b"\xff\xff\xff\xff"]),
        (LONG, pa.array([0, 9, 258, 258], pa.int64())[2:], [b"\x02\x01\0\0\0\0\0\0"]),
        (DATE, pa.array([1], pa.date32()), [b"\x01\0\0\0"]),
        (DOUBLE, pa.array([0.0, -0.0]), [b"\0" * 8, b"\0" * 7 + b"\x80"]),
        (STRING, pa.array(["é", None, ""]), ["é".encode(), b""]),
        (DecimalType(9, 2), pa.array([Decimal("1.28"), Decimal("-0.01")], pa.decimal128(9, 2)), [b"\0\x80", b"\xff"]),
        (FixedType(2), pa.array([b"ab", b"ab"], pa.binary(2)), [b"ab"]),
        (UUID, pa.array([uuid.UUID(int=5).bytes], pa.uuid()), [uuid.UUID(int=5).bytes]),
    ],
)
def test_values_are_encoded_once_without_nulls(type_: IcebergType, array: pa.Array, expected: list[bytes]) -> None:
    assert sorted(encoded_values(type_, pa.chunked_array([array]))) == sorted(expected)
