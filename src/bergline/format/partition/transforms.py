"""Partition transforms: from column values to partition values.

Values are plain: dates are days, timestamps are microseconds or nanoseconds since 1970.
"""

import math
import re
import struct
import uuid
from decimal import Decimal
from typing import Any

import mmh3

from bergline.errors import InvalidInputError
from bergline.format.encoding.iso import civil_date
from bergline.format.encoding.value_class import ValueClass
from bergline.format.types.single_values import scaled, signed_bytes, unscaled
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
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    PrimitiveType,
)

_SECONDS_PER_HOUR = 3_600
_PER_SECOND: dict[IcebergType, int] = {
    TIMESTAMP: 10**6,
    TIMESTAMPTZ: 10**6,
    TIMESTAMP_NS: 10**9,
    TIMESTAMPTZ_NS: 10**9,
}
_TIMESTAMPS = tuple(_PER_SECOND)


class Transform(ValueClass):
    """Identity, Bucket, Truncate, TimeTransform, Void or UnknownTransform."""

    __slots__ = ()

    @classmethod
    def from_json(cls, value: Any) -> "Transform":
        """Parse the name of any transform."""
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
        return parse_transform(value)

    def to_json(self) -> str:
        """The name of the transform."""
        return str(self)

    def result_type(self, source: IcebergType) -> IcebergType:
        """The type of the partition value; InvalidInputError if the transform does not accept the source."""
        raise NotImplementedError

    def apply(self, source: IcebergType, value: Any) -> Any:
        """The partition value of a column value; null stays null."""
        raise NotImplementedError


class Identity(Transform):
    """The value itself."""

    __slots__ = ()

    def __str__(self) -> str:
        return "identity"

    def result_type(self, source: IcebergType) -> IcebergType:
        if not isinstance(source, PrimitiveType | DecimalType | FixedType) or source == VARIANT:
            raise InvalidInputError(f"expected a primitive column for identity, found `{source}`")
        return source

    def apply(self, source: IcebergType, value: Any) -> Any:
        return value


class Bucket(Transform):
    """Hash modulo the number of buckets."""

    __slots__ = ("count",)
    __match_args__ = ("count",)
    count: int

    def __str__(self) -> str:
        return f"bucket[{self.count}]"

    def result_type(self, source: IcebergType) -> IcebergType:
        hashable = (INT, LONG, DATE, TIME, *_TIMESTAMPS, STRING, BINARY, UUID)
        if source not in hashable and not isinstance(source, DecimalType | FixedType):
            raise InvalidInputError(f"expected a column that can be hashed for `{self}`, found `{source}`")
        return INT

    def apply(self, source: IcebergType, value: Any) -> Any:
        """Murmur3 x86 32-bit with seed 0, made positive, modulo the count."""
        return None if value is None else (hash_value(source, value) & 0x7FFFFFFF) % self.count


class Truncate(Transform):
    """Rounds numbers down to a multiple of the width, cuts text and bytes to a prefix."""

    __slots__ = ("width",)
    __match_args__ = ("width",)
    width: int

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def result_type(self, source: IcebergType) -> IcebergType:
        if source not in (INT, LONG, STRING, BINARY) and not isinstance(source, DecimalType):
            raise InvalidInputError(f"expected int, long, decimal, string or binary for `{self}`, found `{source}`")
        return source

    def apply(self, source: IcebergType, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(source, DecimalType):
            units = unscaled(value, source.scale)
            return scaled(units - units % self.width, source.scale)
        if not isinstance(value, int):
            return value[: self.width]
        # wraps around below the smallest number, as in Java
        half = 2**31 if source == INT else 2**63
        return (value - value % self.width + half) % (2 * half) - half


class TimeTransform(Transform):
    """Year, month, day or hour since 1970."""

    __slots__ = ("unit",)
    __match_args__ = ("unit",)
    unit: str

    def __str__(self) -> str:
        return self.unit

    def result_type(self, source: IcebergType) -> IcebergType:
        """A date for day, else int."""
        allowed = _TIMESTAMPS if self.unit == "hour" else (DATE, *_TIMESTAMPS)
        if source not in allowed:
            raise InvalidInputError(f"expected {' or '.join(map(str, allowed))} for `{self}`, found `{source}`")
        return DATE if self.unit == "day" else INT

    def apply(self, source: IcebergType, value: Any) -> Any:
        """Whole units since 1970, rounded down."""
        if value is None:
            return None
        if source == DATE:
            days = value
        else:
            hours = value // (_PER_SECOND[source] * _SECONDS_PER_HOUR)
            if self.unit == "hour":
                return hours
            days = hours // 24
        if self.unit == "day":
            return days
        year, month, _ = civil_date(days)
        return year - 1970 if self.unit == "year" else (year - 1970) * 12 + month - 1


class Void(Transform):
    """Always null: a partition field that was removed in v1."""

    __slots__ = ()

    def __str__(self) -> str:
        return "void"

    def result_type(self, source: IcebergType) -> IcebergType:
        return source

    def apply(self, source: IcebergType, value: Any) -> Any:
        return None


class UnknownTransform(Transform):
    """A transform of a later specification: readable, but not writable."""

    __slots__ = ("text",)
    __match_args__ = ("text",)
    text: str

    def __str__(self) -> str:
        return self.text

    def result_type(self, source: IcebergType) -> IcebergType:
        """Text, as the specification says for unknown transforms."""
        return STRING

    def apply(self, source: IcebergType, value: Any) -> Any:
        raise InvalidInputError(f"expected a known transform to write with, found `{self.text}`")


IDENTITY = Identity()
VOID = Void()
_BY_NAME: dict[str, Transform] = {
    "identity": IDENTITY,
    "void": VOID,
    **{unit: TimeTransform(unit) for unit in ("year", "month", "day", "hour")},
}
_PARAMETERISED = re.compile(r"(bucket|truncate)\[([0-9]+)\]")
_MOST_DIGITS = 10
_INT_MAX = 2**31 - 1


def parse_transform(text: str) -> Transform:
    """Parse a transform."""
    lower = text.lower()
    if known := _BY_NAME.get(lower):
        return known
    if match := _PARAMETERISED.fullmatch(lower):
        number = int(match[2]) if len(match[2]) <= _MOST_DIGITS else 0
        if not 1 <= number <= _INT_MAX:
            raise InvalidInputError(f"expected a number from 1 to {_INT_MAX}, found `{text[:40]}`")
        return Bucket(number) if match[1] == "bucket" else Truncate(number)
    return UnknownTransform(text)


def hash_value(source: IcebergType, value: Any) -> int:
    """The 32-bit hash used by bucket."""
    return mmh3.hash(_hash_bytes(source, value), 0)


def _hash_bytes(source: IcebergType, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, Decimal) and isinstance(source, DecimalType):
        return signed_bytes(unscaled(value, source.scale))
    if isinstance(value, float):
        # all zeros hash alike, and so do all NaNs
        return struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
    if isinstance(value, bytes):
        return value
    # nanoseconds hash like their microseconds
    return struct.pack("<q", value // 1000 if source in (TIMESTAMP_NS, TIMESTAMPTZ_NS) else value)
