"""The tables shared with Java and PyIceberg, and conditions on them."""

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.layout import (
    NAMESPACES,
    SHARED,
    TABLES,
    RowKind,
    join_namespace,
    namespace_below,
    namespace_or_below,
    next_namespaces,
    of_kind,
)
from bergline.errors import InvalidInputError


@pytest.fixture
def connection() -> sa.Connection:
    connection = sa.create_engine("sqlite://").connect()
    SHARED.create_all(connection)
    rows = [("a", "t", "TABLE"), ("a.b", "t", None), ("a.b", "v", "VIEW"), ("A.b", "t", "TABLE"), ("ab", "t", "TABLE")]
    for namespace, name, kind in rows:
        row = {"catalog_name": "c", "table_namespace": namespace, "table_name": name, "iceberg_type": kind}
        connection.execute(sa.insert(TABLES), row)
    row = {"catalog_name": "c", "namespace": "z", "property_key": "exists", "property_value": "true"}
    connection.execute(sa.insert(NAMESPACES), row)
    return connection


def found(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[tuple[str, str]]:
    query = sa.select(TABLES.c.table_namespace, TABLES.c.table_name).where(condition).order_by("table_namespace")
    return [tuple(row) for row in connection.execute(query)]


def test_rows_without_a_type_are_tables(connection: sa.Connection) -> None:
    assert ("a.b", "t") in found(connection, of_kind(RowKind.TABLE))
    assert found(connection, of_kind(RowKind.VIEW)) == [("a.b", "v")]
    assert len(found(connection, of_kind(RowKind.UNTYPED))) == 5


@pytest.mark.parametrize("in_byte_order", [True, False])
def test_names_that_begin_alike_are_not_below(connection: sa.Connection, in_byte_order: bool) -> None:
    below = namespace_below(TABLES.c.table_namespace, ("a",), in_byte_order=in_byte_order)
    assert {namespace for namespace, _ in found(connection, below)} == {"a.b"}
    or_below = namespace_or_below(TABLES.c.table_namespace, ("a",))
    assert {namespace for namespace, _ in found(connection, or_below)} == {"a", "a.b"}
    assert len(found(connection, namespace_or_below(TABLES.c.table_namespace, ()))) == 5


def test_next_namespaces_come_in_order_each_once(connection: sa.Connection) -> None:
    values = {"catalog": "c", "start": "a", "most": 10}
    assert list(connection.execute(next_namespaces(), values).scalars()) == ["a.b", "ab", "z"]
    values = {"catalog": "c", "start": "ab", "most": 1}
    assert list(connection.execute(next_namespaces(descending=True), values).scalars()) == ["a.b"]


def test_level_with_a_dot_is_refused() -> None:
    assert join_namespace(("a", "b")) == "a.b"
    with pytest.raises(InvalidInputError, match=r"without dots, found `a\.b`"):
        join_namespace(("a.b",))
