"""An Avro schema as the physical schema of a data file, and as a simpler schema that decodes the same bytes.

polars knows neither maps nor logical types, and does not report where it stopped. So a record of known values is
appended after the file's own records: if it comes back intact, all bytes were read as intended.
"""

import struct
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from bergline.datafiles.file.arrow_schema import FIELD_ID
from bergline.errors import FormatError
from bergline.format.encoding.avro_container import encode_bytes, encode_long
from bergline.format.types.types import MAX_DECIMAL_PRECISION, MAX_NESTING

_MAX_FIXED = 1 << 20
_MAX_TYPES = 100_000
_TEXT, _NUMBER, _REAL = "\x00end of the Avro records\x00", 0x6265_7267_6C69_6E, 1.5
_PAIR = 2
_LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms"),
    ("long", "timestamp-micros"): pa.timestamp("us"),
    ("long", "timestamp-nanos"): pa.timestamp("ns"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


class AvroType(msgspec.Struct, frozen=True):
    """A type of the file, and the type that decoders are given instead."""

    physical: pa.DataType
    decoded: Any
    """The type for decoders: without maps, logical types and ints; None if values have no bytes."""
    least: int
    """The minimum size of a value in bytes."""
    mark: bytes = b""
    """The encoding of a known value."""
    marked: Any = None
    """That value as polars returns it."""
    nullable: bool = False


def parse_avro_schema(schema: bytes) -> AvroType:
    """The record type of a file; FormatError if it is none, or one that Iceberg does not allow."""
    try:
        parsed = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"expected an Avro file, found a schema that is not JSON ({error})") from error
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise FormatError(f"expected an Avro record, found {str(parsed)[:80]}")
    try:
        return _Parser().type(parsed)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"expected an Avro schema, found {str(parsed)[:80]}") from error


_PLAIN: dict[str, AvroType] = {
    "null": AvroType(pa.null(), None, 0, nullable=True),
    "boolean": AvroType(pa.bool_(), "boolean", 1, b"\x01", True),
    # polars would cut off an int that does not fit
    "int": AvroType(pa.int32(), "long", 1, encode_long(_NUMBER), _NUMBER),
    "long": AvroType(pa.int64(), "long", 1, encode_long(_NUMBER), _NUMBER),
    "float": AvroType(pa.float32(), "float", 4, struct.pack("<f", _REAL), _REAL),
    "double": AvroType(pa.float64(), "double", 8, struct.pack("<d", _REAL), _REAL),
    "bytes": AvroType(pa.binary(), "bytes", 1, encode_bytes(_TEXT.encode()), _TEXT.encode()),
    "string": AvroType(pa.string(), "string", 1, encode_bytes(_TEXT.encode()), _TEXT),
}


class _Parser:
    """Resolves named types, which may be used before and inside others."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[Any, str]] = {}
        self._namespace = ""
        self._count = 0

    def type(self, schema: Any, depth: int = 0) -> AvroType:
        self._count += 1
        if depth > MAX_NESTING or self._count > _MAX_TYPES:  # named types may be recursive
            raise FormatError(f"expected an Avro schema of at most {MAX_NESTING} levels, found more")
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            return self._reference(schema, depth)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.type(kind, depth + 1)
        match kind:
            case "record":
                return self._record(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "map":
                key, value = _PLAIN["string"], self.type(schema["values"], depth + 1)
                fields = [_field("key", key, schema.get("key-id")), _field("value", value, schema.get("value-id"))]
                return self._pairs(fields, key, value)
            case "fixed":
                self._remember(schema)
                return self._fixed(schema)
        return _logical(self._reference(kind, depth), kind, schema)

    def _reference(self, name: str, depth: int) -> AvroType:
        if name in _PLAIN:
            return _PLAIN[name]
        known = self._named.get(name if "." in name else f"{self._namespace}.{name}")
        if known is None:
            raise FormatError(f"expected an Avro type that Iceberg has, found {name[:80]}")
        around = self._namespace
        definition, self._namespace = known
        found = self.type(definition, depth + 1)
        self._namespace = around
        return found

    def _record(self, schema: Mapping[str, Any], depth: int) -> AvroType:
        around = self._namespace
        self._namespace = self._remember(schema)
        fields, types = [], []
        for wire in schema["fields"]:
            types.append(self.type(wire["type"], depth + 1))
            name = wire.get("iceberg-field-name", wire["name"])
            fields.append(_field(name, types[-1], wire.get("field-id")))
        self._namespace = around
        if len({f.name for f in fields}) != len(fields):
            raise FormatError("expected each column name once, found one twice")
        return self._struct(fields, types)

    def _struct(self, fields: list[pa.Field], types: list[AvroType]) -> AvroType:
        stored = [(f.name, t) for f, t in zip(fields, types, strict=True) if t.decoded is not None]
        decoded = {
            "type": "record",
            "name": self._fresh(),
            "fields": [{"name": name, "type": t.decoded} for name, t in stored],
        }
        return AvroType(
            pa.struct(fields),
            decoded if stored else None,
            sum(t.least for _, t in stored),
            b"".join(t.mark for _, t in stored),
            {name: t.marked for name, t in stored},
        )

    def _array(self, schema: Mapping[str, Any], depth: int) -> AvroType:
        items = self.type(schema["items"], depth + 1)
        if schema.get("logicalType") == "map":
            key, value = items.physical
            pair = {"type": items.decoded}
            if items.nullable or items.decoded is None or len(pair["type"]["fields"]) != _PAIR:
                raise FormatError("expected pairs of a key and a value in an Avro map, found others")
            return _list(pa.map_(key.with_nullable(False), value), items)
        if items.decoded is None:
            raise FormatError("expected Avro arrays of something, found one of items without bytes")
        return _list(pa.list_(_field("element", items, schema.get("element-id"))), items)

    def _pairs(self, fields: list[pa.Field], key: AvroType, value: AvroType) -> AvroType:
        if value.decoded is None:
            raise FormatError("expected Avro maps of something, found one of values without bytes")
        return _list(pa.map_(*fields), self._struct(fields, [key, value]))

    def _union(self, options: list[Any], depth: int) -> AvroType:
        if len(options) == 1:
            return self.type(options[0], depth + 1)
        if len(options) != 2 or options.count("null") != 1:  # noqa: PLR2004
            raise FormatError(f"expected Avro unions of null and one type, found {str(options)[:80]}")
        place = options.index("null")
        found = self.type(options[1 - place], depth + 1)
        if found.decoded is None:
            raise FormatError(f"expected Avro unions of null and something, found {str(options)[:80]}")
        both = ["null", found.decoded] if place == 0 else [found.decoded, "null"]
        mark = encode_long(1 - place) + found.mark
        return msgspec.structs.replace(found, decoded=both, least=1, mark=mark, nullable=True)

    def _fixed(self, schema: Mapping[str, Any]) -> AvroType:
        size = schema["size"]
        if not 0 < size <= _MAX_FIXED:
            raise FormatError(f"expected a size of an Avro fixed type of 1 to {_MAX_FIXED:,}, found {size}")
        decoded = {"type": "fixed", "name": self._fresh(), "size": size}
        found = AvroType(pa.binary(size), decoded, size, b"\xa5" * size, b"\xa5" * size)
        return _logical(found, "fixed", schema)

    def _remember(self, schema: Mapping[str, Any]) -> str:
        """Register a named type; returns its namespace, which applies to the names inside it."""
        namespace, _, name = schema["name"].rpartition(".")
        namespace = namespace or schema.get("namespace") or self._namespace
        self._named[f"{namespace}.{name}"] = (schema, self._namespace)
        return str(namespace)

    def _fresh(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _list(physical: pa.DataType, items: AvroType) -> AvroType:
    mark = encode_long(1) + items.mark + b"\x00"
    return AvroType(physical, {"type": "array", "items": items.decoded}, 1, mark, [items.marked])


def _logical(found: AvroType, kind: str, schema: Mapping[str, Any]) -> AvroType:
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in {"fixed", "bytes"}:
        precision, scale = schema["precision"], schema.get("scale", 0)
        if not 0 <= scale <= precision <= MAX_DECIMAL_PRECISION:
            raise FormatError(f"expected at most {MAX_DECIMAL_PRECISION} digits, found decimal({precision}, {scale})")
        return msgspec.structs.replace(found, physical=pa.decimal128(precision, scale))
    physical = _LOGICAL.get((kind, str(logical)))
    if physical is None:
        return found
    if pa.types.is_timestamp(physical) and schema.get("adjust-to-utc") is True:
        physical = pa.timestamp(physical.unit, "UTC")
    return msgspec.structs.replace(found, physical=physical)


def _field(name: str, type_: AvroType, field_id: int | None) -> pa.Field:
    metadata = None if field_id is None else {FIELD_ID: str(int(field_id)).encode()}
    return pa.field(name, type_.physical, type_.nullable, metadata)
