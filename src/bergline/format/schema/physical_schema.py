"""The physical schema of a data file: names, field ids and types of its columns as stored.

It comes from a file's footer, or from the header of a manifest written by bergline, under a key of our own, for files
that our writer wrote; the table's schemas do not tell. A header that cannot be parsed is ignored.
"""

import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from bergline.errors import BerglineError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.schema.name_mapping import MappedField, NameMapping
from bergline.format.types.types import UNKNOWN, IcebergType, ListType, MapType, NestedField, StructType, walk_fields

NO_ID = -1
"""The id of a column without one in its file."""
OTHER = UNKNOWN
"""The type of a column whose storage has no Iceberg type; no file stores `unknown` itself."""

_SCHEMAS = "bergline.physical-schemas"
_RUNS = "bergline.physical-schema-runs"
_NONE = -1
_MOST_SCHEMAS = 10_000


def physical_schema(fields: Sequence[NestedField]) -> StructType:
    """What our writer stores for columns: without comments, defaults and other things that files do not have."""
    return StructType(tuple(_bare(f) for f in fields))


def render_physical_schemas(schemas: Iterable[StructType | None]) -> dict[str, str]:
    """Manifest header metadata with the physical schemas of the entries' files; empty if none is known."""
    numbers: dict[StructType, int] = {}
    last: StructType | None = None
    runs: list[list[int]] = []
    for schema in schemas:
        if runs and schema is last:
            runs[-1][1] += 1
            continue
        number, last = _NONE if schema is None else numbers.setdefault(schema, len(numbers)), schema
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    if not numbers:
        return {}
    rendered = encode_json([schema.fields for schema in numbers]).decode()
    return {_SCHEMAS: rendered, _RUNS: msgspec.json.encode(runs).decode()}


def parse_physical_schemas(header: Mapping[str, bytes], entries: int) -> list[tuple[int | None, int]]:
    """The physical schema numbers of a manifest's files, run-length encoded: (number, count of entries)."""
    unknown: list[tuple[int | None, int]] = [(None, entries)]
    if _SCHEMAS not in header or _RUNS not in header:
        return unknown
    try:
        schemas = _parsed(header[_SCHEMAS])
        runs = msgspec.json.decode(header[_RUNS], type=list[tuple[int, int]])
    except (BerglineError, msgspec.MsgspecError, UnicodeDecodeError):
        return unknown
    if sum(n for _, n in runs) != entries or any(n < 1 or not _NONE <= i < len(schemas) for i, n in runs):
        return unknown
    return [(None if i == _NONE else number_of(schemas[i]), n) for i, n in runs]


def number_of(schema: StructType) -> int:
    """The process-wide number of a schema; files carry numbers because schemas are large and mostly alike."""
    return _NUMBERED.number_of(schema)


def schema_of(number: int | None) -> StructType | None:
    """The schema of a number; None if it was evicted by ten thousand others."""
    return None if number is None else _NUMBERED.schema_of(number)


def with_mapped_ids(schema: StructType, mapping: NameMapping | None) -> StructType | None:
    """The schema with its own ids, or if it has none at any level, those of a mapping; None without both."""
    if not schema.fields or any(f.id != NO_ID for _, f in walk_fields(schema.fields)):
        return schema
    if mapping is None:
        return None
    return StructType(tuple(_mapped(f, mapping.by_name.get(f.name)) for f in schema.fields))


class _Number(msgspec.Struct, frozen=True, weakref=True):
    """A schema and its number."""

    number: int
    schema: StructType


class _Numbered:
    """An LRU registry of schemas and their numbers; a number is never reused."""

    def __init__(self, limit: int) -> None:
        self._next = itertools.count()
        self._by_number: weakref.WeakValueDictionary[int, _Number] = weakref.WeakValueDictionary()
        self._of = lru_cache(maxsize=limit)(self._new)  # the only strong reference to a number

    def number_of(self, schema: StructType) -> int:
        return self._of(schema).number

    def schema_of(self, number: int) -> StructType | None:
        found = self._by_number.get(number)
        return None if found is None else found.schema

    def _new(self, schema: StructType) -> _Number:
        number = _Number(next(self._next), schema)
        self._by_number[number.number] = number
        return number


_NUMBERED = _Numbered(_MOST_SCHEMAS)


@lru_cache(maxsize=256)
def _parsed(text: bytes) -> tuple[StructType, ...]:
    found = decode_json(text, tuple[tuple[NestedField, ...], ...], _SCHEMAS)
    return tuple(StructType(fields) for fields in found)


def _bare(field: NestedField) -> NestedField:
    return NestedField(field.id, field.name, False, _bare_type(field.type))


def _bare_type(type_: IcebergType) -> IcebergType:
    match type_:
        case StructType(fields):
            return physical_schema(fields)
        case ListType(element_id, element, _):
            return ListType(element_id, _bare_type(element), False)
        case MapType(key_id, key, value_id, value, _):
            return MapType(key_id, _bare_type(key), value_id, _bare_type(value), False)
    return type_


def _mapped(field: NestedField, mapped: MappedField | None) -> NestedField:
    if mapped is None:
        return field
    return NestedField(_mapped_id(mapped), field.name, False, _mapped_type(field.type, mapped))


def _mapped_type(type_: IcebergType, mapped: MappedField) -> IcebergType:
    names = mapped.by_name
    match type_:
        case StructType(fields):
            return StructType(tuple(_mapped(f, names.get(f.name)) for f in fields))
        case ListType(_, element, _):
            inner = names.get("element")
            return type_ if inner is None else ListType(_mapped_id(inner), _mapped_type(element, inner), False)
        case MapType(_, key, _, value, _):
            of_key, of_value = names.get("key", MappedField()), names.get("value", MappedField())
            return MapType(
                _mapped_id(of_key),
                _mapped_type(key, of_key),
                _mapped_id(of_value),
                _mapped_type(value, of_value),
                False,
            )
    return type_


def _mapped_id(mapped: MappedField) -> int:
    return NO_ID if mapped.field_id is None else mapped.field_id
