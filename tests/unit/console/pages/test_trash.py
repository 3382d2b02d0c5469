"""The trash in the console, and what comes back from it."""

from typing import Any

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.records import sql_store_of
from bergline.console.page import Source
from bergline.console.pages.trash import trash_page

V = TableName(("db",), "v")


def drop(lake: Lake, table: Table, dropped_ms: int = 1) -> None:
    """Drop a table into the trash, as a server does."""
    store = sql_store_of(lake.catalog)
    if lake.table_exists(table.name):
        lake.drop_table(table.name)
    kept = DroppedTable(table.name, table.metadata_location, dropped_ms, 9, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.table_trash.add(connection, kept)


def drop_view(lake: Lake, table: Table) -> None:
    store = sql_store_of(lake.catalog)
    location = lake.create_view(V, "SELECT 1 AS id", table.schema).metadata_location
    lake.drop_view(V)
    with store.database.changing() as connection:
        store.view_trash.add(connection, DroppedView(V, location, 5, 9, "bob"))


def test_tables_and_views_are_listed_newest_first(source: Source, lake: Lake, story: Table) -> None:
    assert trash_page(source, {}).values["entries"] == []
    drop(lake, story)
    drop_view(lake, story)
    found = trash_page(source, {}).values
    assert [(e["kind"], e["name"], e["principal"]) for e in found["entries"]] == [
        ("view", "db.v", "bob"),
        ("table", "db.orders", "ann"),
    ]
    assert (found["previous_offset"], found["next_offset"]) == (None, None)


def test_bin_comes_in_pages(source: Source, lake: Lake, story: Table) -> None:
    for number in range(102):
        drop(lake, story, number)
    first = trash_page(source, {}).values
    assert (len(first["entries"]), first["next_offset"]) == (100, 100)
    second = trash_page(source, {"offset": "100"}).values
    assert [e["dropped_ms"] for e in second["entries"]] == [1, 0]
    assert (second["previous_offset"], second["next_offset"]) == (0, None)


def review(browser: Any, **fields: str) -> Any:
    csrf = browser.get("/trash/undrop", **fields).field("csrf")
    return browser.post("/trash/undrop", csrf=csrf, **fields)


def confirm(browser: Any, reviewed: Any, **fields: str) -> Any:
    carried = {key: reviewed.field(key) for key in ("csrf", "confirm")}
    return browser.post("/trash/undrop", **carried, **fields)


@pytest.mark.parametrize("kind", ["table", "view"])
def test_one_comes_back_after_a_review(browser: Any, lake: Lake, story: Table, kind: str) -> None:
    drop(lake, story)
    drop_view(lake, story)
    name = {"table": "db.orders", "view": "db.v"}[kind]
    assert f"/trash/undrop?name={name}&amp;kind={kind}" in browser.get("/trash").text
    reviewed = review(browser, kind=kind, name=name, to="db.back")
    assert f"{kind} `{name}`, dropped" in reviewed.text
    assert f"UNDROP {kind.upper()} {name} TO db.back" in reviewed.text
    assert f"bergline {kind} undrop {name} --to db.back" in reviewed.text
    assert not lake.table_exists("db.back")
    done = confirm(browser, reviewed, kind=kind, name=name, to="db.back")
    assert (done.status, "done" in done.text) == (200, True)
    assert {"table": lake.table_exists, "view": lake.view_exists}[kind]("db.back")
    assert browser.console._host.changes == [("ann", f"undrop-{kind}", name)]


def test_another_table_in_the_trash_is_reviewed_again(browser: Any, lake: Lake, story: Table) -> None:
    drop(lake, story)
    reviewed = review(browser, kind="table", name="db.orders")
    drop(lake, story, 2)
    stale = confirm(browser, reviewed, kind="table", name="db.orders")
    assert stale.status == 409
    assert "the trash changed since you reviewed this" in stale.text
    assert not lake.table_exists("db.orders")


def test_what_cannot_come_back_is_told_in_the_form(browser: Any, lake: Lake, story: Table) -> None:
    drop(lake, story)
    missing = review(browser, kind="table", name="db.order")
    assert (missing.status, "no dropped table `db.order`; dropped: `db.orders`" in missing.text) == (404, True)
    lake.create_table("db.orders", story.schema)
    taken = review(browser, kind="table", name="db.orders")
    assert (taken.status, "table `db.orders` exists already" in taken.text) == (409, True)
    assert browser.get("/trash/undrop", kind="index", name="db.orders").status == 400
    assert browser.get("/trash/undrop").status == 400


def test_purge_that_has_begun_offers_nothing(browser: Any, lake: Lake, story: Table) -> None:
    drop(lake, story)
    store = sql_store_of(lake.catalog)
    claim = store.table_trash.claim(10, 1)
    assert claim is not None
    assert store.table_trash.begin(claim)
    page = browser.get("/trash")
    assert "are being deleted" in page.text
    assert "/trash/undrop" not in page.text
    assert "its files are being deleted" in review(browser, kind="table", name="db.orders").text
