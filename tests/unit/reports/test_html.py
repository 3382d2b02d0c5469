"""What notebooks show."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.reports import html
from bergline.reports.html import diff_html, refs_html, scan_html, table_html
from support.fixtures.rows import order_rows

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def hostile(orders: Table) -> Table:
    """Orders with a branch, a column and values that are markup."""
    with orders.update_schema() as update:
        update.add_column("note", "string", doc=HOSTILE)
    orders.append(order_rows(1, region=HOSTILE), summary={"author": HOSTILE})
    orders.refs.create_branch(HOSTILE)
    return orders.append(order_rows(2), branch=HOSTILE)


def test_everything_shows_itself_and_is_escaped(hostile: Table) -> None:
    shown = {
        "table": table_html(hostile),
        "refs": refs_html(hostile.metadata),
        "scan": scan_html(hostile.scan("id > 0")),
        "diff": diff_html(hostile.refs.diff("main", HOSTILE)),
    }
    assert all("&lt;script&gt;" in text and "<script" not in text for text in shown.values())
    assert "<svg" in shown["table"]
    assert "1 row · " in shown["table"]
    assert "1 ahead, 0 behind" in shown["refs"]
    assert "1 data file" in shown["scan"]
    assert "1 snapshot only in" in shown["diff"]


def test_a_scan_that_cannot_be_read_says_why(reopened: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    (path,) = orders.inspect("files")["file_path"].to_pylist()
    Path(path.removeprefix("file://")).unlink()
    assert path in scan_html(reopened.load_table("db.orders").scan())


def test_of_a_long_history_the_newest_part_is_drawn(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "_MOST_SNAPSHOTS", 1)
    shown = table_html(orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3)))
    assert shown.count("<circle") == 1
    assert "and 2 older snapshots" in shown


def test_an_empty_table_shows_itself(orders: Table) -> None:
    assert "0 rows" in table_html(orders)
    assert "an empty table" in scan_html(orders.scan())
    assert "Branches and tags" in refs_html(orders.metadata)
