"""The other tables of a catalog, where they may use files in some directories."""

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.sql.records import sql_store_of
from bergline.errors import RefusedError
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directory_set import DirectorySet
from bergline.table.orphans.other_tables import OtherTables
from support.fixtures.rows import ORDERS, order_rows

RULES = PathRules({}, {})


def others(lake: Lake, table: Table, *, read_all: bool = False) -> OtherTables:
    directories = DirectorySet(RULES, [table.location])
    return OtherTables(
        lake.catalog, lake.catalog.load_table(parse_table_name(table.name)), directories, "purge it", read_all=read_all
    )


def test_other_tables_and_views_are_listed_without_the_table_itself(lake: Lake, orders: Table) -> None:
    lake.create_table("db.items", ORDERS)
    lake.create_view("db.v", "SELECT 1", ORDERS)
    found = others(lake, orders, read_all=True)
    assert [str(t.name) for t in found.tables()] == ["db.items"]
    assert [str(v.name) for v in found.views()] == ["db.v"]
    far = others(lake, orders)
    assert not [*far.tables(), *far.views()]


def test_manifests_are_read_only_where_directories_may_overlap(lake: Lake, orders: Table) -> None:
    lake.create_table("db.items", ORDERS).append(order_rows(1))
    for read_all, data_files in ((False, 0), (True, 1)):
        (items,) = others(lake, orders, read_all=True).tables()
        found = others(lake, orders, read_all=read_all)
        assert len([f for f in found.files_of(items) if f.endswith(".parquet")]) == data_files


def test_unreadable_table_blocks_only_where_it_may_overlap(lake: Lake, orders: Table) -> None:
    inside = lake.create_table("db.inside", ORDERS, location=f"{orders.location}/inside").append(order_rows(1))
    snapshot = inside.current_snapshot
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    (loaded,) = others(lake, orders).tables()
    inside.io.delete([snapshot.manifest_list])
    with pytest.raises(RefusedError, match=r"cannot purge it: what `db\.inside` uses cannot be read"):
        list(others(lake, orders).files_of(loaded))


def test_views_in_the_trash_are_listed_while_their_metadata_is_there(lake: Lake, orders: Table) -> None:
    store = sql_store_of(lake.catalog)
    location = lake.create_view("db.v", "SELECT 1 AS id", orders.schema).metadata_location
    lake.drop_view("db.v")
    with store.database.changing() as connection:
        for place in (location, f"{location}-gone"):
            store.view_trash.add(connection, DroppedView(TableName(("db",), "v"), place, 1, 2, "ann"))
    assert [view.metadata_location for view in others(lake, orders).views()] == [location]


def test_table_that_is_dropped_after_it_was_found_near_is_looked_at_in_the_trash(lake: Lake, orders: Table) -> None:
    inside = lake.create_table("db.inside", ORDERS, location=f"{orders.location}/inside").append(order_rows(1))
    found, store = others(lake, orders), sql_store_of(lake.catalog)
    live = found.tables()
    assert [str(table.name) for table in [next(live)]] == ["db.inside"]
    name = parse_table_name("db.inside")
    dropped = DroppedTable(name, inside.metadata_location, 1, 2**60, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.table_trash.add(connection, dropped)
    store.drop(name)
    (in_trash,) = live
    assert in_trash.metadata_location == inside.metadata_location
    assert [file for file in found.files_of(in_trash) if file.endswith(".parquet")]
