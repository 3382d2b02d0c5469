"""Pointers of tables and views in the shared layout."""

from bergline.catalog.identifiers import TableName
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
