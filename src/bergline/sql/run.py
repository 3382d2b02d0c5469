"""Carries out the statements that need no engine, and returns their rows."""

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.refs import SnapshotRefType
from bergline.format.schema import Schema
from bergline.sql.procedures import run_call
from bergline.sql.resolve import Lakes, Selector
from bergline.sql.statements import (
    Call,
    CreateNamespace,
    CreateRef,
    CreateTable,
    DropRef,
    DropTable,
    Name,
    ReplaceRef,
)
from bergline.table.table import Table

EngineFree = CreateRef | ReplaceRef | DropRef | Call | CreateNamespace | CreateTable | DropTable

NO_ROWS = pa.table({})


def run_statement(statement: EngineFree, lakes: Lakes, *, time_zone: str) -> pa.Table | None:
    """The statement's rows; None if it is about a table that is not ours."""
    match statement:
        case Call():
            return run_call(statement, lakes, time_zone=time_zone)
        case CreateNamespace(namespace, if_not_exists):
            lake, name = lakes.place_namespace(namespace)
            lake.create_namespace(name, if_not_exists=if_not_exists)
            return NO_ROWS
        case CreateTable():
            return _create_table(statement, lakes)
        case DropTable():
            return _drop_table(statement, lakes)
        case CreateRef() | ReplaceRef() | DropRef():
            return _change_ref(statement, lakes)


def _create_table(statement: CreateTable, lakes: Lakes) -> pa.Table | None:
    placed = lakes.place(statement.table) or (
        (lakes.default, statement.table) if statement.provider == "iceberg" else None
    )
    if placed is None or statement.provider not in {None, "iceberg"}:
        return None
    lake, name = placed
    _check_distinct_names(statement.schema)
    lake.create_table(
        _table_name(name),
        statement.schema,
        partition_by=statement.partition_by,
        properties=statement.properties,
        location=statement.location,
        if_not_exists=statement.if_not_exists,
    )
    return NO_ROWS


def _check_distinct_names(schema: Schema) -> None:
    """SQL does not tell upper from lower case in column names, so a table made by SQL must not need it."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if seen.setdefault(name.casefold(), name) != name:
            raise InvalidInputError(
                f"expected column names that differ in more than case, found `{seen[name.casefold()]}` and `{name}`"
            )


def _drop_table(statement: DropTable, lakes: Lakes) -> pa.Table | None:
    placed = lakes.place(statement.table)
    if placed is None:
        return None
    if statement.purge:
        raise UnsupportedError("cannot purge yet: DROP TABLE without PURGE keeps the files")
    lake, name = placed
    try:
        lake.drop_table(_table_name(name))
    except NotFoundError:
        if not statement.if_exists:
            raise
    return NO_ROWS


def _change_ref(statement: CreateRef | ReplaceRef | DropRef, lakes: Lakes) -> pa.Table | None:
    target = lakes.resolve(statement.table)
    if target is None:
        return None
    if target.selector != Selector():
        raise InvalidInputError(f"expected a table, found `{'.'.join(statement.table)}`")
    refs, is_branch = target.table.refs, statement.kind is SnapshotRefType.BRANCH
    match statement:
        case CreateRef():
            _create_ref(statement, target.table)
        case ReplaceRef(_, ref, _, snapshot_id, retention):
            replace = refs.replace_branch if is_branch else refs.replace_tag
            replace(ref, at=snapshot_id, retention=retention)
        case DropRef(_, ref, _, if_exists):
            drop = refs.drop_branch if is_branch else refs.drop_tag
            drop(ref, if_exists=if_exists)
    return NO_ROWS


def _create_ref(statement: CreateRef, table: Table) -> None:
    flags = {"if_not_exists": statement.if_not_exists, "or_replace": statement.or_replace}
    retention = statement.retention
    if statement.kind is SnapshotRefType.TAG:
        table.refs.create_tag(statement.ref, at=statement.snapshot_id, max_ref_age_ms=retention.max_ref_age_ms, **flags)
        return
    table.refs.create_branch(
        statement.ref,
        at=statement.snapshot_id,
        min_snapshots_to_keep=retention.min_snapshots_to_keep,
        max_snapshot_age_ms=retention.max_snapshot_age_ms,
        max_ref_age_ms=retention.max_ref_age_ms,
        **flags,
    )


def _table_name(name: Name) -> TableName:
    if len(name) < 2:  # noqa: PLR2004
        raise InvalidInputError(f"expected a table name like `db.orders`, found `{'.'.join(name)}`")
    return TableName(name[:-1], name[-1])
