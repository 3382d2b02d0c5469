"""Views in the trash of a SQL catalog, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.governance_layout import DROPPED_VIEWS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import ConflictError
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_file, new_catalog_uri

V = TableName(("db", "eu"), "v")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    name = f"views-{tmp_path.name}"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", name, {}, 10.0, (), 10**6, True))
    yield catalog.store
    catalog.close()


def drop(store: SqlPointerStore, number: int = 1) -> DroppedView:
    """Put a view into the trash; the newest one there."""
    with store.database.changing() as connection:
        store.view_trash.add(connection, DroppedView(V, f"file:///{number}", number, 100 + number, "ann"))
    return store.dropped_views()[0]


def test_dropped_views_come_in_pages_newest_first(store: SqlPointerStore) -> None:
    for number in (1, 2, 2, 3):
        drop(store, number)
    found = store.dropped_views()
    assert [view.dropped_ms for view in found] == [3, 2, 2, 1]
    assert store.dropped_views(2) == found[:2]
    mark = found[1].dropped_ms, found[1].bin_id
    assert store.view_trash.views(5, mark) == found[2:]


def test_view_is_restored_once(store: SqlPointerStore) -> None:
    assert store.views is not None
    dropped = drop(store)
    assert (dropped.name, dropped.principal, dropped.keep_until_ms) == (V, "ann", 101)
    assert store.restore_view(dropped, V)
    assert store.views.read(V) == dropped.metadata_location
    assert store.read(V) is None
    with pytest.raises(ConflictError, match="no longer in the trash"):
        store.restore_view(dropped, TableName(("db",), "w"))
    again = drop(store)
    assert not store.restore_view(again, V)
    assert store.dropped_views() == [again]


def test_views_whose_time_is_over_are_forgotten(store: SqlPointerStore) -> None:
    drop(store, 1)
    kept = drop(store, 2)
    assert store.view_trash.forget_due(101) == 1
    assert store.dropped_views() == [kept]


def test_older_layout_has_no_dropped_views(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(new_catalog_file(tmp_path / "c.db")))
    with store.database.changing() as connection:
        connection.execute(sa.text(f"DROP TABLE {DROPPED_VIEWS.name}"))
    assert store.dropped_views() == []
    store.close()
