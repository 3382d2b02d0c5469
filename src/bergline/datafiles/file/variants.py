"""Variants as files store them, as metadata and value; shredded columns are reassembled.

The encoding is that of Parquet's VariantEncoding.md and VariantShredding.md.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.errors import FormatError
from bergline.format.types.single_values import unscaled
from bergline.format.types.types import VARIANT

_METADATA, _VALUE, _TYPED = "metadata", "value", "typed_value"
_VERSION, _VERSION_BITS = 1, 0x0F
# basic types, in the lowest two bits of a value
_PRIMITIVE, _SHORT_TEXT, _OBJECT, _ARRAY = range(4)
_NULL, _TRUE, _FALSE = b"\x00", b"\x04", b"\x08"
_INT8, _INT16, _INT32, _INT64, _DOUBLE, _DECIMAL4, _DECIMAL8, _DECIMAL16, _DATE = range(3, 12)
_TIMESTAMPTZ, _TIMESTAMP, _FLOAT, _BINARY, _TEXT, _TIME, _TIMESTAMPTZ_NS, _TIMESTAMP_NS, _UUID = range(12, 21)
_SIZES = (
    dict.fromkeys((0, 1, 2), 0)
    | {_INT8: 1, _INT16: 2, _INT32: 4, _INT64: 8, _FLOAT: 4, _DOUBLE: 8, _DATE: 4, _UUID: 16}
    | {_DECIMAL4: 5, _DECIMAL8: 9, _DECIMAL16: 17}
    | dict.fromkeys((_TIME, _TIMESTAMPTZ, _TIMESTAMP, _TIMESTAMPTZ_NS, _TIMESTAMP_NS), 8)
)
_LONGEST_SHORT_TEXT = 63
_MOST_IN_ONE_BYTE = 255
_UUID_LENGTH = 16

Encoded = bytes | None
"""The value of a variant; None if an object lacks it."""


def read_variants(array: pa.StructArray, path: str) -> pa.StructArray:
    """The metadata and values of a file's column; FormatError if it holds no variants."""
    try:
        return _read(array)
    except (FormatError, pa.ArrowException, IndexError, KeyError, ValueError, struct.error) as error:
        raise FormatError(f"expected `variant` in column `{path}`, found {error}") from error


def _read(array: pa.StructArray) -> pa.StructArray:
    target, parts = arrow_type(VARIANT), _parts(array)
    if _METADATA not in parts or not parts.keys() - {_METADATA} <= {_VALUE, _TYPED} or len(parts) == 1:
        raise FormatError(f"`{array.type}`")
    present, metadata = array.is_valid(), parts.pop(_METADATA).cast(pa.binary())
    if pc.any(pc.and_(present, metadata.is_null())).as_py():
        raise FormatError("one without metadata")
    if _TYPED in parts:
        known: dict[bytes, _Names] = {}
        names = [known[m] if m in known else known.setdefault(m, _Names(m)) for m in metadata.to_pylist()]
        value = pa.array(_values(parts, names), pa.binary())
    else:
        value = parts[_VALUE].cast(pa.binary())
    # spec: a missing value where there must be one is a variant null
    value = pc.if_else(pc.and_(present, value.is_null()), pa.scalar(_NULL, pa.binary()), value)
    return pa.StructArray.from_arrays([metadata, value], fields=list(target), mask=array.is_null())


class _Names:
    """The names of fields in the metadata of a variant, by id and back; parsed when they are first needed."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data or b""
        self._names: list[bytes] | None = None
        self._ids: dict[bytes, int] = {}

    def name(self, number: int) -> bytes:
        return self._parsed()[number]

    def id(self, name: bytes) -> int:
        self._parsed()
        if name not in self._ids:
            raise FormatError(f"a field `{name.decode(errors='replace')}` that its metadata does not name")
        return self._ids[name]

    def _parsed(self) -> list[bytes]:
        if self._names is None:
            data = self._data
            if not data or data[0] & _VERSION_BITS != _VERSION:
                raise FormatError(f"metadata of another version than {_VERSION}")
            width = (data[0] >> 6) + 1
            count = _number(data, 1, width)
            offsets = _numbers(data, 1 + width, width, count + 1)
            start = 1 + width * (count + 2)
            self._names = [data[start + a : start + b] for a, b in pairwise(offsets)]
            self._ids = {name: number for number, name in enumerate(self._names)}
        return self._names


def _parts(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct, null where it is null itself."""
    return {field.name: part for field, part in zip(array.type, array.flatten(), strict=True)}


def _values(parts: Mapping[str, pa.Array], names: Sequence[_Names]) -> list[Encoded]:
    """Encoded values, some of which are shredded; `names` are those of each value's metadata."""
    plain: list[Encoded] = [None] * len(names)
    if _VALUE in parts:
        plain = parts[_VALUE].cast(pa.binary()).to_pylist()
    if _TYPED not in parts:
        return plain
    typed = parts[_TYPED]
    if isinstance(typed, pa.ExtensionArray):
        typed = typed.storage
    if pa.types.is_struct(typed.type):
        return _objects(typed, plain, names)
    shredded = _arrays(typed, names) if pa.types.is_list(typed.type) else _primitives(typed)
    if any(value is not None and other is not None for value, other in zip(plain, shredded, strict=True)):
        raise FormatError("a value that is shredded and is there as a whole too")
    return [other if value is None else value for value, other in zip(plain, shredded, strict=True)]


def _objects(typed: pa.StructArray, plain: Sequence[Encoded], names: Sequence[_Names]) -> list[Encoded]:
    """Objects assembled from their shredded fields and those left in `plain`; other values are complete in `plain`."""
    fields = {name.encode(): _values(_parts(part), names) for name, part in _parts(typed).items()}
    found: list[Encoded] = []
    for row, (value, is_object) in enumerate(zip(plain, typed.is_valid().to_pylist(), strict=True)):
        if not is_object:
            found.append(value)
            continue
        own = {} if value is None else _fields(value, names[row])
        own |= {name: some for name, values in fields.items() if (some := values[row]) is not None}
        found.append(_object(own, names[row]))
    return found


def _arrays(typed: pa.ListArray, names: Sequence[_Names]) -> list[Encoded]:
    lists = typed.take(pa.array(range(len(typed)), pa.int64()))  # a slice has other offsets than its values
    parents = pc.list_parent_indices(lists).to_pylist()
    elements = _values(_parts(lists.flatten()), [names[parent] for parent in parents])
    found: list[Encoded] = []
    done = 0
    for length in pc.list_value_length(lists).to_pylist():
        if length is None:
            found.append(None)
            continue
        some = elements[done : done + length]
        found.append(_array([_NULL if element is None else element for element in some]))
        done += length
    return found


def _primitives(typed: pa.Array) -> list[Encoded]:
    """Shredded values of one type, encoded."""
    type_, types = typed.type, pa.types
    if types.is_boolean(type_):
        return [None if value is None else _TRUE if value else _FALSE for value in typed.to_pylist()]
    encode: Callable[[Any], bytes]
    if types.is_decimal(type_):
        encode = partial(_decimal, type_.precision, type_.scale)
    elif types.is_string(type_) or types.is_large_string(type_):
        encode = _text
    elif types.is_binary(type_) or types.is_large_binary(type_):
        encode = _bytes
    elif types.is_fixed_size_binary(type_) and type_.byte_width == _UUID_LENGTH:
        encode = partial(_tagged, _UUID)
    else:
        number, layout, plain = _packed(type_)
        typed, encode = typed.cast(plain), lambda value: _tagged(number, struct.pack(layout, value))
    return [None if value is None else encode(value) for value in typed.to_pylist()]


def _packed(type_: pa.DataType) -> tuple[int, str, pa.DataType]:
    """The encoding of a shredded type: its type number, its layout, and the Arrow type of its numbers."""
    types = pa.types
    if types.is_timestamp(type_) and type_.unit in {"us", "ns"}:
        numbers = {"us": (_TIMESTAMP, _TIMESTAMPTZ), "ns": (_TIMESTAMP_NS, _TIMESTAMPTZ_NS)}[type_.unit]
        return numbers[type_.tz is not None], "<q", pa.int64()
    if type_ not in _LAYOUTS:
        raise FormatError(f"a value that is shredded as `{type_}`")
    return _LAYOUTS[type_]


_LAYOUTS: dict[pa.DataType, tuple[int, str, pa.DataType]] = {
    pa.int8(): (_INT8, "<b", pa.int8()),
    pa.int16(): (_INT16, "<h", pa.int16()),
    pa.int32(): (_INT32, "<i", pa.int32()),
    pa.int64(): (_INT64, "<q", pa.int64()),
    pa.float32(): (_FLOAT, "<f", pa.float32()),
    pa.float64(): (_DOUBLE, "<d", pa.float64()),
    pa.date32(): (_DATE, "<i", pa.int32()),
    pa.time64("us"): (_TIME, "<q", pa.int64()),
}


def _tagged(number: int, data: bytes) -> bytes:
    return bytes([number << 2]) + data


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) <= _LONGEST_SHORT_TEXT:
        return bytes([len(data) << 2 | _SHORT_TEXT]) + data
    return _tagged(_TEXT, len(data).to_bytes(4, "little") + data)


def _bytes(data: bytes) -> bytes:
    return _tagged(_BINARY, len(data).to_bytes(4, "little") + data)


def _decimal(precision: int, scale: int, value: Any) -> bytes:
    number, width = next(
        n for most, *n in ((9, _DECIMAL4, 4), (18, _DECIMAL8, 8), (38, _DECIMAL16, 16)) if precision <= most
    )
    return _tagged(number, bytes([scale]) + unscaled(value, scale).to_bytes(width, "little", signed=True))


def _object(fields: Mapping[bytes, bytes], names: _Names) -> bytes:
    ordered = sorted(fields.items())
    ids = [names.id(name) for name, _ in ordered]
    id_width = _width(max(ids, default=0))
    offsets, offset_width = _offsets(value for _, value in ordered)
    large = len(ordered) > _MOST_IN_ONE_BYTE
    header = _OBJECT | (offset_width - 1) << 2 | (id_width - 1) << 4 | large << 6
    return b"".join(
        [
            bytes([header]),
            len(ordered).to_bytes(4 if large else 1, "little"),
            *(number.to_bytes(id_width, "little") for number in ids),
            *(offset.to_bytes(offset_width, "little") for offset in offsets),
            *(value for _, value in ordered),
        ]
    )


def _array(elements: Sequence[bytes]) -> bytes:
    offsets, width = _offsets(elements)
    large = len(elements) > _MOST_IN_ONE_BYTE
    header = _ARRAY | (width - 1) << 2 | large << 4
    count = len(elements).to_bytes(4 if large else 1, "little")
    return b"".join([bytes([header]), count, *(o.to_bytes(width, "little") for o in offsets), *elements])


def _fields(value: bytes, names: _Names) -> dict[bytes, bytes]:
    """The fields of an encoded object, each encoded."""
    header = value[0]
    if header & 3 != _OBJECT:
        raise FormatError("fields that are shredded beside a value that is no object")
    offset_width, id_width, count_width = _object_widths(header)
    count = _number(value, 1, count_width)
    start = 1 + count_width
    ids = _numbers(value, start, id_width, count)
    offsets = _numbers(value, start + count * id_width, offset_width, count)
    first = start + count * id_width + (count + 1) * offset_width
    return {
        names.name(number): value[first + offset : first + offset + _size(value, first + offset)]
        for number, offset in zip(ids, offsets, strict=True)
    }


def _size(value: bytes, place: int) -> int:
    """The size in bytes of the value at an offset."""
    header = value[place]
    kind, more = header & 3, header >> 2
    if kind == _SHORT_TEXT:
        return 1 + more
    if kind == _PRIMITIVE:
        if more in {_BINARY, _TEXT}:
            return 5 + _number(value, place + 1, 4)
        return 1 + _SIZES[more]
    offset_width, id_width, count_width = _object_widths(header)
    if kind == _ARRAY:
        id_width, count_width = 0, 4 if header >> 4 & 1 else 1
    count = _number(value, place + 1, count_width)
    last = 1 + count_width + count * (id_width + offset_width)
    return last + offset_width + _number(value, place + last, offset_width)


def _object_widths(header: int) -> tuple[int, int, int]:
    """The widths of an object's offsets, ids and count."""
    return (header >> 2 & 3) + 1, (header >> 4 & 3) + 1, 4 if header >> 6 & 1 else 1


def _offsets(values: Iterable[bytes]) -> tuple[list[int], int]:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    return offsets, _width(offsets[-1])


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _numbers(data: bytes, start: int, width: int, count: int) -> list[int]:
    if start + width * count > len(data):
        raise FormatError("one that ends too early")
    return [_number(data, start + width * n, width) for n in range(count)]


def _number(data: bytes, start: int, width: int) -> int:
    if start + width > len(data):
        raise FormatError("one that ends too early")
    return int.from_bytes(data[start : start + width], "little")
