"""Avro records as columns: decoded by polars, found by field id, whatever the writer called them.

Avro's binary form has no names: a record is its fields one after the other. So the writer's schema may be put in other
words before polars sees it: canonical names for the ids that we know, plain numbers in place of dates and decimals.
"""

import io
from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

from bergline.errors import FormatError
from bergline.format.avro_container import Container, container_header, encode_bytes, encode_long

_SYNC = b"bergline's block"
_END = "the record after the last one"
_MAX_DEPTH = 16
_SIZES = {"boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


class Layout(msgspec.Struct, frozen=True):
    """The names that we give to a record's fields by their ids; `nested` holds the layouts of records inside."""

    names: Mapping[int, str]
    nested: Mapping[str, "Layout"] = {}
    others: bool = False
    """Whether fields with other ids are kept, named by their id."""


class _Plain(msgspec.Struct, frozen=True):
    """A type in polars' words: the least bytes that a value takes, and the bytes of an empty value."""

    schema: Any
    least: int
    empty: bytes


def decode_columns(container: Container, layout: Layout, source: str) -> pl.DataFrame:
    """The records of a file; nested records stay structs. Fields without a known id have names that begin with `-`."""
    try:
        plain = _Renamer().record(container.schema, layout, 0)
    except _NoRecord as error:
        raise FormatError(f"expected an Avro record, found {error} in {source}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"expected an Avro schema, found {_short(container.schema)} in {source}") from error
    except FormatError as error:
        raise FormatError(f"{error} in {source}") from error
    # polars allocates for as many records as a block says it has
    if container.records * plain.least > len(container.data):
        raise FormatError(f"expected {container.records:,} records, found {len(container.data):,} bytes in {source}")
    frame = _decode(plain, container, source)
    # polars neither knows nor tells where it stopped: a record of ours behind the others shows that it was there
    if frame.height != container.records + 1 or not _is_end(frame.row(-1)):
        raise FormatError(f"expected {container.records:,} records, found others in {source}")
    return frame.head(container.records)


def _decode(plain: _Plain, container: Container, source: str) -> pl.DataFrame:
    header = container_header({"avro.schema": msgspec.json.encode(plain.schema), "avro.codec": b"null"}, _SYNC)
    block = container.data + plain.empty
    try:
        return pl.read_avro(
            io.BytesIO(b"".join((header, encode_long(container.records + 1), encode_bytes(block), _SYNC)))
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        # a panic is how polars says that a length in the bytes points past their end
        raise FormatError(f"expected Avro records, found {str(error).splitlines()[0][:120]} in {source}") from error


def _is_end(row: tuple[Any, ...]) -> bool:
    texts = [v for value in row for v in (value.values() if isinstance(value, dict) else [value]) if isinstance(v, str)]
    return bool(texts) and all(t == _END for t in texts)


class _NoRecord(Exception):  # noqa: N818  (never leaves this module)
    """What stands where a record was expected."""


class _Renamer:
    """Puts a writer's schema in polars' words; named types are looked up and written out."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._count = 0

    def record(self, schema: Any, layout: Layout | None, depth: int) -> _Plain:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise _NoRecord(_short(schema))
        if depth > _MAX_DEPTH:
            raise FormatError(f"expected at most {_MAX_DEPTH} levels of Avro records, found more")
        self._remember(schema)
        fields: list[dict[str, Any]] = []
        least, empty = 0, b""
        for field in schema["fields"]:
            name = self._name(field, layout)
            if any(f["name"] == name for f in fields):
                raise FormatError(f"expected each field id once, found `{field.get('field-id')}` twice")
            nested = layout.nested.get(name) if layout else None
            plain = self._type(field["type"], nested, depth + 1)
            if plain.least or plain.empty:  # what takes no bytes can be left out
                fields.append({"name": name, "type": plain.schema})
                least, empty = least + plain.least, empty + plain.empty
        return _Plain({"type": "record", "name": self._fresh(), "fields": fields}, least, empty)

    def _type(self, schema: Any, layout: Layout | None, depth: int) -> _Plain:
        if isinstance(schema, list):
            return self._union(schema, layout, depth)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self._type(kind, layout, depth + 1) if depth < _MAX_DEPTH else self.record(None, None, depth)
        match kind:
            case "null":
                return _Plain("null", 0, b"")
            case "string":
                return _Plain("string", 1, encode_bytes(_END.encode()))
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
                return _fixed(schema["size"], self._fresh())
            case "enum":
                self._remember(schema)
                return _Plain("int", 1, b"\x00")
            case str() if kind in _SIZES:
                return _Plain(kind, _SIZES[kind], b"\x00" * _SIZES[kind])
            case str() if kind in self._named and depth < _MAX_DEPTH:
                return self._type(self._named[kind], layout, depth + 1)
        raise FormatError(f"expected an Avro type, found {_short(schema)}")

    def _union(self, options: list[Any], layout: Layout | None, depth: int) -> _Plain:
        if len(options) != 2 or options.count("null") != 1:  # noqa: PLR2004
            raise FormatError(f"expected Avro unions of null and one type, found {_short(options)}")
        place = options.index("null")
        plain = self._type(options[1 - place], layout, depth + 1)
        if not plain.least:
            return _Plain({"type": "fixed", "name": self._fresh(), "size": 1}, 1, encode_long(place))
        both = ["null", plain.schema] if place == 0 else [plain.schema, "null"]
        return _Plain(both, 1, encode_long(place))

    def _array(self, items: _Plain) -> _Plain:
        if not items.least:
            raise FormatError("expected Avro arrays of something, found one of items without bytes")
        return _Plain({"type": "array", "items": items.schema}, 1, b"\x00")

    def _name(self, field: Mapping[str, Any], layout: Layout | None) -> str:
        field_id = field.get("field-id")
        if layout is not None and isinstance(field_id, int):
            if field_id in layout.names:
                return layout.names[field_id]
            if layout.others:
                return str(field_id)
        return f"-{self._fresh()}"

    def _remember(self, schema: Mapping[str, Any]) -> None:
        name = schema["name"]
        self._named[name] = self._named[name.rpartition(".")[2]] = schema
        if namespace := schema.get("namespace"):
            self._named[f"{namespace}.{name}"] = schema

    def _fresh(self) -> str:
        self._count += 1
        return f"n{self._count}"


def _fixed(size: int, name: str) -> _Plain:
    if not 0 < size < 2**31:
        raise FormatError(f"expected a size of an Avro fixed type, found {size}")
    return _Plain({"type": "fixed", "name": name, "size": size}, size, b"\x00" * size)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004
