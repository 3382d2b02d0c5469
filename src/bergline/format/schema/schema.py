"""Schemas: the columns of a table, by name and by id."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import count

import msgspec

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.encoding.integers import Int
from bergline.format.types.defaults import check_default, decode_default, encode_default
from bergline.format.types.types import (
    DOUBLE,
    FLOAT,
    UNKNOWN,
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
    walk_fields,
)


class Schema(
    msgspec.Struct,
    frozen=True,
    rename="kebab",
    omit_defaults=True,
    tag_field="type",
    tag="struct",
    dict=True,
):
    """An ordered list of columns; ids are unique across all levels."""

    fields: tuple[NestedField, ...]
    schema_id: Int | None = None
    identifier_field_ids: tuple[Int, ...] = ()

    def __str__(self) -> str:
        """A line for each column."""
        return "\n".join(f"{f.id}: {f.name}: {'required' if f.required else 'optional'} {f.type}" for f in self.fields)

    def __post_init__(self) -> None:
        walked = list(walk_fields(self.fields))
        ids: dict[int, str] = {}
        for name, field in walked:
            if field.id in ids:
                raise InvalidInputError(
                    f"expected unique column ids, found {field.id} for `{ids[field.id]}` and `{name}`"
                )
            ids[field.id] = name
            _check_field(name, field)
        self.__dict__["names"] = names = dict(walked)
        if len(names) != len(walked):
            check_unique_names(self.fields)
            twice = next(n for i, n in ids.items() if names[n].id != i)
            raise InvalidInputError(f"expected unique column names, found `{twice}` as a column and inside a struct")
        if self.identifier_field_ids:
            self._check_identifier_fields()

    @cached_property
    def names(self) -> dict[str, NestedField]:
        """Every field by its dotted name."""
        return dict(walk_fields(self.fields))

    @cached_property
    def ids(self) -> dict[int, NestedField]:
        """Every field by its id."""
        return {f.id: f for f in self.names.values()}

    @cached_property
    def names_by_id(self) -> dict[int, str]:
        """Dotted names by field id."""
        return {f.id: name for name, f in self.names.items()}

    @cached_property
    def paths(self) -> dict[int, tuple[str, ...]]:
        """Paths by id of all columns that are not inside lists or maps."""
        return dict(_paths(self.fields, ()))

    @cached_property
    def parents(self) -> dict[int, NestedField | None]:
        """The parent of each field, by id; None at the top level."""
        inside = {c.id: f for f in self.names.values() for c in child_fields(f.type)}
        return {i: inside.get(i) for i in self.ids}

    @property
    def highest_id(self) -> int:
        """The largest field id in use, 0 for none."""
        return max(self.ids, default=0)

    @cached_property
    def short_names(self) -> dict[str, NestedField]:
        """Fields of structs inside lists and maps by names without `element` and `value`."""
        return {short: f for short, f in _short_names(StructType(self.fields), "") if short not in self.names}

    def find(self, name: str) -> NestedField:
        """The column of this name; an exact match first, then case-insensitive."""
        if found := self.names.get(name) or self.short_names.get(name):
            return found
        folded = [f for n, f in self.names.items() if n.casefold() == name.casefold()]
        if len(folded) == 1:
            return folded[0]
        raise NotFoundError(f"no column `{name}`", kind="column", name=name, known=self.names)

    def select(self, names: Iterable[str]) -> "Schema":
        """The top-level columns with these names, in the given order."""
        by_id = {f.id: f for f in self.fields}
        chosen = []
        for name in names:
            field = self.find(name)
            if field.id not in by_id:
                raise InvalidInputError(f"expected a top-level column, found the nested `{name}`")
            chosen.append(field)
        return Schema(fields=tuple(chosen), schema_id=self.schema_id)

    def _check_identifier_fields(self) -> None:
        always_there = _required_columns(self.fields)
        for field_id in self.identifier_field_ids:
            field = self.ids.get(field_id)
            if field is None:
                raise InvalidInputError(f"expected the ids of columns as identifier fields, found {field_id}")
            if field.type in (FLOAT, DOUBLE) or child_fields(field.type) or field.type == VARIANT:
                raise InvalidInputError(
                    f"expected an identifier field that compares exactly, found `{field.name}` of type `{field.type}`"
                )
            if field_id not in always_there:
                raise InvalidInputError(
                    f"expected an identifier field that is never null, found `{self.names_by_id[field_id]}`: "
                    "it and the structs around it must be required, without lists and maps"
                )


def check_unique_names(fields: tuple[NestedField, ...]) -> None:
    """Refuse duplicate names at the same level."""
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            message = f"expected unique column names, found `{field.name}` twice"
            raise InvalidInputError(message, condition="COLUMN_ALREADY_EXISTS")
        seen.add(field.name)
        check_unique_names(child_fields(field.type))


def assign_fresh_ids(schema: Schema, first_id: int = 1) -> Schema:
    """Assign new ids, top level first, as for a new table; identifier fields stay."""
    return assign_ids(schema, count(first_id))


def assign_ids(schema: Schema, ids: Iterator[int]) -> Schema:
    """Assign these ids, top level first; identifier fields stay."""
    fields = _fresh(schema.fields, ids)
    new_ids = {name: f.id for name, f in walk_fields(fields)}
    identifiers = tuple(new_ids[schema.names_by_id[i]] for i in schema.identifier_field_ids)
    return Schema(fields=fields, schema_id=0, identifier_field_ids=identifiers)


def fresh_type(type_: IcebergType, counter: Iterator[int]) -> IcebergType:
    """Assign new ids to everything inside a type, top level first."""
    match type_:
        case StructType(fields):
            return StructType(_fresh(fields, counter))
        case ListType(_, element, required):
            element_id = next(counter)
            return ListType(element_id, fresh_type(element, counter), required)
        case MapType(_, key, _, value, required):
            key_id, value_id = next(counter), next(counter)
            return MapType(key_id, fresh_type(key, counter), value_id, fresh_type(value, counter), required)
    return type_


def _fresh(fields: tuple[NestedField, ...], counter: Iterator[int]) -> tuple[NestedField, ...]:
    ids = [next(counter) for _ in fields]
    return tuple([_fresh_field(f, i, counter) for i, f in zip(ids, fields, strict=True)])


def _fresh_field(field: NestedField, field_id: int, counter: Iterator[int]) -> NestedField:
    type_ = fresh_type(field.type, counter)
    if not child_fields(type_):
        return msgspec.structs.replace(field, id=field_id)
    # defaults of structs are keyed by field id
    initial, write = (
        encode_default(type_, decode_default(field.type, wire)) for wire in (field.initial_default, field.write_default)
    )
    return msgspec.structs.replace(field, id=field_id, type=type_, initial_default=initial, write_default=write)


def _check_field(name: str, field: NestedField) -> None:
    if field.required and field.type == UNKNOWN:
        raise InvalidInputError(f"expected a column that may be null, found the required `{name}` of type `unknown`")
    for wire in (field.initial_default, field.write_default):
        if wire is not None:
            check_default(field, wire)


def _required_columns(fields: tuple[NestedField, ...]) -> set[int]:
    """The ids of columns that are never null: required, like all structs around them."""
    found: set[int] = set()
    for field in fields:
        if field.required:
            found.add(field.id)
            if isinstance(field.type, StructType):
                found |= _required_columns(field.type.fields)
    return found


def _paths(fields: tuple[NestedField, ...], prefix: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for field in fields:
        path = (*prefix, field.name)
        yield field.id, path
        if isinstance(field.type, StructType):
            yield from _paths(field.type.fields, path)


def _short_names(type_: IcebergType, prefix: str) -> Iterator[tuple[str, NestedField]]:
    for field in child_fields(type_):
        left_out = isinstance(type_, ListType | MapType) and field.name != "key" and isinstance(field.type, StructType)
        if not left_out:
            yield f"{prefix}{field.name}", field
        yield from _short_names(field.type, prefix if left_out else f"{prefix}{field.name}.")
