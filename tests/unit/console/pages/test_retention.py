"""The page of retention."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.console.pages import retention
from bergline.console.pages.retention import retention_page
from support.fixtures.console_pages import show
from support.fixtures.rows import order_rows

QUERY = {"name": "db.orders"}


@pytest.fixture
def kept(orders: Table) -> Table:
    """Three snapshots of which expiry removes one."""
    orders.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    orders.append(order_rows(1))
    orders.refs.create_tag("v1", max_ref_age_ms=3650 * 86_400_000)
    return orders.overwrite(order_rows(2)).append(order_rows(3))


def test_what_expiry_would_remove_is_shown_with_reasons(lake: Lake, kept: Table) -> None:
    shown = show(retention_page, lake, QUERY)
    assert (shown.values["removed_snapshots"], shown.values["snapshot_count"]) == (1, 3)
    assert "1 snapshot of 3 and 0 refs of 2" in shown.text
    tag = shown.values["refs"][1]
    assert (tag["name"], tag["max_ref_age"], tag["keeps_snapshots"]) == ("v1", "3650 days", 1)
    assert tag["pinned"]["bytes"] > 0
    assert "table/actions/expire" not in shown.html
    assert "table/actions/expire" in show(retention_page, lake, QUERY, may_change=True).html


def test_only_what_is_removed_can_be_shown(lake: Lake, kept: Table) -> None:
    shown = show(retention_page, lake, QUERY | {"which": "removed"})
    assert [s["kept"] for s in shown.values["snapshots"]] == [False]
    assert shown.values["snapshots"][0]["snapshot_id"] == str(kept.metadata.snapshots[1].snapshot_id)


def test_decisions_are_shown_though_files_are_gone(reopened: Lake, kept: Table) -> None:
    manifest_list = kept.metadata.snapshots[0].manifest_list
    assert manifest_list is not None
    Path(manifest_list.removeprefix("file://")).unlink()
    shown = show(retention_page, reopened, QUERY)
    assert (shown.values["removed_snapshots"], shown.values["deleted"]) == (1, None)
    assert manifest_list in shown.text


def test_files_of_very_many_snapshots_are_worked_out_when_asked_for(
    lake: Lake, kept: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_MOST_WORKED_OUT", 2)
    shown = show(retention_page, lake, QUERY)
    assert (shown.values["deleted"], shown.values["removed_snapshots"], shown.values["problems"]) == (None, 1, [])
    assert "work out the files of 3 snapshots" in shown.text
    assert show(retention_page, lake, QUERY | {"files": "1"}).values["deleted"]["files"] > 0


def test_an_empty_table_keeps_nothing(lake: Lake, orders: Table) -> None:
    assert "There are no branches or tags." in show(retention_page, lake, QUERY).text
