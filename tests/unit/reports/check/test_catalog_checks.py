"""The check of views, of the trash and of the catalog's own rows."""

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.records import sql_store_of
from bergline.catalog.sql.rules.reviews import RecordedReview, ReviewedTable, ReviewKind, ReviewState, SqlReviews
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.reports.check.catalog_checks import check_others
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def store(lake: Lake) -> SqlPointerStore:
    return sql_store_of(lake.catalog)


def found(lake: Lake) -> dict[str, list[str]]:
    """The severity and code of findings, by what they are about."""
    checked = check_others(lake.catalog, deep=False)
    return {one.what: [f"{finding.severity} {finding.code}" for finding in one.findings] for one in checked}


def drop(lake: Lake, table: Table, *, begun: bool = False, problem: str | None = None) -> None:
    store = sql_store_of(lake.catalog)
    lake.drop_table(table.name)
    with store.database.changing() as connection:
        store.table_trash.add(
            connection, DroppedTable(table.name, table.metadata_location, 1, 2, "ann", purges_files=True)
        )
    if begun or problem:
        claim = store.table_trash.claim(3, 1)
        assert claim is not None
        store.table_trash.put_off(claim, 9, problem or "", begun=begun)


def test_catalog_in_order_has_no_finding(lake: Lake, orders: Table, store: SqlPointerStore) -> None:
    orders.append(order_rows(1))
    lake.create_view("db.v", "SELECT 1 AS id", ORDERS)
    lake.create_view("db.w", "SELECT 1 AS id", ORDERS)
    with store.database.changing() as connection:
        kept = DroppedView(TableName(("db",), "w"), lake.load_view("db.w").metadata_location, 1, 2, "ann")
        store.view_trash.add(connection, kept)
    lake.drop_view("db.w")
    drop(lake, orders)
    assert found(lake) == {"view db.v": [], "dropped view db.w": [], "dropped table db.orders": [], "catalog": []}


def test_view_whose_metadata_is_gone_or_broken_is_an_error(lake: Lake) -> None:
    for name in ("v", "w"):
        lake.create_view(f"db.{name}", "SELECT 1 AS id", ORDERS)
    io, first, second = (
        lake.catalog.io,
        lake.load_view("db.v").metadata_location,
        lake.load_view("db.w").metadata_location,
    )
    io.delete([first, second])
    io.create(second, b"{")
    store = sql_store_of(lake.catalog)
    with store.database.changing() as connection:
        store.view_trash.add(connection, DroppedView(TableName(("db",), "old"), first, 1, 2, "ann"))
    with Lake(type(lake.catalog)(store, io, "file:///nowhere"), "again") as again:  # without a cache
        assert found(again) == {
            "view db.v": ["error view-missing"],
            "view db.w": ["error view-unreadable"],
            "dropped view db.old": ["error dropped-view-missing"],
            "catalog": [],
        }


def test_dropped_table_that_cannot_come_back_is_told(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    (file,) = orders.scan().plan().files
    lake.catalog.io.delete([file.file.file_path])
    drop(lake, orders)
    assert found(lake)["dropped table db.orders"] == ["error data-file-missing"]


def test_purge_that_has_begun_or_failed_is_told(lake: Lake, orders: Table) -> None:
    drop(lake, orders, problem="files that another table uses")
    assert found(lake)["dropped table db.orders"] == ["warning purge-failed"]
    other = lake.create_table("db.other", ORDERS)
    drop(lake, other, begun=True)
    assert found(lake)["dropped table db.other"] == ["note purge-begun"]


def test_rows_that_do_not_fit_are_told(lake: Lake, orders: Table, store: SqlPointerStore) -> None:
    reviews = SqlReviews(store.database, store.catalog_name)
    for uuid in (str(orders.metadata.table_uuid), "gone"):
        reviews.record(
            ReviewedTable(TableName(("db",), "t"), uuid),
            RecordedReview(1, ReviewKind.CHECK, "dq", ReviewState.PASSED, "ann", 1),
        )
    store.create(TableName(("implicit",), "copy"), orders.metadata_location)
    assert found(lake)["catalog"] == ["warning pointer-shared", "note namespace-implicit", "note review-of-nothing"]
