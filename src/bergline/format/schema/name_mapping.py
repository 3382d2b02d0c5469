"""Name mappings: field ids for the columns of files written without ids.

Stored in the table property `schema.name-mapping.default`; names are given level by level, a dot is part of a name.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from bergline.errors import FormatError
from bergline.format.encoding.integers import Int
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType, NestedField, StructType, child_fields

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"
_MAX_NESTING = 100


class MappedField(msgspec.Struct, frozen=True, rename="kebab", dict=True):
    """The names that a field may have in files; without an id the table does not have it."""

    field_id: Int | None = None
    names: tuple[str, ...] = ()
    fields: "tuple[MappedField, ...] | None" = None

    @cached_property
    def by_name(self) -> "dict[str, MappedField]":
        """The nested fields by each of their names."""
        return _by_name(self.fields or ())


class NameMapping(msgspec.Struct, frozen=True, dict=True):
    """The mapped top-level fields, each with its nested fields."""

    fields: tuple[MappedField, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, MappedField]:
        """The top-level fields by each of their names."""
        return _by_name(self.fields)

    def find(self, path: Sequence[str]) -> MappedField | None:
        """The field at a path of names in a file, with `element`, `key` and `value` inside lists and maps."""
        found: MappedField | NameMapping = self
        for name in path:
            inner = found.by_name.get(name)
            if inner is None:
                return None
            found = inner
        return found if isinstance(found, MappedField) else None


def parse_name_mapping(text: str | bytes, source: str = NAME_MAPPING_PROPERTY) -> NameMapping:
    """Parse a mapping; FormatError names the JSON path."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    mapping = NameMapping(decode_json(data, tuple[MappedField, ...], source))
    ids: set[int] = set()
    for field in _walk(mapping.fields, "$", source, _MAX_NESTING):
        if field.field_id is not None and field.field_id in ids:
            raise FormatError(f"expected each field id once, found {field.field_id} twice in {source}")
        ids.update(() if field.field_id is None else (field.field_id,))
    return mapping


def render_name_mapping(mapping: NameMapping) -> str:
    """The JSON of a mapping."""
    return encode_json([_plain(f) for f in mapping.fields]).decode()


def create_name_mapping(schema: Schema) -> NameMapping:
    """A mapping from the current names of a schema."""
    return NameMapping(tuple(_mapped(f) for f in schema.fields))


def update_name_mapping(mapping: NameMapping, old: Schema, new: Schema) -> NameMapping:
    """Update a mapping after a schema change: renamed fields get an additional name, new fields are added.

    A name that is taken over by another field of the struct is removed from the previous one.
    """
    renamed = {i: f.name for i, f in new.ids.items() if i in old.ids and old.ids[i].name != f.name}
    return NameMapping(_updated(mapping.fields, StructType(new.fields), renamed, old) or ())


def _updated(
    mapped: tuple[MappedField, ...] | None, type_: IcebergType, renamed: dict[int, str], old: Schema
) -> tuple[MappedField, ...] | None:
    here = {f.id: f for f in child_fields(type_)}
    added = [f for i, f in here.items() if i not in old.ids]
    taken = {f.name: f.id for f in added} | {renamed[i]: i for i in here if i in renamed}
    result = []
    for field in mapped or ():
        column = None if field.field_id is None else here.get(field.field_id)
        names = [n for n in field.names if taken.get(n, field.field_id) == field.field_id]
        if column is not None and column.id in renamed and column.name not in names:
            names.append(column.name)
        inner = field.fields if column is None else _updated(field.fields, column.type, renamed, old)
        result.append(MappedField(field.field_id, tuple(names), inner))
    result.extend(map(_mapped, added))
    return tuple(result) if result or mapped is not None else None


def _mapped(field: NestedField) -> MappedField:
    inner = child_fields(field.type)
    nested = isinstance(field.type, StructType) or inner
    return MappedField(field.id, (field.name,), tuple(map(_mapped, inner)) if nested else None)


def _plain(field: MappedField) -> dict[str, Any]:
    wire: dict[str, Any] = {} if field.field_id is None else {"field-id": field.field_id}
    wire["names"] = field.names
    return wire if field.fields is None else wire | {"fields": [_plain(f) for f in field.fields]}


def _by_name(fields: Sequence[MappedField]) -> dict[str, MappedField]:
    return {name: field for field in fields for name in field.names}


def _walk(fields: tuple[MappedField, ...], place: str, source: str, levels: int) -> Iterator[MappedField]:
    if not levels:
        raise FormatError(f"expected at most {_MAX_NESTING} levels, found more in {source}")
    seen: set[str] = set()
    for position, field in enumerate(fields):
        if twice := seen.intersection(field.names):
            raise FormatError(f"expected each name once, found `{min(twice)}` twice at {place}[{position}] in {source}")
        seen.update(field.names)
        yield field
        yield from _walk(field.fields or (), f"{place}[{position}].fields", source, levels - 1)
