"""Schema changes of a table: collected in a `with` block, committed together when it ends.

They are kept as requests: each attempt applies them to the current table, so that columns that others add in the
meantime stay. A change by others to the columns that are changed here is a conflict.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, assert_never

import pyarrow as pa

from bergline.arguments import check_list, check_text
from bergline.errors import InvalidInputError
from bergline.format.evolution.columns import ColumnPosition
from bergline.format.evolution.schema_changes import (
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
from bergline.format.evolution.schema_evolution import apply_schema_change, check_evolved, evolving
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.table.commits.operation import Change, Operation
from bergline.table.evolution.column_arguments import ColumnType, column_schema, column_type, plain_default
from bergline.table.evolution.layout_change import change_schema
from bergline.table.evolution.pending_update import PendingUpdate, check_same_column, conflict, conflict_if_refused

_COLUMN = "the name of a column"


class SchemaUpdate(PendingUpdate[SchemaChange]):
    """One commit of changes; each is checked when it is made, and sees the ones before it.

    Columns are named by their dotted path: `point.x`, `points.element.x` or `points.x`, `by_name.value`. Existing
    columns with a dot in their name are given in the same way; for a new one, pass the parts of its path.
    """

    def __init__(
        self, loaded: TableMetadata, commit: Callable[[Operation], object], *, allow_incompatible: bool = False
    ) -> None:
        super().__init__(loaded, commit)
        self._allow_incompatible = allow_incompatible
        self._work = evolving(loaded)

    @property
    def schema(self) -> Schema:
        """The schema with the changes so far."""
        return self._work.schema

    def add_column(
        self,
        path: str | tuple[str, ...],
        type_: ColumnType,
        *,
        doc: str | None = None,
        required: bool = False,
        default: Any = None,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Self:
        """Add a column, last in its struct unless a position is given.

        `default` is the value in existing rows, and in new rows that give none; it needs format version 3. A required
        column needs one. A path as text is split at its dots; `("point", "x.y")` is a field `x.y`.
        """
        parts = path if isinstance(path, tuple) and path else tuple(check_text(path, _COLUMN).split("."))
        name = ".".join(check_text(part, _COLUMN) for part in parts)
        position = _position(name, first=first, after=after, before=before)
        iceberg = column_type(type_, name)
        plain = plain_default(iceberg, default, name)
        return self._change(AddColumn(parts, iceberg, doc, required, plain, position, self._allow_incompatible))

    def drop_column(self, path: str) -> Self:
        """Drop a column; its values stay in files, but no later column ever shows them."""
        return self._change(DropColumn(check_text(path, _COLUMN)))

    def rename_column(self, path: str, name: str) -> Self:
        """Rename a column; its values stay."""
        return self._change(RenameColumn(check_text(path, _COLUMN), check_text(name, _COLUMN)))

    def move_column(
        self, path: str, *, first: bool = False, after: str | None = None, before: str | None = None
    ) -> Self:
        """Move a column within its struct."""
        position = _position(check_text(path, _COLUMN), first=first, after=after, before=before)
        if position is None:
            raise InvalidInputError(f"expected first, after or before for column `{path}`, found none of them")
        return self._change(MoveColumn(path, position))

    def set_type(self, path: str, type_: ColumnType) -> Self:
        """Widen the type: int to long, float to double, more digits of a decimal; in v3 also date to timestamp."""
        return self._change(SetType(check_text(path, _COLUMN), column_type(type_, path)))

    def make_optional(self, path: str) -> Self:
        """Allow nulls in a column."""
        return self._change(SetRequired(check_text(path, _COLUMN), required=False))

    def require_column(self, path: str) -> Self:
        """Forbid nulls in a column; refused unless incompatible changes are allowed."""
        return self._change(SetRequired(check_text(path, _COLUMN), True, self._allow_incompatible))

    def set_doc(self, path: str, doc: str | None) -> Self:
        """Set the comment of a column; None removes it."""
        return self._change(SetDoc(check_text(path, _COLUMN), doc))

    def set_default(self, path: str, default: Any) -> Self:
        """Set the default for new rows; existing rows keep their values."""
        type_ = self.schema.find(check_text(path, _COLUMN)).type
        return self._change(SetDefault(path, plain_default(type_, default, path)))

    def set_identifier_fields(self, paths: Iterable[str]) -> Self:
        """Set all columns that identify rows; an empty list for none."""
        return self._change(SetIdentifierFields(check_list(paths, "column")))

    def union_by_name(self, schema: pa.Schema | Schema) -> Self:
        """Take on the columns of another schema: missing ones are added, narrower ones widened, nothing is dropped."""
        return self._change(UnionByName(column_schema(schema)))

    def _change(self, change: SchemaChange) -> Self:
        after = apply_schema_change(self._work, change)
        self._request(change)
        self._work = after
        return self

    def _check_all(self) -> None:
        check_evolved(self._work)

    def _apply(self, base: TableMetadata) -> Change:
        return change_schema(base, rebase_schema(self._loaded, base, self._requested))


def _position(path: str, *, first: bool, after: str | None, before: str | None) -> ColumnPosition | None:
    given = sum((bool(first), after is not None, before is not None))
    if given > 1:
        raise InvalidInputError(f"expected first, after or before for column `{path}`, found {given} of them")
    if first:
        return ("first",)
    if after is not None:
        return "after", check_text(after, _COLUMN)
    return None if before is None else ("before", check_text(before, _COLUMN))


def rebase_schema(loaded: TableMetadata, base: TableMetadata, changes: Sequence[SchemaChange]) -> Schema:
    """The schema on a base with changes that were made on the loaded one; ConflictError if others changed the same."""
    mine, theirs = evolving(loaded), evolving(base)
    for change in changes:
        with conflict_if_refused(loaded, base):
            for path in _touched(change):
                check_same_column(path, mine.schema, theirs.schema, loaded, base)
            before, now = _replaced(change, mine.schema), _replaced(change, theirs.schema)
            made, theirs = apply_schema_change(mine, change), apply_schema_change(theirs, change)
        if now != before and now != _replaced(change, made.schema):
            raise conflict(_changed_otherwise(change), loaded, base)
        mine = made
    with conflict_if_refused(loaded, base):
        check_evolved(theirs)
    return theirs.schema


def _touched(change: SchemaChange) -> Iterable[str]:
    """The columns that must exist for a change."""
    match change:
        case AddColumn(parts):
            return (".".join(parts[:-1]),) if len(parts) > 1 else ()
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
    """What a change replaces; None if it only adds, moves or removes."""
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
            return f"column `{path}` got another comment"
        case SetDefault(path):
            return f"column `{path}` got another type or default"
    return "the identifier fields were changed"
