"""Carries out the statements that need no engine, and returns their rows."""

import pyarrow as pa

from bergline.errors import NotFoundError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.sql.names.resolve import Lakes
from bergline.sql.parse.own import OwnStatement, RefStatement
from bergline.sql.procedures.registry import run_call
from bergline.sql.run.alter import alter_table
from bergline.sql.run.namespaces import alter_namespace, create_namespace, drop_namespace
from bergline.sql.run.show import run_show
from bergline.sql.run.tables import create_table, drop_table
from bergline.sql.statements.namespace_statements import AlterNamespace, CreateNamespace, DropNamespace
from bergline.sql.statements.show_statements import Use
from bergline.sql.statements.statements import CallProcedure, CreateRef, DropRef, ReplaceRef
from bergline.sql.statements.table_statements import AlterTable, CreateTable, DropTable, ForgetCached
from bergline.table.table import Table

EngineFree = OwnStatement | CallProcedure

NO_ROWS = pa.table({})


def run_statement(statement: EngineFree, lakes: Lakes, *, time_zone: str) -> pa.Table | None:
    """The statement's rows; None if it is about a table that is not ours."""
    match statement:
        case CallProcedure():
            return run_call(statement, lakes, time_zone=time_zone)
        case CreateRef() | ReplaceRef() | DropRef():
            return _change_ref(statement, lakes)
        case CreateTable():
            return create_table(statement, lakes, time_zone=time_zone)
        case DropTable():
            return drop_table(statement, lakes)
        case AlterTable():
            return alter_table(statement, lakes, time_zone=time_zone)
        case CreateNamespace():
            return create_namespace(statement, lakes)
        case DropNamespace():
            return drop_namespace(statement, lakes)
        case AlterNamespace():
            return alter_namespace(statement, lakes)
        case ForgetCached():
            return _forget_cached(statement, lakes)
        case Use():
            return _use(statement, lakes)
    return run_show(statement, lakes)


def _forget_cached(statement: ForgetCached, lakes: Lakes) -> pa.Table | None:
    """Every statement looks at the table anew: there is nothing to forget."""
    try:
        return None if lakes.resolve(statement.table) is None else NO_ROWS
    except NotFoundError as error:
        if error.kind == "table" and statement.if_exists:
            return NO_ROWS
        raise


def _use(statement: Use, lakes: Lakes) -> pa.Table | None:
    """The lake and namespace for names that say none; what is not ours ends the use of a lake."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        lakes.use(None, ())
        return None
    lake, namespace = placed
    if namespace:
        lake.namespace_properties(namespace)
    lakes.use(lake, namespace)
    return NO_ROWS


def _change_ref(statement: RefStatement, lakes: Lakes) -> pa.Table | None:
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    refs, is_branch = table.refs, statement.kind is SnapshotRefType.BRANCH
    match statement:
        case CreateRef():
            _create_ref(statement, table)
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
