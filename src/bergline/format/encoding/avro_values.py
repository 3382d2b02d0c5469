"""Single values of Avro records, read or skipped at a position in the data.

This is the fast path: it reads only what is plainly valid. Everything else raises UnusualAvroError and is left to
`avro_columns`, which reports what is wrong.
"""

from collections.abc import Callable
from typing import Any, Final

_LAST_SHIFT: Final = 63
_NULL, _OTHER = 0, 2  # the branches of a union in zig-zag

Skip = Callable[[bytes, int], int]
"""Skips the value at a position; returns where it ends."""


class UnusualAvroError(Exception):
    """The data or schema is not plainly valid, or not known to this module."""


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and where it ends."""
    byte = data[at]
    at += 1
    if byte < 0x80:  # noqa: PLR2004  (seven bits a byte)
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            break
        shift += 7
        if shift > _LAST_SHIFT:
            raise UnusualAvroError
    if value >> 64:
        raise UnusualAvroError
    return (value >> 1) ^ -(value & 1), at


def is_present(data: bytes, at: int) -> bool:
    """Whether an optional value is present; its schema must list null first."""
    if data[at] not in (_NULL, _OTHER):
        raise UnusualAvroError
    return data[at] == _OTHER


def skip_of(schema: Any) -> Skip:
    """A function that skips values of a type."""
    match schema:
        case str(kind) | {"type": str(kind)} if kind in _SKIPS:
            return _SKIPS[kind]
        case ["null", other]:
            return _skip_optional(skip_of(other))
        case {"type": "array", "items": items}:
            return _skip_array(skip_of(items))
        case {"type": "record", "fields": [*fields]}:
            return _skip_record([skip_of(field["type"]) for field in fields])
    raise UnusualAvroError


def _skip_long(data: bytes, at: int) -> int:
    while data[at] >= 0x80:  # noqa: PLR2004
        at += 1
    return at + 1


def _skip_bytes(data: bytes, at: int) -> int:
    length, at = read_long(data, at)
    if length < 0 or at + length > len(data):
        raise UnusualAvroError
    return at + length


def _skip_some(number: int) -> Skip:
    def skip(data: bytes, at: int) -> int:
        if at + number > len(data):
            raise UnusualAvroError
        return at + number

    return skip


def _skip_optional(skip: Skip) -> Skip:
    return lambda data, at: skip(data, at + 1) if is_present(data, at) else at + 1


def _skip_array(skip: Skip) -> Skip:
    def skip_all(data: bytes, at: int) -> int:
        count, at = read_long(data, at)
        while count:
            if not 0 < count <= len(data):
                raise UnusualAvroError
            for _ in range(count):
                at = skip(data, at)
            count, at = read_long(data, at)
        return at

    return skip_all


def _skip_record(skips: list[Skip]) -> Skip:
    def skip_all(data: bytes, at: int) -> int:
        for skip in skips:
            at = skip(data, at)
        return at

    return skip_all


_SKIPS: dict[str, Skip] = {
    "int": _skip_long,
    "long": _skip_long,
    "boolean": _skip_some(1),
    "float": _skip_some(4),
    "double": _skip_some(8),
    "bytes": _skip_bytes,
    "string": _skip_bytes,
}
