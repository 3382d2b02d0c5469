"""A filter bound once: it keeps referring to the same columns, even after they are renamed."""

from collections.abc import Mapping
from typing import assert_never

import msgspec

from bergline.errors import ConflictError
from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    Always,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    bind,
    columns_of,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import child_fields


class BoundFilter(msgspec.Struct, frozen=True):
    """A bound predicate and the schema that its column names and types refer to."""

    predicate: Predicate
    schema: Schema

    def on(self, schema: Schema) -> Predicate:
        """The predicate in the names of a later schema; ConflictError if a column was dropped or changed its type."""
        if schema is self.schema:
            return self.predicate
        return _renamed(self.predicate, {name: self._name_in(schema, name) for name in columns_of(self.predicate)})

    def _name_in(self, schema: Schema, name: str) -> str:
        field = self.schema.names[name]
        now = schema.ids.get(field.id)
        if now is None or field.id not in schema.paths:
            raise _misfit(f"expected column `{name}`, found it dropped")
        if now.type != field.type and not child_fields(field.type):  # a predicate on a struct can only check for null
            raise _misfit(f"expected column `{name}` of type `{field.type}`, found `{now.type}`")
        return schema.names_by_id[field.id]


EVERY_ROW = BoundFilter(ALWAYS_TRUE, Schema(fields=()))


def bind_filter(predicate: Predicate, schema: Schema) -> BoundFilter:
    """Bind a caller's filter to the columns that the caller knows."""
    return BoundFilter(bind(predicate, schema), schema)


def _misfit(found: str) -> ConflictError:
    return ConflictError(
        f"the filter no longer fits the table: {found}",
        hints=["look at the table as it is now and plan the operation again"],
    )


def _renamed(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    match predicate:
        case Always():
            return predicate
        case Not(child):
            return Not(_renamed(child, names))
        case And(left, right):
            return And(_renamed(left, names), _renamed(right, names))
        case Or(left, right):
            return Or(_renamed(left, names), _renamed(right, names))
        case Comparison() | IsIn() | StartsWith() | IsNan() | IsNull():
            return msgspec.structs.replace(predicate, column=names[predicate.column])
        case _:
            assert_never(predicate)
