"""Carries out statements on namespaces."""

import contextlib

import pyarrow as pa

from bergline.catalog.identifiers import Namespace
from bergline.errors import NotFoundError, UnsupportedError
from bergline.lake.lake import Lake
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.namespace_statements import AlterNamespace, CreateNamespace, DropNamespace
from bergline.sql.statements.statements import Name

NO_ROWS = pa.table({})


def create_namespace(statement: CreateNamespace, lakes: Lakes) -> pa.Table | None:
    """CREATE NAMESPACE, owned by the user."""
    placed = lakes.place_new_namespace(statement.namespace)
    if placed is None:
        return None
    lake, name = placed
    owner = {"owner": lakes.surroundings.user} if lakes.surroundings.user else {}
    lake.create_namespace(name, owner | statement.properties, if_not_exists=statement.if_not_exists)
    return NO_ROWS


def drop_namespace(statement: DropNamespace, lakes: Lakes) -> pa.Table | None:
    """DROP NAMESPACE; with CASCADE, what is in it first."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        return None
    lake, name = _inside(placed, statement.namespace)
    try:
        if statement.cascade:
            for inner in sorted(lake.catalog.list_namespaces(name), key=len, reverse=True):
                if lake.namespace_exists(inner):  # some are there only as long as one inside them is
                    _empty(lake, inner)
                    lake.drop_namespace(inner)
            _empty(lake, name)
        lake.drop_namespace(name)
    except NotFoundError as error:
        if not statement.if_exists or error.kind != "namespace":
            raise
    return NO_ROWS


def alter_namespace(statement: AlterNamespace, lakes: Lakes) -> pa.Table | None:
    """ALTER NAMESPACE."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        return None
    lake, name = _inside(placed, statement.namespace)
    present = lake.namespace_properties(name)
    lake.update_namespace(name, statement.updates, remove=[k for k in statement.removals if k in present])
    return NO_ROWS


def _inside(placed: tuple[Lake, Name], namespace: Name) -> tuple[Lake, Namespace]:
    lake, name = placed
    if not name:
        raise UnsupportedError(f"expected a namespace, found the lake `{'.'.join(namespace)}`")
    return lake, name


def _empty(lake: Lake, namespace: Namespace) -> None:
    for table in lake.catalog.list_tables(namespace):
        lake.drop_table(table)
    with contextlib.suppress(UnsupportedError):  # a catalog without views
        for view in lake.catalog.list_views(namespace):
            lake.drop_view(view)
