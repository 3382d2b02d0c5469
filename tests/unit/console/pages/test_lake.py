"""The page of the lake."""

from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.identifiers import TableName
from bergline.console.pages import lake as lake_module
from bergline.console.pages.lake import lake_page
from bergline.console.pages.table import table_page
from bergline.errors import InvalidInputError
from support.fixtures.console_pages import HOSTILE, show
from support.fixtures.rows import ORDERS, order_rows


def test_tables_are_shown_with_their_figures(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    shown = show(lake_page, lake, {})
    (line,) = shown.values["tables"]
    assert (line["name"], line["key"], line["totals"]["rows"], line["problem"]) == ("db.orders", "db.orders", 3, None)
    assert 'href="/table?name=db.orders"' in shown.html
    assert "1 table" in shown.text


def test_names_are_escaped_and_links_lead_to_them(lake: Lake) -> None:
    lake.create_table(TableName(("db",), HOSTILE), ORDERS)
    shown = show(lake_page, lake, {"q": HOSTILE})
    assert [line["name"] for line in shown.values["tables"]] == [f"db.{HOSTILE}"]
    assert HOSTILE in shown.text


def test_a_search_and_a_namespace_narrow_it_down() -> None:
    with bergline.connect("memory:") as lake:
        for name in (TableName(("db",), "orders"), TableName(("a.b", "c"), "deep")):
            lake.create_namespace(name.namespace[:1])
            lake.create_namespace(name.namespace, if_not_exists=True)
            lake.create_table(name, ORDERS)
        shown = show(lake_page, lake, {})
        key = next(one["key"] for one in shown.values["namespaces"] if one["name"] == "a.b.c")
        (inside,) = show(lake_page, lake, {"namespace": key}).values["tables"]
        assert (inside["name"], inside["key"]) == ("a.b.c.deep", "a.b\x1fc\x1fdeep")
        assert show(table_page, lake, {"name": inside["key"]}).page.title == "a.b.c.deep"
        assert show(lake_page, lake, {"q": "nothing"}).values["tables"] == []


def test_a_broken_table_says_what_is_wrong_beside_the_others(lake: Lake, reopened: Lake, orders: Table) -> None:
    lake.create_table("db.whole", ORDERS)
    Path(orders.metadata_location.removeprefix("file://")).unlink()
    shown = show(lake_page, reopened, {})
    assert [bool(line["problem"]) for line in shown.values["tables"]] == [True, False]
    assert "broken" in shown.text
    assert orders.metadata_location in shown.text


def test_more_tables_are_on_the_next_page(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_module, "_TABLES", 2)
    for i in range(3):
        lake.create_table(f"db.t{i}", ORDERS)
    first = show(lake_page, lake, {})
    assert ([line["name"] for line in first.values["tables"]], first.values["next_offset"]) == (["db.t0", "db.t1"], 2)
    last = show(lake_page, lake, {"offset": "2"})
    assert [line["name"] for line in last.values["tables"]] == ["db.t2"]
    assert (last.values["previous_offset"], last.values["next_offset"]) == (0, None)


@pytest.mark.parametrize("offset", ["-1", "x", "9" * 40, "²"])
def test_an_offset_that_is_no_number_is_refused(lake: Lake, offset: str) -> None:
    with pytest.raises(InvalidInputError, match="`offset`"):
        show(lake_page, lake, {"offset": offset})


def test_an_empty_lake_says_so(lake: Lake) -> None:
    assert "There are no tables yet." in show(lake_page, lake, {}).text
