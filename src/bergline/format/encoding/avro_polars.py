"""A writer's Avro schema translated to one that polars can decode.

Avro's binary encoding contains no names: a record is the sequence of its fields. So polars can be given a different
schema for the same bytes: canonical names for known field ids, plain integers instead of dates and decimals.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import container_header, encode_bytes, encode_long

SYNC = b"bergline's block"
"""The sync marker of the block that polars is given."""
END = "the record after the last one"
"""The text in the sentinel record after each file's records."""
_MAX_DEPTH = 16
_MAX_FIXED = 1 << 20
_MAX_TYPES = 10_000
_SIZES = {"boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


class RecordLayout(msgspec.Struct, frozen=True, eq=False):
    """The column names of a record's fields by field id; `nested` holds the layouts of nested records."""

    names: Mapping[int, str]
    nested: Mapping[str, "RecordLayout"] = {}
    others: bool = False
    """Whether fields with other ids are kept, under their id as name."""


class PolarsType(msgspec.Struct, frozen=True):
    """A translated type, with the minimum size of a value and the encoding of an empty value."""

    schema: Any
    least: int
    empty: bytes
    header: bytes = b""
    has_text: bool = False
    """Whether the sentinel record can be recognized by it."""
    size: int | None = None
    """The length of a `fixed` type."""
    fixed: Mapping[str, int] = {}
    """The fields of `fixed` types in the schema, with their lengths."""


@lru_cache(maxsize=64)
def polars_schema(schema: bytes, layout: RecordLayout, *, lengths: bool = False) -> PolarsType:
    """Translate a writer's schema; `lengths` says whether `fixed` values start with their length.

    Cached, because thousands of manifests share a few schemas.
    """
    try:
        parsed = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"expected an Avro file, found a schema that is not JSON ({error})") from error
    try:
        renamer = _SchemaTranslator(lengths=lengths)
        plain = renamer.record(parsed, layout, 0)
    except _NoRecord as error:
        raise FormatError(f"expected an Avro record, found {error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"expected an Avro schema, found {_short(parsed)}") from error
    header = container_header({"avro.schema": msgspec.json.encode(plain.schema), "avro.codec": b"null"}, SYNC)
    return msgspec.structs.replace(plain, header=header, fixed=renamer.fixed)


class _NoRecord(Exception):  # noqa: N818  (never leaves this module)
    """Describes what was found in place of a record."""


class _SchemaTranslator:
    """Translates a writer's schema; named types are resolved and inlined."""

    def __init__(self, *, lengths: bool) -> None:
        self._lengths = lengths
        self._named: dict[str, tuple[Any, str]] = {}
        self._namespace = ""
        self._count = 0
        self._types = 0
        self.fixed: dict[str, int] = {}

    def record(self, schema: Any, layout: RecordLayout | None, depth: int) -> PolarsType:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise _NoRecord(_short(schema))
        around = self._namespace
        self._namespace = self._remember(schema)
        fields: dict[str, Any] = {}
        least, empty, has_text = 0, b"", False
        for field in schema["fields"]:
            name = self._name(field, layout)
            if name in fields:
                raise FormatError(f"expected each field id once, found `{field.get('field-id')}` twice")
            nested = layout.nested.get(name) if layout else None
            plain = self._type(field["type"], nested, depth + 1)
            if layout is None or not layout.others:
                plain = _widened(plain)
            if plain.size is not None and not name.startswith("-"):
                self.fixed[name] = plain.size
            if plain.least or plain.empty:  # values of zero size can be omitted
                fields[name] = plain.schema
                least, empty, has_text = least + plain.least, empty + plain.empty, has_text or plain.has_text
            if len(empty) > _MAX_FIXED:
                raise FormatError(f"expected at most {_MAX_FIXED:,} bytes of fixed types in an Avro record, found more")
        if not depth and not least:
            raise _NoRecord("one without fields")
        self._namespace = around
        columns = [{"name": name, "type": type_} for name, type_ in fields.items()]
        return PolarsType({"type": "record", "name": self._fresh(), "fields": columns}, least, empty, has_text=has_text)

    def _type(self, schema: Any, layout: RecordLayout | None, depth: int) -> PolarsType:
        self._types += 1
        if depth > _MAX_DEPTH or self._types > _MAX_TYPES:  # named types may be recursive
            raise FormatError(f"expected an Avro schema of at most {_MAX_DEPTH} levels, found more")
        if isinstance(schema, list):
            return self._union(schema, layout, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._type(kind, layout, depth + 1)
        match kind:
            case "null":
                return PolarsType("null", 0, b"")
            case "string":
                return PolarsType("string", 1, encode_bytes(END.encode()), has_text=True)
            case "record":
                return self.record(schema, layout, depth)
            case "array":
                return self._array(self._type(schema["items"], layout, depth + 1))
            case "map":  # a map is stored as an array of pairs
                value = {"name": "value", "type": schema["values"]}
                pair = {"type": "record", "name": "-", "fields": [{"name": "key", "type": "string"}, value]}
                return self._array(self._type(pair, layout, depth + 1))
            case "fixed":
                self._remember(schema)
                plain = _fixed(schema["size"], self._fresh())
                if "logicalType" in schema:
                    return plain
                if self._lengths:
                    plain = PolarsType("bytes", 1, b"\x00")
                return msgspec.structs.replace(plain, size=schema["size"])
            case "enum":
                self._remember(schema)
                return PolarsType("int", 1, b"\x00")
            case str() if kind in _SIZES:
                return PolarsType(kind, _SIZES[kind], b"\x00" * _SIZES[kind])
            case str() if named := self._find(kind):
                around = self._namespace
                definition, self._namespace = named
                plain = self._type(definition, layout, depth + 1)
                self._namespace = around
                return plain
        raise FormatError(f"expected an Avro type, found {_short(schema)}")

    def _union(self, options: list[Any], layout: RecordLayout | None, depth: int) -> PolarsType:
        if len(options) != 2 or options.count("null") != 1:  # noqa: PLR2004
            raise FormatError(f"expected Avro unions of null and one type, found {_short(options)}")
        place = options.index("null")
        plain = self._type(options[1 - place], layout, depth + 1)
        if not plain.least:
            return PolarsType({"type": "fixed", "name": self._fresh(), "size": 1}, 1, encode_long(place))
        both = ["null", plain.schema] if place == 0 else [plain.schema, "null"]
        if plain.has_text:
            return PolarsType(both, 1, encode_long(1 - place) + plain.empty, has_text=True)
        return PolarsType(both, 1, encode_long(place), size=plain.size)

    def _array(self, items: PolarsType) -> PolarsType:
        if not items.least:
            raise FormatError("expected Avro arrays of something, found one of items without bytes")
        return PolarsType({"type": "array", "items": _widened(items).schema}, 1, b"\x00")

    def _name(self, field: Mapping[str, Any], layout: RecordLayout | None) -> str:
        field_id = field.get("field-id")
        if layout is not None and isinstance(field_id, int):
            if field_id in layout.names:
                return layout.names[field_id]
            if layout.others:
                return str(field_id)
        return f"-{self._fresh()}"

    def _remember(self, schema: Mapping[str, Any]) -> str:
        """Register a named type; returns its namespace, which applies to the names inside it."""
        namespace, _, name = schema["name"].rpartition(".")
        namespace = namespace or schema.get("namespace", self._namespace)
        self._named[f"{namespace}.{name}"] = (schema, self._namespace)
        return str(namespace)

    def _find(self, name: str) -> tuple[Any, str] | None:
        """Look up a named type and the namespace of its definition."""
        return self._named.get(name if "." in name else f"{self._namespace}.{name}")

    def _fresh(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _widened(plain: PolarsType) -> PolarsType:
    """Read int as long: polars would truncate values that do not fit, where we raise an error."""
    if isinstance(plain.schema, list):
        return msgspec.structs.replace(plain, schema=["long" if s == "int" else s for s in plain.schema])
    return msgspec.structs.replace(plain, schema="long") if plain.schema == "int" else plain


def _fixed(size: int, name: str) -> PolarsType:
    if not 0 < size <= _MAX_FIXED:
        raise FormatError(f"expected a size of an Avro fixed type of 1 to {_MAX_FIXED:,}, found {size}")
    return PolarsType({"type": "fixed", "name": name, "size": size}, size, b"\x00" * size)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004
