"""The page of a table."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.console.pages.table import table_page
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.console_pages import HOSTILE, show
from support.fixtures.rows import order_rows

QUERY = {"name": "db.orders"}


def test_the_graph_and_the_refs_are_shown(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    orders.refs.create_branch("dev", min_snapshots_to_keep=3)
    orders.append(order_rows(3), branch="dev")
    orders.refs.create_tag("v1")
    shown = show(table_page, lake, QUERY)
    assert [(r["name"], r["kind"], r["ahead"], r["behind"]) for r in shown.values["refs"]] == [
        ("main", "branch", 0, 0),
        ("dev", "branch", 1, 0),
        ("v1", "tag", 0, 0),
    ]
    assert shown.values["refs"][1]["retention"] == {"min_snapshots_to_keep": 3}
    newest = shown.values["history"]["entries"][0]
    assert newest["snapshot_id"] == str(orders.refs["dev"].snapshot_id)  # as text: JavaScript has no such numbers
    assert f'href="/table/snapshot?name=db.orders&amp;id={newest["snapshot_id"]}"' in shown.html
    assert shown.html.count("<circle") == 2


def test_rules_of_all_scopes_are_shown_with_the_refs_that_they_protect(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    orders.refs.protect("main", only_publish=True)
    lake.rules.protect("ma*", namespace="db", no_rollback=True)
    shown = show(table_page, lake, QUERY)
    main, dev = shown.values["refs"]
    assert [(rule["pattern"], rule["of"], rule["rule"]) for rule in main["rules"]] == [
        ("main", "table", "only-publish"),
        ("ma*", "namespace", "no-rollback"),
    ]
    assert dev["rules"] == []
    assert "`main` : only-publish; `ma*` of namespace `db` : no-rollback" in shown.text


def test_the_history_has_pages(lake: Lake, orders: Table) -> None:
    for i in range(4):
        orders.append(order_rows(i))
    shown = show(table_page, lake, QUERY | {"offset": "1", "count": "2"})
    assert [e["row"] for e in shown.values["history"]["entries"]] == [1, 2]
    assert (shown.values["previous_offset"], shown.values["next_offset"], shown.values["snapshots"]) == (0, 3, 4)
    assert "Snapshots 2 to 3 of 4" in shown.text
    assert show(table_page, lake, QUERY | {"offset": "99"}).values["history"]["entries"] == []


def test_everything_that_others_wrote_is_escaped(lake: Lake, orders: Table) -> None:
    orders.set_properties({"comment": HOSTILE})
    orders.append(order_rows(1), summary={"author": HOSTILE, "engine-name": HOSTILE})
    orders.refs.create_branch(HOSTILE)
    shown = show(table_page, lake, QUERY)
    assert HOSTILE in shown.text
    assert shown.values["facts"]["comment"] == HOSTILE


def test_an_empty_table_has_its_page(lake: Lake, orders: Table) -> None:
    assert "Nothing was written to this table yet." in show(table_page, lake, QUERY).text


def test_broken_metadata_is_said_with_its_place(reopened: Lake, orders: Table) -> None:
    Path(orders.metadata_location.removeprefix("file://")).write_bytes(b"{")
    shown = show(table_page, reopened, QUERY)
    assert shown.page.template == "broken_table.html"
    assert shown.values["metadata_location"] == orders.metadata_location
    assert shown.values["problems"][0]["code"] == "metadata-changed"


def test_the_history_is_shown_though_files_are_gone(reopened: Lake, orders: Table) -> None:
    head = orders.append(order_rows(1)).current_snapshot
    assert head is not None
    assert head.manifest_list is not None
    Path(head.manifest_list.removeprefix("file://")).unlink()
    shown = show(table_page, reopened, QUERY)
    assert "Cannot show the files of `main`" in shown.text
    assert "<circle" in shown.html


def test_a_table_that_does_not_exist_is_an_error(lake: Lake) -> None:
    with pytest.raises(NotFoundError):
        show(table_page, lake, {"name": "db.nothing"})
    with pytest.raises(InvalidInputError):
        show(table_page, lake, {"name": "nothing"})
