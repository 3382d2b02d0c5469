"""Carries out ALTER TABLE: each statement is one commit."""

import contextlib
from collections.abc import Iterator
from itertools import count
from typing import Any, assert_never

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.format.metadata.properties import FORMAT_VERSION, RESERVED_PROPERTIES, asked_format_version
from bergline.format.types.types import IcebergType
from bergline.lake.lake import Lake
from bergline.sql.names.resolve import Lakes
from bergline.sql.parse.literals import default_value
from bergline.sql.statements.statements import Name
from bergline.sql.statements.table_statements import (
    AddColumns,
    AddPartitionField,
    AlterColumns,
    AlterTable,
    ColumnChange,
    ColumnPlacement,
    DropColumns,
    DropIdentifierFields,
    DropPartitionField,
    IdentifierFieldsClause,
    MoveColumnClause,
    RenameColumnClause,
    RenameTable,
    ReplaceColumns,
    ReplacePartitionField,
    SetColumnDefault,
    SetColumnDoc,
    SetColumnRequired,
    SetColumnType,
    SetTableLocation,
    SetTableProperties,
    SetWriteOrder,
)
from bergline.table.evolution.schema_update import SchemaUpdate
from bergline.table.table import Table

_SchemaChange = AddColumns | ReplaceColumns | DropColumns | RenameColumnClause | AlterColumns | IdentifierFieldsClause

NO_ROWS = pa.table({})
_DISTRIBUTION = "write.distribution-mode"
_SHOWN_ONLY = (RESERVED_PROPERTIES - {FORMAT_VERSION}) | {"format", "sort-order", "identifier-fields"}


def alter_table(statement: AlterTable, lakes: Lakes, *, time_zone: str) -> pa.Table | None:
    """Change a table; None if it is not ours."""
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    match statement.change:
        case RenameTable(name):
            _rename_table(statement.table, name, lakes)
        case (
            AddColumns()
            | ReplaceColumns()
            | DropColumns()
            | RenameColumnClause()
            | AlterColumns()
            | IdentifierFieldsClause()
        ) as change:
            with table.update_schema() as schema:
                _SchemaChanges(schema, table.metadata.format_version, time_zone).make(change)
        case DropIdentifierFields(paths):
            _drop_identifier_fields(table, paths)
        case SetTableProperties(updates, removals):
            _set_properties(table, updates, removals)
        case SetTableLocation(location):
            table.set_location(location)
        case AddPartitionField(term, name):
            with table.update_spec() as spec:
                spec.add_field(term, name=name)
        case DropPartitionField(name_or_term):
            with table.update_spec() as spec:
                spec.remove_field(name_or_term)
        case ReplacePartitionField(old, term, name):
            with table.update_spec() as spec:
                spec.remove_field(old).add_field(term, name=name)
        case SetWriteOrder(terms, distribution):
            with table.transaction() as changing:
                changing.replace_sort_order(terms)
                if distribution is not None:
                    changing.set_properties({_DISTRIBUTION: distribution})
        case _:
            assert_never(statement.change)
    return NO_ROWS


class _SchemaChanges:
    """Changes of one statement to a schema."""

    def __init__(self, schema: SchemaUpdate, format_version: int, time_zone: str) -> None:
        self._schema, self._format_version, self._time_zone = schema, format_version, time_zone

    def make(self, change: _SchemaChange) -> None:
        """Make the changes, one after the other."""
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
                for column in columns:
                    _check_free(schema, ".".join(column.path))
                    schema.add_column(
                        ".".join(column.path),
                        column.type,
                        doc=column.doc,
                        required=column.required,
                        default=self._default(column.default, column.type),
                        **_place(column.position),
                    )
            case DropColumns(paths, if_exists):
                for path in paths:
                    with _ignoring_missing() if if_exists else contextlib.nullcontext():
                        schema.drop_column(_found(schema, path))
            case RenameColumnClause(path, name):
                old = _found(schema, path)
                _check_free(schema, f"{old.rpartition('.')[0]}.{name}".removeprefix("."), old)
                schema.rename_column(old, name)
            case IdentifierFieldsClause(columns):
                schema.set_identifier_fields([_found(schema, (column,)) for column in columns])
            case AlterColumns(changes):
                for column_change in changes:
                    self._change_column(column_change)

    def _change_column(self, change: ColumnChange) -> None:
        schema, path = self._schema, _found(self._schema, change.path)
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
        return default_value(literal, type_, self._time_zone, format_version=self._format_version)


def _found(schema: SchemaUpdate, path: Name) -> str:
    """The column's name as the table spells it; SQL does not tell upper from lower case."""
    field = schema.schema.find(".".join(path))
    return schema.schema.names_by_id[field.id]


def _check_free(schema: SchemaUpdate, new: str, old: str | None = None) -> None:
    """SQL could not tell a column from another whose name differs only in case."""
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


def _drop_identifier_fields(table: Table, paths: tuple[str, ...]) -> None:
    with table.update_schema() as schema:
        names = schema.schema.names_by_id
        left = [names[i] for i in schema.schema.identifier_field_ids]
        for path in paths:
            name = _found(schema, (path,))
            if name not in left:
                raise InvalidInputError(
                    f"expected an identifier field of `{table.name}`, found `{name}`, which is none"
                )
            left.remove(name)
        schema.set_identifier_fields(left)


def _set_properties(table: Table, updates: dict[str, str], removals: tuple[str, ...]) -> None:
    for key in (*updates, *removals):
        if key in _SHOWN_ONLY:
            raise InvalidInputError(f"expected a property that can be set, found `{key}`, which only shows a state")
    version = asked_format_version(updates, table.metadata.format_version)
    others = {k: v for k, v in updates.items() if k != FORMAT_VERSION}
    with table.transaction() as changing:
        if version != table.metadata.format_version:
            changing.upgrade_format(version)
        changing.set_properties(others, remove=removals)


def _rename_table(old: Name, new: Name, lakes: Lakes) -> None:
    """A name without a namespace stays in the table's own."""
    placed = lakes.place(old)
    if placed is None:
        return
    lake, name = placed
    lake.rename_table(TableName(name[:-1], name[-1]), _new_name(lake, name, new, lakes))


def _new_name(lake: Lake, name: Name, new: Name, lakes: Lakes) -> TableName:
    if len(new) == 1:
        return TableName(name[:-1], new[0])
    if len(new) > 2 and lakes.has(new[0]):  # noqa: PLR2004
        if lakes.name_of(lake) != new[0]:
            raise InvalidInputError(f"expected a name in the lake `{lakes.name_of(lake)}`, found `{'.'.join(new)}`")
        new = new[1:]
    return TableName(new[:-1], new[-1])
