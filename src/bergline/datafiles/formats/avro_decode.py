"""Avro records decoded in plain Python, for executors, which may lack polars.

A column reads one value after another from a block and keeps it; its array is built once at the end.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from bergline.errors import FormatError

_HIGH_BIT = 0x80
_LONGEST_SHIFT = 70
_LIMIT = 1 << 64
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.binary(),
}


def decode_records(schema: Any, blocks: Sequence[tuple[int, bytes]], columns: Sequence[str]) -> dict[str, pa.Array]:
    """Some fields of a record type, by name, of blocks with a number of records each.

    The schema is one of `AvroType.decoded`; strings are binary. FormatError if the bytes are not such records.
    """
    record = _Record(schema)
    for count, block in blocks:
        cursor = _Cursor(block)
        try:
            for _ in range(count):
                record.read(cursor)
        except (IndexError, struct.error) as error:
            raise FormatError(f"expected {count:,} records, found an end after {len(block):,} bytes") from error
        if cursor.place != len(block):
            raise FormatError(f"expected {count:,} records, found {len(block) - cursor.place:,} bytes behind them")
    return {name: column.array() for name, column in record.columns.items() if name in columns}


class _Cursor:
    """A position in the bytes of a block."""

    __slots__ = ("data", "place")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def long(self) -> int:
        """A number in zigzag encoding; IndexError behind the end."""
        data, place = self.data, self.place
        byte = data[place]
        place += 1
        value, shift = byte & 0x7F, 7
        while byte >= _HIGH_BIT:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if value >= _LIMIT or shift > _LONGEST_SHIFT:
                raise FormatError("expected a number of at most 64 bits, found a longer one")
        self.place = place
        return (value >> 1) ^ -(value & 1)

    def take(self, length: int) -> bytes:
        """The next bytes; FormatError if there are fewer."""
        place = self.place
        end = place + length
        if length < 0 or end > len(self.data):
            raise FormatError(f"expected {length:,} bytes, found {len(self.data) - place:,}")
        self.place = end
        return self.data[place:end]


class _Column(Protocol):
    """The values of one type."""

    def read(self, cursor: _Cursor) -> None:
        """Read the next value and append it."""
        ...

    def add_null(self) -> None:
        """Append a null."""
        ...

    def array(self) -> pa.Array:
        """All values."""
        ...


def _column(schema: Any) -> _Column:
    if isinstance(schema, list):
        return _Nullable(schema)
    if isinstance(schema, str):
        return _Values(_READ[schema], _PLAIN[schema])
    match schema["type"]:
        case "record":
            return _Record(schema)
        case "array":
            return _List(schema)
    size = schema["size"]
    return _Values(lambda cursor: cursor.take(size), pa.binary())


class _Values:
    """Values without parts."""

    def __init__(self, read: Callable[[_Cursor], Any], type_: pa.DataType) -> None:
        self._read = read
        self._type = type_
        self._values: list[Any] = []
        self._append = self._values.append

    def read(self, cursor: _Cursor) -> None:
        self._append(self._read(cursor))

    def add_null(self) -> None:
        self._append(None)

    def array(self) -> pa.Array:
        return pa.array(self._values, self._type)


class _Nullable:
    """A union of null and something."""

    def __init__(self, options: Sequence[Any]) -> None:
        self._null = options.index("null")
        self._column = _column(options[1 - self._null])

    def read(self, cursor: _Cursor) -> None:
        option = cursor.long()
        if option == self._null:
            self._column.add_null()
        elif option == 1 - self._null:
            self._column.read(cursor)
        else:
            raise FormatError(f"expected the number of an option, 0 or 1, found {option}")

    def add_null(self) -> None:
        self._column.add_null()

    def array(self) -> pa.Array:
        return self._column.array()


class _Record:
    def __init__(self, schema: Any) -> None:
        self.columns = {field["name"]: _column(field["type"]) for field in schema["fields"]}
        self._reads = [column.read for column in self.columns.values()]
        self._nulls: list[bool] = []

    def read(self, cursor: _Cursor) -> None:
        self._nulls.append(False)
        for read in self._reads:
            read(cursor)

    def add_null(self) -> None:
        self._nulls.append(True)
        for column in self.columns.values():
            column.add_null()

    def array(self) -> pa.Array:
        arrays = [column.array() for column in self.columns.values()]
        return pa.StructArray.from_arrays(arrays, list(self.columns), mask=pa.array(self._nulls, pa.bool_()))


class _List:
    def __init__(self, schema: Any) -> None:
        self._items = _column(schema["items"])
        self._offsets = [0]
        self._nulls: list[bool] = []

    def read(self, cursor: _Cursor) -> None:
        end = self._offsets[-1]
        while count := cursor.long():
            if count < 0:  # the size of the items in bytes follows
                cursor.long()
            for _ in range(abs(count)):
                self._items.read(cursor)
            end += abs(count)
        self._offsets.append(end)
        self._nulls.append(False)

    def add_null(self) -> None:
        self._offsets.append(self._offsets[-1])
        self._nulls.append(True)

    def array(self) -> pa.Array:
        offsets, nulls = pa.array(self._offsets, pa.int32()), pa.array(self._nulls, pa.bool_())
        return pa.ListArray.from_arrays(offsets, self._items.array(), mask=nulls)


def _boolean(cursor: _Cursor) -> bool:
    byte = cursor.data[cursor.place]
    cursor.place += 1
    if byte > 1:
        raise FormatError(f"expected a boolean, 0 or 1, found {byte}")
    return byte == 1


def _real(form: str) -> Callable[[_Cursor], float]:
    packed = struct.Struct(form)

    def read(cursor: _Cursor) -> float:
        (value,) = packed.unpack_from(cursor.data, cursor.place)
        cursor.place += packed.size
        return float(value)

    return read


def _bytes(cursor: _Cursor) -> bytes:
    return cursor.take(cursor.long())


_READ: dict[str, Callable[[_Cursor], Any]] = {
    "boolean": _boolean,
    "long": _Cursor.long,
    "float": _real("<f"),
    "double": _real("<d"),
    "bytes": _bytes,
    "string": _bytes,
}
