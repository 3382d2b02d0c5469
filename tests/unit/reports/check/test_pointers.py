"""The pointers of a backup: which lead to metadata, and which tables moved on."""

import pytest

from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.backup.pointers import PointerOf, StoredPointer
from bergline.reports.check.pointers import PointerFinding, check_pointers


def at(kind: PointerOf, location: str | None) -> StoredPointer:
    return StoredPointer(kind, TableName(("db",), "orders"), location)


def check(lake: Lake, pointer: StoredPointer) -> tuple[str | None, str | None] | None:
    report = check_pointers(lake.catalog.io, [pointer], 1)
    assert report.checked == 1
    found: tuple[PointerFinding, ...] = report.broken + report.moved_on
    return (found[0].problem, found[0].newest) if found else None


def test_pointer_that_leads_to_metadata_is_no_finding(lake: Lake, orders: Table) -> None:
    lake.create_view("db.v", "SELECT id FROM db.orders", schema=orders.schema)
    view = lake.catalog.load_view(TableName(("db",), "v")).metadata_location
    assert check(lake, at(PointerOf.TABLE, orders.metadata_location)) is None
    assert check(lake, at(PointerOf.DROPPED_TABLE, orders.metadata_location)) is None
    assert check(lake, at(PointerOf.VIEW, view)) is None


@pytest.mark.parametrize("kind", list(PointerOf))
def test_pointer_that_leads_nowhere_is_broken(lake: Lake, orders: Table, kind: PointerOf) -> None:
    missing = orders.metadata_location.replace("00000-", "00000-x")
    assert check(lake, at(kind, missing)) == (f"the metadata file does not exist: {missing}", None)
    assert check(lake, at(kind, None)) == ("its row has no metadata file", None)
    lake.catalog.io.create(missing, b"{")
    problem, newest = check(lake, at(kind, missing)) or (None, None)
    assert problem is not None
    assert (missing in problem, newest) == (True, None)


def test_table_that_moved_on_is_told(lake: Lake, orders: Table) -> None:
    pointer = at(PointerOf.TABLE, orders.metadata_location)
    orders.append([{"id": 1}])
    assert check(lake, pointer) == (None, orders.metadata_location)
    report = check_pointers(lake.catalog.io, [pointer], 1)
    assert str(report).splitlines() == [
        "1 pointer checked: none broken, 1 of tables that moved on after the backup",
        "table `db.orders`: moved on after the backup",
        f"  the newest metadata file found is {orders.metadata_location}",
    ]


def test_dropped_table_that_came_back_is_told_and_stays_in_the_trash(lake: Lake, orders: Table) -> None:
    pointer = at(PointerOf.DROPPED_TABLE, orders.metadata_location)
    orders.append([{"id": 1}])
    (found,) = check_pointers(lake.catalog.io, [pointer], 1).moved_on
    assert (found.newest, found.newest_of_table) == (orders.metadata_location, None)
    assert "dropped table `db.orders`: was restored from the trash after the backup, and moved on" in str(found)
