"""Staged tables, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.staged_tables import SqlStagedTables
from bergline.lake.opening import CatalogConfig, open_catalog

ORDERS = TableName(("db",), "orders")
DIRECTORIES = ("s3://b/w/orders", "s3://b/é")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def staged(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStagedTables]:
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    name = f"staged-{tmp_path.name}"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", name, {}, 10.0, (), 10**6, True))
    yield SqlStagedTables(catalog.store.database, name)
    catalog.close()


def test_staged_table_is_known_to_who_staged_it_for_a_time(staged: SqlStagedTables) -> None:
    found = staged.add(ORDERS, "ann", DIRECTORIES, 10, 20)
    assert staged.directories(found, ORDERS, "ann", 19) == DIRECTORIES
    assert staged.directories(found, ORDERS, "ann", 20) is None
    assert staged.directories(found, ORDERS, "bob", 10) is None
    assert staged.directories(found, TableName(("db",), "other"), "ann", 10) is None
    assert staged.directories("0" * 32, ORDERS, "ann", 10) is None


def test_staged_tables_are_forgotten_after_their_time(staged: SqlStagedTables) -> None:
    first = staged.add(ORDERS, "ann", DIRECTORIES, 10, 20)
    second = staged.add(ORDERS, "ann", DIRECTORIES, 20, 30)
    assert first != second
    assert staged.directories(first, ORDERS, "ann", 10) is None
    assert staged.directories(second, ORDERS, "ann", 10) == DIRECTORIES


def test_database_of_an_older_version_has_none(tmp_path: Path) -> None:
    catalog: Any = open_catalog(
        CatalogConfig(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}", "lake", {}, 10.0, (), 10**6, True)
    )
    with catalog.store.database.writing() as connection:
        connection.exec_driver_sql("DROP TABLE bergline_staged_tables")
    assert SqlStagedTables(catalog.store.database, "lake").directories("x", ORDERS, "ann", 1) is None
    catalog.close()
