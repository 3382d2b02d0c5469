"""The tables shared with Java and PyIceberg, and conditions on them."""

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.layout import (
    NAMESPACES,
    SHARED,
    TABLES,
    RowKind,
    join_namespace,
    next_children,
    next_namespaces,
    of_kind,
    starts_with,
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


@pytest.mark.parametrize(
    ("prefix", "names"), [("a.", ["a.b", "a.b"]), ("a", ["a", "a.b", "a.b", "ab"]), ("A.", ["A.b"])]
)
def test_texts_with_a_prefix_are_a_range(connection: sa.Connection, prefix: str, names: list[str]) -> None:
    assert [namespace for namespace, _ in found(connection, starts_with(TABLES.c.table_namespace, prefix))] == names


def test_children_are_found_once_whether_they_have_rows_or_not(connection: sa.Connection) -> None:
    values = {"catalog": "c", "start": "", "skipped": 0, "behind": "\x01", "most": 10}
    rows = connection.execute(next_children(find="instr", is_nested=False), values)
    assert [tuple(row) for row in rows] == [("A", 0), ("a", 1), ("ab", 1), ("z", 1)]


def test_next_namespaces_come_in_order_each_once(connection: sa.Connection) -> None:
    values = {"catalog": "c", "start": "a", "most": 10}
    assert list(connection.execute(next_namespaces(), values).scalars()) == ["a.b", "ab", "z"]
    values = {"catalog": "c", "start": "ab", "most": 1}
    assert list(connection.execute(next_namespaces(descending=True), values).scalars()) == ["a.b"]


def test_level_with_a_dot_is_refused() -> None:
    assert join_namespace(("a", "b")) == "a.b"
    with pytest.raises(InvalidInputError, match=r"without dots, found `a\.b`"):
        join_namespace(("a.b",))
