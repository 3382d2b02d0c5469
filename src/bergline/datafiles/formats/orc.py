"""ORC files, read stripe by stripe; field ids and the types that ORC lacks are in the attributes of its types."""

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
from pyarrow import orc

from bergline.datafiles.file.arrow_schema import FIELD_ID
from bergline.datafiles.formats.physical_arrays import to_physical
from bergline.errors import FormatError, UnsupportedError
from bergline.format.types.types import MAX_DECIMAL_PRECISION

_BATCH_ROWS = 64 * 1024
_ID, _LONG, _BINARY = b"iceberg.id", b"iceberg.long-type", b"iceberg.binary-type"
_LENGTH, _UNIT = b"iceberg.length", b"iceberg.timestamp-unit"
# fields of the messages FileTail, Footer, StripeInformation and Type
_FOOTER, _STRIPES, _TYPES, _STRIPE_ROWS = 2, 3, 4, 5
_KIND, _PRECISION, _SCALE = 1, 5, 6
_DECIMAL = 14
_TOO_FAR = "out of range for nanosecond resolution"


class OrcInput:
    """An open ORC file."""

    def __init__(self, source: BinaryIO | pa.NativeFile) -> None:
        self._file = orc.ORCFile(source)
        self.group_rows = _checked_stripes(self._file.reader.serialized_file_tail())
        """How many rows each stripe has."""
        self._names = self._file.schema.names
        self.schema = _physical_schema(self._file.schema)
        """The columns of the file, with field ids."""
        if len(self.group_rows) != self._file.nstripes or sum(self.group_rows) != self._file.nrows:
            raise FormatError(f"expected {self._file.nrows} rows, found stripes with {sum(self.group_rows)}")

    @property
    def num_groups(self) -> int:
        """How many stripes there are."""
        return len(self.group_rows)

    def batches(
        self, columns: Sequence[str], groups: Sequence[int] | None = None, most_rows: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of some stripes, or of all, with the position of their first row."""
        chosen = set(range(self.num_groups) if groups is None else groups)
        start = 0
        for stripe, rows in enumerate(self.group_rows):
            if stripe in chosen and rows:
                batch = self._stripe(stripe, rows, columns)
                size = min(_BATCH_ROWS, most_rows or _BATCH_ROWS)
                for first in range(0, rows, size):
                    yield start + first, batch.slice(first, size)
            start += rows

    def _stripe(self, stripe: int, rows: int, columns: Sequence[str]) -> pa.RecordBatch:
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        # the reader would take a name with a dot for the path of a nested column
        by_name = not any("." in name for name in self._names)
        try:
            found = self._file.read_stripe(stripe, columns=list(columns) if by_name else None)
        except pa.ArrowInvalid as error:
            if _TOO_FAR not in str(error):
                raise
            raise UnsupportedError("cannot read timestamps before 1677 or after 2262 of ORC files") from error
        if found.num_rows != rows:
            raise FormatError(f"expected {rows} rows in stripe {stripe}, found {found.num_rows}")
        fields = [self.schema.field(name) for name in columns]
        arrays = [to_physical(found.column(field.name), field.type) for field in fields]
        return pa.record_batch(arrays, schema=pa.schema(fields))


def _physical_schema(schema: pa.Schema) -> pa.Schema:
    try:
        return pa.schema([_physical(f) for f in schema])
    except (KeyError, ValueError) as error:
        raise FormatError(f"expected attributes of ORC types, found others ({error!r})") from error


def _physical(field: pa.Field) -> pa.Field:
    """A column with its field id, in the type that its attributes tell."""
    attributes = field.metadata or {}
    metadata = {FIELD_ID: attributes[_ID]} if _ID in attributes else None
    return pa.field(field.name, _physical_type(field.type, attributes), field.nullable, metadata)


def _physical_type(type_: pa.DataType, attributes: dict[bytes, bytes]) -> pa.DataType:
    types = pa.types
    if types.is_struct(type_):
        return pa.struct([_physical(f) for f in type_])
    if types.is_list(type_):
        return pa.list_(_physical(type_.value_field))
    if types.is_map(type_):
        return pa.map_(_physical(type_.key_field).with_nullable(False), _physical(type_.item_field))
    if types.is_timestamp(type_):
        return type_ if attributes.get(_UNIT) == b"NANOS" else pa.timestamp("us", type_.tz)
    if types.is_int64(type_) and attributes.get(_LONG) == b"TIME":
        return pa.time64("us")
    if types.is_binary(type_) and attributes.get(_BINARY) == b"UUID":
        return pa.binary(16)
    if types.is_binary(type_) and attributes.get(_BINARY) == b"FIXED":
        return pa.binary(int(attributes[_LENGTH]))
    return type_


def _checked_stripes(tail: bytes) -> list[int]:
    """The number of rows in each stripe, by the tail of the file in Protocol Buffers.

    FormatError for types on which Arrow aborts the process.
    """
    try:
        (footer,) = _fields(tail, _FOOTER)
        for type_ in _fields(footer, _TYPES):
            precision, scale = _number(type_, _PRECISION), _number(type_, _SCALE)
            if _number(type_, _KIND) == _DECIMAL and not 0 <= scale <= precision <= MAX_DECIMAL_PRECISION:
                raise FormatError(
                    f"expected at most {MAX_DECIMAL_PRECISION} digits, found decimal({precision}, {scale})"
                )
        return [_number(stripe, _STRIPE_ROWS) for stripe in _fields(footer, _STRIPES)]
    except (IndexError, TypeError, ValueError) as error:
        raise FormatError("expected an ORC footer, found another") from error


def _number(message: bytes, wanted: int) -> int:
    return int(next(iter(_fields(message, wanted)), 0))


def _fields(message: bytes, wanted: int) -> list[Any]:
    """The values of one field of a message."""
    found: list[Any] = []
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        value: Any
        match key & 7:
            case 0:
                value, place = _varint(message, place)
            case 1:
                value, place = None, place + 8
            case 2:
                length, place = _varint(message, place)
                value, place = message[place : place + length], place + length
            case 5:
                value, place = None, place + 4
            case kind:
                raise ValueError(kind)
        if key >> 3 == wanted:
            found.append(value)
    return found


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004  (the last byte of a number has no high bit)
            return value, place
