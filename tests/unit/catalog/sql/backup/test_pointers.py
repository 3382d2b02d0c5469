"""The pointers in a backup."""

from collections.abc import Callable
from pathlib import Path

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.backup.back_up import back_up_catalog
from bergline.catalog.sql.backup.pointers import PointerOf, StoredPointer, count_pointers, stored_pointers
from bergline.catalog.sql.sql_store import SqlPointerStore

A, B, C = (TableName(("db", "eu"), name) for name in "abc")


def test_tables_views_and_the_trash_have_pointers(new_store: Callable[..., SqlPointerStore], tmp_path: Path) -> None:
    store = new_store("sqlite")
    assert store.views is not None
    store.create(A, "one")
    store.views.create(B, "two")
    with store.database.changing() as connection:
        store.table_trash.add(connection, DroppedTable(C, "three", 1, 2, "ann", purges_files=False))
    path = str(tmp_path / "f")
    summary = back_up_catalog(store.database, "lake", path, made_ms=7, made_by="bergline 1")
    found = list(stored_pointers(path))
    assert found == [
        StoredPointer(PointerOf.TABLE, A, "one"),
        StoredPointer(PointerOf.VIEW, B, "two"),
        StoredPointer(PointerOf.DROPPED_TABLE, C, "three"),
    ]
    assert count_pointers(summary) == 3
