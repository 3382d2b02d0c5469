"""Which fields of a table assignments are about: `a.b` is a field of a struct, or a column with its table's name."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    DOUBLE,
    FLOAT,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from bergline.sql.grammar.spark_types import type_text
from bergline.sql.grammar.table_text import default_text
from bergline.sql.text.tokens import Name, SqlText

Fold = Callable[[str], str]
"""What names are compared as: in lower case, or as they are."""
Placed = tuple[Name, str]
"""The name that is assigned to, and where it stands, for errors: `place_of` says it."""
INVALID_ASSIGNMENTS = "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS"
"""Spark's condition for a column with two values, or with none that needs one."""


class AssignedField(msgspec.Struct, frozen=True):
    """A column, or a field inside the structs of one, by the names that the table's schema has."""

    path: Name
    field: NestedField
    """What is assigned to."""


def assigned_fields(
    targets: Sequence[Placed], schema: Schema, qualifiers: Sequence[Name], *, case_sensitive: bool = False
) -> list[AssignedField]:
    """The fields that names mean; one error for the first that is unknown, or assigned to twice.

    `qualifiers` are what the table's columns may have in front: its alias, or the parts of its name.
    """
    found: list[AssignedField] = []
    for name, place in targets:
        assigned = _find(name, place, schema, qualifiers, str if case_sensitive else str.casefold)
        for other in found:
            length = min(len(other.path), len(assigned.path))
            if other.path[:length] == assigned.path[:length]:
                raise InvalidInputError(
                    f"expected one value for column `{'.'.join(other.path)}`, "
                    f"found another for `{'.'.join(assigned.path)}`{place}",
                    condition=INVALID_ASSIGNMENTS,
                )
        found.append(assigned)
    return found


def place_of(sql: SqlText, position: int) -> str:
    """The end of an error's message: where in the statement something stands."""
    lines = sql.text[:position].split("\n")
    return f" at line {len(lines)}, column {len(lines[-1]) + 1}"


def default_literal(field: NestedField) -> str:
    """What the word DEFAULT means for a column; UnsupportedError for a default that SQL cannot write.

    What would be of no type, or of another one than the column, is cast.
    """
    text = default_text(field)
    if text is None and field.write_default is not None:
        raise UnsupportedError(
            f"cannot write the default of column `{field.name}` in SQL", hints=["leave the column out of the list"]
        )
    if isinstance(field.type, StructType | ListType | MapType) or not (text is None or field.type in {FLOAT, DOUBLE}):
        return text or "NULL"
    type_ = "timestamp_ltz" if field.type in {TIMESTAMPTZ, TIMESTAMPTZ_NS} else type_text(field.type)
    return f"CAST({text or 'NULL'} AS {type_})"


def qualifiers_of(table: Name, alias: str | None) -> list[Name]:
    """What the columns of a table may have in front of their names: its alias, else its name, whole or its end."""
    return [(alias,)] if alias is not None else [table[start:] for start in range(len(table))]


def _find(name: Name, place: str, schema: Schema, qualifiers: Sequence[Name], fold: Fold) -> AssignedField:
    for qualifier in sorted(qualifiers, key=len, reverse=True):
        length = len(qualifier)
        if len(name) > length and _folded(name[:length], fold) == _folded(qualifier, fold):
            column = _named(name[length], schema.fields, fold)
            if column is not None:
                return _inside(column, name[length + 1 :], place, fold)
    column = _named(name[0], schema.fields, fold)
    if column is None:
        known = [field.name for field in schema.fields]
        raise _no_column(".".join(name), known, place)
    return _inside(column, name[1:], place, fold)


def _inside(column: NestedField, rest: Name, place: str, fold: Fold) -> AssignedField:
    path: Name = (column.name,)
    field = column
    for part in rest:
        if not isinstance(field.type, StructType):
            raise UnsupportedError(
                f"expected a struct to set a field of, found `{'.'.join(path)}` of type `{field.type}`{place}",
                condition="DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            )
        inner = _named(part, field.type.fields, fold)
        if inner is None:
            known = [".".join((*path, f.name)) for f in field.type.fields]
            raise _no_column(".".join((*path, part)), known, place, "FIELD_NOT_FOUND")
        path, field = (*path, inner.name), inner
    return AssignedField(path, field)


def _no_column(name: str, known: Sequence[str], place: str, condition: str | None = None) -> NotFoundError:
    listed = ", ".join(f"`{n}`" for n in known)
    message = f"no column `{name}`: there are {listed}{place}"
    return NotFoundError(message, kind="column", name=name, known=known, condition=condition)


def _named(name: str, fields: Iterable[NestedField], fold: Fold) -> NestedField | None:
    """The field of this name: an exact match first, then one that is the same when folded."""
    fields = list(fields)
    for folded in (str, fold):
        found = [field for field in fields if folded(field.name) == folded(name)]
        if len(found) == 1:
            return found[0]
    return None


def _folded(name: Name, fold: Fold) -> Name:
    return tuple(fold(part) for part in name)
