"""A backup of a catalog has one state of it, whoever writes meanwhile, and leaves the database as it is."""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.sql.backup.back_up import back_up_catalog
from bergline.catalog.sql.backup.backup_file import BackupSummary
from bergline.catalog.sql.backup.contents import read_rows
from bergline.catalog.sql.layout import TABLES
from bergline.catalog.sql.migrations import find_layout
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.server)]


def back_up(store: SqlPointerStore, path: Path, progress: Callable[..., object] | None = None) -> BackupSummary:
    return back_up_catalog(
        store.database, store.catalog_name, str(path), made_ms=7, made_by="bergline 1", progress=progress
    )


@pytest.mark.parametrize("kind", KINDS)
def test_commits_during_a_backup_are_not_in_it(
    kind: str, new_store: Callable[..., SqlPointerStore], tmp_path: Path
) -> None:
    store = new_store(kind)
    store.create_namespace(("db",), {})
    store.create(TableName(("db",), "a"), "one")

    def commit(table: str, _done: int, _total: int) -> None:
        if table == "iceberg_namespace_properties":  # the tables are read after it
            store.swap(TableName(("db",), "a"), "one", "two")
            store.create(TableName(("db",), "b"), "three")

    summary = back_up(store, tmp_path / "f", commit)
    found = [row for _, row in read_rows(str(tmp_path / "f"))]
    assert [row["metadata_location"] for row in found if "metadata_location" in row] == ["one"]
    assert (summary.header.catalog, summary.header.made_ms) == ("lake", 7)
    assert store.read(TableName(("db",), "a")) == "two"


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_move_together_are_together_in_every_backup(
    kind: str, new_store: Callable[..., SqlPointerStore], tmp_path: Path
) -> None:
    store = new_store(kind)
    names = [TableName(("db",), name) for name in "ab"]
    for name in names:
        store.create(name, "0")
    stopping = threading.Event()

    def commit() -> None:
        number = 0
        while not stopping.is_set():
            assert store.swap_all([PointerSwap(name, str(number), str(number + 1)) for name in names])
            number += 1

    writer = threading.Thread(target=commit)
    writer.start()
    try:
        for number in range(5):
            back_up(store, tmp_path / str(number))
    finally:
        stopping.set()
        writer.join()
    for number in range(5):
        rows = [row for table, row in read_rows(str(tmp_path / str(number))) if table is TABLES]
        assert len(rows) == 2
        assert len({row["metadata_location"] for row in rows}) == 1
    assert store.read(names[0]) != "0"


def test_other_catalogs_of_the_database_are_not_in_it(tmp_path: Path) -> None:
    path = str(tmp_path / "c.db")
    mine, other = SqlitePointerStore(path), SqlitePointerStore(path, catalog_name="other")
    mine.create(TableName(("db",), "a"), "one")
    other.create(TableName(("db",), "b"), "two")
    assert back_up(mine, tmp_path / "f").rows["iceberg_tables"] == 1
    mine.close()
    other.close()


def test_older_layout_is_read_and_not_migrated(tmp_path: Path) -> None:
    """A database that PyIceberg or an older Java made has no tables of ours, and rows without a type."""
    with sqlite3.connect(tmp_path / "c.db") as made:
        made.execute(
            "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255), table_namespace VARCHAR(255), "
            "table_name VARCHAR(255), metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
            "PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )
        made.execute(
            "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255), namespace VARCHAR(255), "
            "property_key VARCHAR(255), property_value VARCHAR(1000), "
            "PRIMARY KEY (catalog_name, namespace, property_key))"
        )
        made.execute("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'a', 'one', NULL)")
    made.close()
    store = SqlitePointerStore(str(tmp_path / "c.db"), create=False)
    summary = back_up(store, tmp_path / "f")
    assert (summary.header.layout, summary.rows) == (0, {"iceberg_namespace_properties": 0, "iceberg_tables": 1})
    with store.database.reading() as connection:
        assert find_layout(connection).version == 0
        assert len(sa.inspect(connection).get_table_names()) == 2
    store.close()
