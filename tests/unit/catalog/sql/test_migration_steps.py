"""Our indexes of the tables that are shared with Java and PyIceberg."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.layout import NAMESPACE_INDEXES, VIEW_INDEX
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore

_OF_OTHERS = """
CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255), property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));
INSERT INTO iceberg_tables VALUES ('lake', 'a.b', 'orders', 'p', NULL, 'TABLE')
"""


def indexes(store: PostgresPointerStore | SqlitePointerStore) -> set[str | None]:
    found = sa.inspect(store.database.engine)
    tables = ("iceberg_tables", "iceberg_namespace_properties")
    return {index["name"] for table in tables for index in found.get_indexes(table)}


@pytest.fixture
def of_others(postgres: str) -> Iterator[sa.URL]:
    """A PostgreSQL database with the tables of another catalog."""
    server = sa.make_url(postgres).set(drivername="postgresql+psycopg")
    name = f"d{uuid4().hex}"
    engine = sa.create_engine(server, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    url = server.set(database=name)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    with sa.create_engine(url, poolclass=sa.NullPool).begin() as connection:
        for statement in _OF_OTHERS.split(";"):
            connection.exec_driver_sql(statement)
    yield url
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        connection.exec_driver_sql("DROP ROLE IF EXISTS bergline_writer")


def store_at(url: sa.URL) -> PostgresPointerStore:
    return PostgresPointerStore(url.render_as_string(hide_password=False))


def check_namespaces(store: PostgresPointerStore) -> None:
    """They are listed and found, in whichever order."""
    for name in ("a", "a-c", "B"):
        store.create_namespace((name,), {})
    assert store.list_namespaces() == [("B",), ("a",), ("a", "b"), ("a-c",)]
    assert sorted(store.namespaces_after((), None, 10).namespaces) == [("B",), ("a",), ("a-c",)]
    assert store.namespaces_after(("a",), None, 10).namespaces == [("a", "b")]
    assert not store.drop_namespace(("a",))
    assert store.namespace_exists(("a", "b"))
    assert not store.namespace_exists(("A",))


def test_sqlite_gets_an_index_of_views(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    assert indexes(store) == {VIEW_INDEX[0]}
    store.close()


@pytest.mark.server
def test_postgresql_gets_indexes_in_the_order_of_bytes_with_the_first_change(of_others: sa.URL) -> None:
    store = store_at(of_others)
    assert not store.database.sorts_by_bytes  # reading changes nothing
    assert store.list_namespaces() == [("a",), ("a", "b")]
    check_namespaces(store)
    assert store.database.sorts_by_bytes
    assert indexes(store) == {VIEW_INDEX[0], *NAMESPACE_INDEXES}
    store.close()


@pytest.mark.server
def test_tables_of_another_role_are_used_without_our_indexes(of_others: sa.URL) -> None:
    with sa.create_engine(of_others, poolclass=sa.NullPool).begin() as connection:
        for statement in (
            "CREATE ROLE bergline_writer LOGIN",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO bergline_writer",
            "GRANT CREATE ON SCHEMA public TO bergline_writer",
        ):
            connection.exec_driver_sql(statement)
    store = store_at(of_others.set(username="bergline_writer"))
    assert store.create(TableName(("db",), "t"), "p")
    assert store.drop(TableName(("db",), "t"))
    check_namespaces(store)
    assert not store.database.sorts_by_bytes
    assert indexes(store) == set()
    store.close()
    with sa.create_engine(of_others, poolclass=sa.NullPool).begin() as connection:
        connection.exec_driver_sql("DROP OWNED BY bergline_writer")
