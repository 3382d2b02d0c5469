"""The subset of Thrift's compact protocol in Parquet footers: parsed structs are dicts by field id."""

import struct
from collections.abc import Iterator
from typing import Any

from bergline.errors import FormatError

_MAX_DEPTH = 32
_TRUE, _FALSE = 1, 2
_LONG_LIST = 15
_LONG_STEP = 16


def read_struct(data: bytes) -> dict[int, Any]:
    """Parse a struct at the start of the data; FormatError if it is malformed."""
    try:
        return _Reader(data).struct(0)
    except (IndexError, struct.error) as error:
        raise FormatError("expected a Parquet footer, found an end inside it") from error


def read_fields(data: bytes, last: int) -> tuple[dict[int, Any], int]:
    """Parse the first fields of a struct up to a field id; also returns the number of bytes parsed."""
    reader = _Reader(data)
    try:
        fields = reader.struct(0, last)
    except (IndexError, struct.error) as error:
        raise FormatError("expected a Parquet footer, found an end inside it") from error
    return fields, reader.place


def read_struct_list(data: bytes, field_id: int) -> Iterator[tuple[dict[int, Any], int]]:
    """The structs of a list field of the struct at the start of the data, each with the offset of its end mark."""
    reader = _Reader(data)
    for _ in range(reader.enter_list(field_id)):
        yield reader.struct(0), reader.place - 1


def field_header(field_id: int, kind: int, *, after: int = 0) -> bytes:
    """The header of a field of some type, after another field of the same struct."""
    step = field_id - after
    return bytes([step << 4 | kind]) if 0 < step < _LONG_STEP else bytes([kind]) + varint(field_id)


def varint(number: int) -> bytes:
    """A signed number."""
    return _unsigned_varint(number << 1 ^ number >> 63)


def string_bytes(text: str) -> bytes:
    """A text, with its length."""
    data = text.encode()
    return _unsigned_varint(len(data)) + data


def _unsigned_varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:  # noqa: PLR2004  (seven bits a byte)
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def place(self) -> int:
        return self._place

    def enter_list(self, field_id: int) -> int:
        """Skip the fields before a list and return the number of its values, which follow."""
        found = 0
        while header := self._byte():
            kind, delta = header & 0x0F, header >> 4
            found = found + delta if delta else self._signed()
            if found == field_id:
                return self._list_header()[1]
            if kind not in {_TRUE, _FALSE}:
                self._value(kind, 1)
        return 0

    def struct(self, depth: int, last: int | None = None) -> dict[int, Any]:
        if depth > _MAX_DEPTH:
            raise FormatError(f"expected a Parquet footer of at most {_MAX_DEPTH} levels, found more")
        fields: dict[int, Any] = {}
        field_id = 0
        while header := self._byte():
            kind, delta = header & 0x0F, header >> 4
            field_id = field_id + delta if delta else self._signed()
            # a boolean field is its own value
            fields[field_id] = kind == _TRUE if kind in {_TRUE, _FALSE} else self._value(kind, depth + 1)
            if field_id == last:
                break
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2 | 3:  # booleans in lists take a byte each
                return self._byte()
            case 4 | 5 | 6:
                return self._signed()
            case 7:
                return struct.unpack("<d", self._take(8))[0]
            case 8:
                return self._take(self._unsigned())
            case 9 | 10:
                return self._list(depth)
            case 11:
                return self._map(depth)
            case 12:
                return self.struct(depth)
        raise FormatError(f"expected a type of Thrift, found {kind}")

    def _list(self, depth: int) -> list[Any]:
        kind, size = self._list_header()
        return [self._value(kind, depth + 1) for _ in range(size)]

    def _list_header(self) -> tuple[int, int]:
        header = self._byte()
        size = header >> 4
        if size == _LONG_LIST:
            size = self._unsigned()
        self._check_size(size)
        return header & 0x0F, size

    def _map(self, depth: int) -> list[tuple[Any, Any]]:
        size = self._unsigned()
        self._check_size(size)
        kinds = self._byte() if size else 0
        return [(self._value(kinds >> 4, depth + 1), self._value(kinds & 0x0F, depth + 1)) for _ in range(size)]

    def _check_size(self, size: int) -> None:
        # every value takes at least a byte
        if size > len(self._data) - self._place:
            raise FormatError(f"expected a Parquet footer, found a list of {size:,} values in it")

    def _byte(self) -> int:
        byte = self._data[self._place]
        self._place += 1
        return byte

    def _take(self, length: int) -> bytes:
        end = self._place + length
        if end > len(self._data):
            raise FormatError("expected a Parquet footer, found an end inside it")
        taken = self._data[self._place : end]
        self._place = end
        return taken

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004  (the last byte of a number has no high bit)
                return value
            shift += 7
            if shift > 63:  # noqa: PLR2004
                raise FormatError("expected a Parquet footer, found a number without end in it")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
