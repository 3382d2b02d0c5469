"""A table's columns, and finding them by name or id."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.integers import Int
from bergline.format.types import (
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
    """Columns in order; ids are unique over all levels."""

    fields: tuple[NestedField, ...]
    schema_id: Int | None = None
    identifier_field_ids: tuple[Int, ...] = ()

    def __post_init__(self) -> None:
        ids: dict[int, str] = {}
        for name, field in walk_fields(self.fields):
            if field.id in ids:
                raise InvalidInputError(
                    f"expected unique column ids, found {field.id} for `{ids[field.id]}` and `{name}`"
                )
            ids[field.id] = name
        check_unique_names(self.fields)
        if len(self.names) != len(ids):
            twice = next(n for i, n in ids.items() if self.names[n].id != i)
            raise InvalidInputError(f"expected unique column names, found `{twice}` as a column and inside a struct")

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

    @property
    def highest_id(self) -> int:
        """The largest field id in use, 0 for none."""
        return max(self.ids, default=0)

    def find(self, name: str) -> NestedField:
        """The column of this name; exact spelling first, then ignoring case."""
        if found := self.names.get(name):
            return found
        folded = [f for n, f in self.names.items() if n.casefold() == name.casefold()]
        if len(folded) == 1:
            return folded[0]
        raise NotFoundError(f"no column `{name}`", kind="column", name=name, known=self.names)

    def select(self, names: Iterable[str]) -> "Schema":
        """The top-level columns of these names, in the order asked for."""
        by_id = {f.id: f for f in self.fields}
        chosen = []
        for name in names:
            field = self.find(name)
            if field.id not in by_id:
                raise InvalidInputError(f"expected a top-level column, found the nested `{name}`")
            chosen.append(field)
        return Schema(fields=tuple(chosen), schema_id=self.schema_id)


def check_unique_names(fields: tuple[NestedField, ...]) -> None:
    """Refuse two fields of one name at the same level."""
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            raise InvalidInputError(f"expected unique column names, found `{field.name}` twice")
        seen.add(field.name)
        check_unique_names(child_fields(field.type))


def assign_fresh_ids(schema: Schema) -> Schema:
    """The same columns with ids from 1, top level first, as a new table has them."""
    counter = iter(range(1, 2**31))
    return Schema(fields=_fresh(schema.fields, counter), schema_id=0)


def _paths(fields: tuple[NestedField, ...], prefix: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    for field in fields:
        path = (*prefix, field.name)
        yield field.id, path
        if isinstance(field.type, StructType):
            yield from _paths(field.type.fields, path)


def fresh_type(type_: IcebergType, counter: Iterator[int]) -> IcebergType:
    """The same type with new ids for everything inside it, top level first."""
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
    return tuple(
        msgspec.structs.replace(f, id=i, type=fresh_type(f.type, counter)) for i, f in zip(ids, fields, strict=True)
    )
