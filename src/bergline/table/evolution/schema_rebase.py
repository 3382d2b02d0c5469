"""A caller's changes of a schema, worked out on a table that others may have changed since the caller looked."""

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from bergline.format.metadata import TableMetadata
from bergline.format.schema import Schema
from bergline.format.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetIdentifierFields,
    SetRequired,
    SetType,
    UnionByName,
)
from bergline.format.schema_evolution import apply_schema_change, check_evolved, evolving
from bergline.table.commits.seen import check_same_column, conflict, conflict_if_refused


def rebase_schema(seen: TableMetadata, base: TableMetadata, changes: Sequence[SchemaChange]) -> Schema:
    """The schema after changes that were right for what the caller saw; ConflictError where others came between."""
    mine, theirs = evolving(seen), evolving(base)
    for change in changes:
        with conflict_if_refused(seen, base):
            for path in _touched(change):
                check_same_column(path, mine.schema, theirs.schema, seen, base)
            before, now = _replaced(change, mine.schema), _replaced(change, theirs.schema)
            made, theirs = apply_schema_change(mine, change), apply_schema_change(theirs, change)
        if now != before and now != _replaced(change, made.schema):
            raise conflict(_changed_otherwise(change), seen, base)
        mine = made
    with conflict_if_refused(seen, base):
        check_evolved(theirs)
    return theirs.schema


def _touched(change: SchemaChange) -> Iterable[str]:
    """The columns that must be there for a change."""
    match change:
        case AddColumn(path):
            parent = path.rpartition(".")[0]
            return (parent,) if parent else ()
        case (
            DropColumn(path)
            | RenameColumn(path)
            | MoveColumn(path)
            | SetType(path)
            | SetRequired(path)
            | SetDoc(path)
            | SetDefault(path)
        ):
            return (path,)
        case SetIdentifierFields(paths):
            return paths
        case UnionByName():
            return ()
    assert_never(change)


def _replaced(change: SchemaChange, schema: Schema) -> Any:
    """What a change puts something else in the place of; None where it only adds, moves or removes."""
    match change:
        case SetType(path):
            return schema.find(path).type
        case SetDoc(path):
            return schema.find(path).doc
        case SetDefault(path):
            field = schema.find(path)
            return field.type, field.write_default
        case SetIdentifierFields():
            return frozenset(schema.identifier_field_ids)
    return None


def _changed_otherwise(change: SchemaChange) -> str:
    match change:
        case SetType(path, type_):
            return f"column `{path}` got another type than `{type_}`"
        case SetDoc(path):
            return f"column `{path}` got other words"
        case SetDefault(path):
            return f"column `{path}` got another type or default"
    return "other columns were made to identify rows"
