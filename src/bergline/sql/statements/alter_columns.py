"""ALTER TABLE … ADD, ALTER, RENAME, REPLACE and DROP COLUMN."""

import contextlib
from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.types.types import IcebergType
from bergline.sql.grammar.columns import (
    ColumnDefinition,
    ColumnPlacement,
    parse_position,
)
from bergline.sql.grammar.literals import default_value, parse_literal
from bergline.sql.grammar.spark_types import parse_spark_type
from bergline.sql.names.engine_context import EngineContext
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name
from bergline.table.evolution.schema_update import SchemaUpdate
from bergline.table.table import Table

COLUMN = "a column's name"


class AddColumns(msgspec.Struct, frozen=True):
    """ADD COLUMNS."""

    columns: tuple[ColumnDefinition, ...]


class ReplaceColumns(msgspec.Struct, frozen=True):
    """REPLACE COLUMNS: all columns are dropped, and these are added."""

    columns: tuple[ColumnDefinition, ...]


class DropColumns(msgspec.Struct, frozen=True):
    """DROP COLUMNS."""

    paths: tuple[Name, ...]
    if_exists: bool = False


class RenameColumnClause(msgspec.Struct, frozen=True):
    """RENAME COLUMN."""

    path: Name
    name: str


class SetColumnType(msgspec.Struct, frozen=True):
    """ALTER COLUMN … TYPE."""

    path: Name
    type: IcebergType


class SetColumnDoc(msgspec.Struct, frozen=True):
    """ALTER COLUMN … COMMENT."""

    path: Name
    doc: str


class SetColumnRequired(msgspec.Struct, frozen=True):
    """ALTER COLUMN … SET | DROP NOT NULL."""

    path: Name
    required: bool


class SetColumnDefault(msgspec.Struct, frozen=True):
    """ALTER COLUMN … SET DEFAULT; None for DROP DEFAULT."""

    path: Name
    default: Any


class MoveColumnClause(msgspec.Struct, frozen=True):
    """ALTER COLUMN … FIRST | AFTER."""

    path: Name
    position: ColumnPlacement


ColumnChange = SetColumnType | SetColumnDoc | SetColumnRequired | SetColumnDefault | MoveColumnClause


class AlterColumns(msgspec.Struct, frozen=True):
    """ALTER COLUMN, of one or more."""

    changes: tuple[ColumnChange, ...]


ColumnAlteration = AddColumns | ReplaceColumns | DropColumns | RenameColumnClause | AlterColumns


def parse_drop_columns(cursor: Cursor) -> DropColumns:
    """Parse what follows DROP COLUMN or COLUMNS."""
    if_exists = cursor.accept("IF", "EXISTS")
    bracket = cursor.accept_symbol("(")
    paths = [cursor.expect_dotted_name(COLUMN)]
    while cursor.accept_symbol(","):
        paths.append(cursor.expect_dotted_name(COLUMN))
    if bracket:
        cursor.expect_symbol(")")
    return DropColumns(tuple(paths), if_exists)


def parse_rename_column(cursor: Cursor) -> RenameColumnClause:
    """Parse what follows RENAME COLUMN."""
    path = cursor.expect_dotted_name(COLUMN)
    cursor.expect("TO")
    return RenameColumnClause(path, cursor.expect_name(COLUMN))


def parse_alter_columns(cursor: Cursor, *, may_be_whole: bool) -> AlterColumns:
    """Parse what follows ALTER or CHANGE; only CHANGE may redefine a whole column, `CHANGE COLUMN name name type …`."""
    if not cursor.accept("COLUMN"):
        cursor.accept("COLUMNS")
    changes: list[ColumnChange] = []
    while True:
        path = cursor.expect_dotted_name(COLUMN)
        changes += _column_changes(cursor, path, may_be_whole=may_be_whole)
        if not cursor.accept_symbol(","):
            return AlterColumns(tuple(changes))


def _column_changes(cursor: Cursor, path: Name, *, may_be_whole: bool) -> list[ColumnChange]:
    if cursor.accept("TYPE"):
        return [SetColumnType(path, parse_spark_type(cursor, ".".join(path)))]
    if cursor.accept("COMMENT"):
        return [SetColumnDoc(path, cursor.expect_text("a comment in quotes"))]
    if cursor.accept("SET", "NOT", "NULL"):
        return [SetColumnRequired(path, required=True)]
    if cursor.accept("DROP", "NOT", "NULL"):
        return [SetColumnRequired(path, required=False)]
    if cursor.accept("SET", "DEFAULT"):
        return [SetColumnDefault(path, parse_literal(cursor))]
    if cursor.accept("DROP", "DEFAULT"):
        return [SetColumnDefault(path, None)]
    if position := parse_position(cursor):
        return [MoveColumnClause(path, position)]
    if may_be_whole and cursor.is_at_name:
        return _whole_column(cursor, path)
    return cursor.fail(
        "`TYPE`, `COMMENT`, `SET NOT NULL`, `DROP NOT NULL`, `SET DEFAULT`, `DROP DEFAULT`, `FIRST`, `AFTER`"
    )


def _whole_column(cursor: Cursor, path: Name) -> list[ColumnChange]:
    """`CHANGE COLUMN name name type …`, as Hive has it."""
    name = cursor.expect_name(COLUMN)
    if name.casefold() != path[-1].casefold():
        raise UnsupportedError(
            f"cannot rename column `{'.'.join(path)}` with CHANGE", hints=["use ALTER TABLE … RENAME COLUMN … TO …"]
        )
    changes: list[ColumnChange] = [SetColumnType(path, parse_spark_type(cursor, ".".join(path)))]
    if cursor.accept("COMMENT"):
        changes.append(SetColumnDoc(path, cursor.expect_text("a comment in quotes")))
    if position := parse_position(cursor):
        changes.append(MoveColumnClause(path, position))
    return changes


def alter_columns(change: ColumnAlteration, table: Table, engine: EngineContext) -> None:
    """Change the columns of a table in one commit."""
    with table.update_schema() as schema:
        _ColumnChanges(schema, table.metadata.format_version, engine).make(change)


class _ColumnChanges:
    """Changes of one statement to a schema."""

    def __init__(self, schema: SchemaUpdate, format_version: int, engine: EngineContext) -> None:
        self._schema, self._format_version, self._engine = schema, format_version, engine

    def make(self, change: ColumnAlteration) -> None:
        """Apply the changes, one after the other."""
        schema = self._schema
        match change:
            case ReplaceColumns(columns):
                *others, last = (field.name for field in schema.schema.fields)
                for name in others:
                    schema.drop_column(name)
                # a table has a column at every moment: the last one steps aside until the new ones are there
                aside = _free_name({last.casefold(), *(column.path[0].casefold() for column in columns)})
                schema.rename_column(last, aside)
                self.make(AddColumns(columns))
                schema.drop_column(aside)
            case AddColumns(columns):
                _check_distinct(columns)
                for column in columns:
                    _check_free(schema, ".".join(column.path))
                    schema.add_column(
                        column.path,
                        column.type,
                        doc=column.doc,
                        required=column.required,
                        default=self._default(column.default, column.type),
                        **_place(column.position),
                    )
            case DropColumns(paths, if_exists):
                for path in paths:
                    with _ignoring_missing() if if_exists else contextlib.nullcontext():
                        schema.drop_column(self._spelled(path))
            case RenameColumnClause(path, name):
                old = self._spelled(path)
                _check_free(schema, f"{old.removesuffix(schema.schema.find(old).name)}{name}", old)
                schema.rename_column(old, name)
            case AlterColumns(changes):
                for column_change in changes:
                    self._change_column(column_change)

    def _change_column(self, change: ColumnChange) -> None:
        schema, path = self._schema, self._spelled(change.path)
        match change:
            case SetColumnType(_, type_):
                schema.set_type(path, type_)
            case SetColumnDoc(_, doc):
                schema.set_doc(path, doc)
            case SetColumnRequired(_, required):
                (schema.require_column if required else schema.make_optional)(path)
            case SetColumnDefault(_, default):
                schema.set_default(path, self._default(default, schema.schema.find(path).type))
            case MoveColumnClause(_, position):
                schema.move_column(path, **_place(position))

    def _default(self, literal: Any, type_: IcebergType) -> Any:
        return default_value(literal, type_, self._engine.time_zone, format_version=self._format_version)

    def _spelled(self, path: Name) -> str:
        """The column's name as the table spells it, which must be the same where case counts."""
        found, name = spelled(self._schema, path), ".".join(path)
        if found != name and self._engine.is_case_sensitive:
            known = self._schema.schema.names
            raise NotFoundError(f"no column `{name}`", kind="column", name=name, known=known)
        return found


def spelled(schema: SchemaUpdate, path: Name) -> str:
    """The column's name as the table spells it; SQL ignores case."""
    field = schema.schema.find(".".join(path))
    return schema.schema.names_by_id[field.id]


def _check_distinct(columns: tuple[ColumnDefinition, ...]) -> None:
    seen: set[str] = set()
    for column in columns:
        name = ".".join(column.path)
        if name.casefold() in seen:
            message = f"expected each new column once, found `{name}` twice"
            raise InvalidInputError(message, condition="COLUMN_ALREADY_EXISTS")
        seen.add(name.casefold())


def _check_free(schema: SchemaUpdate, new: str, old: str | None = None) -> None:
    """Refuse a name that differs from another column's only in case: SQL could not tell them apart."""
    taken = next((n for n in schema.schema.names if n != old and n.casefold() == new.casefold()), None)
    if taken is not None:
        raise AlreadyExistsError(f"column `{taken}` exists already, found `{new}`", kind="column", name=new)


def _free_name(taken: set[str]) -> str:
    return next(name for n in count() if (name := f"replaced_{n}") not in taken)


def _place(position: ColumnPlacement | None) -> dict[str, Any]:
    match position:
        case ("first",):
            return {"first": True}
        case ("after", other):
            return {"after": other}
    return {}


@contextlib.contextmanager
def _ignoring_missing() -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        if error.kind != "column":
            raise
