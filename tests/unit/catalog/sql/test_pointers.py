"""Pointers of tables and views in the shared layout."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql import pointers as sql_pointers
from bergline.catalog.sql.sql_store import SqlPointerStore

PARTS = ("a", "b", "-", "!", "c-x", "Z", "é", "ab", "a b", "~", "%", "_", "/")


def test_pages_of_names_have_each_once_and_tell_tables_from_views(store: SqlPointerStore) -> None:
    assert store.views is not None
    names = {kind: [TableName(("db",), f"{part}{kind}") for part in PARTS] for kind in ("t", "v")}
    for table, view in zip(names["t"], names["v"], strict=True):
        store.create(table, "p")
        store.views.create(view, "p")
    store.create(TableName(("db2",), "other"), "p")
    for pointers, kind in ((store, "t"), (store.views, "v")):
        found: list[TableName] = []
        while page := pointers.names_after(("db",), found[-1].name if found else None, 4):
            found += page
        assert sorted(found) == sorted(names[kind]) == pointers.list_names(("db",))
        around = pointers.names_around(TableName(("db",), "ax"), 100)
        assert sorted(around) == sorted(names[kind])
        assert len(pointers.names_around(TableName(("db",), "ax"), 2)) <= 4


@pytest.mark.parametrize("at_once", [3, 1000])
def test_some_names_are_found_in_the_order_of_all(
    store: SqlPointerStore, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(sql_pointers, "_ROWS_AT_ONCE", at_once)
    monkeypatch.setattr(sql_pointers, "_MOST_ROWS", 2 * at_once)
    assert store.views is not None
    for part in PARTS:
        for number in "123":
            store.create(TableName(("db",), f"{part}{number}"), "p")
    store.views.create(TableName(("db",), "av"), "p")
    store.create(TableName(("db2",), "other"), "p")
    everything = store.names_after(("db",), None, 1000)
    for numbers in ("1", "23", "123", ""):
        names = {"av", "other", "gone", "~~9", *(f"{part}{number}" for part in PARTS for number in numbers)}
        expected = [name for name in everything if name.name in names]
        assert store.names_among(("db",), names, None, None) == expected
        for size in (1, 4, 100):
            found: list[TableName] = []
            while page := store.names_among(("db",), names, found[-1].name if found else None, size):
                assert len(page) == min(size, len(expected) - len(found))
                found += page
            assert found == expected
    assert store.views.names_among(("db",), {"av", "a1"}, None, 10) == [TableName(("db",), "av")]
    assert store.names_among(("db",), (), None, 10) == []
