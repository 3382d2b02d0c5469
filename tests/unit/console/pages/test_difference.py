"""The page of the difference of two refs."""

import pytest

from bergline import Lake, Table
from bergline.console.pages.difference import difference_page
from bergline.errors import NotFoundError
from support.fixtures.console_pages import HOSTILE, show
from support.fixtures.rows import order_rows

QUERY = {"name": "db.orders"}


def test_both_sides_partitions_and_rows_are_shown(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch(HOSTILE)
    orders.append(order_rows(2, region=HOSTILE), branch=HOSTILE)
    orders.append(order_rows(3))
    shown = show(difference_page, lake, QUERY | {"from": "main", "to": HOSTILE})
    difference = shown.values["difference"]
    assert difference["ancestor"]["snapshot_id"] == str(orders.metadata.snapshots[0].snapshot_id)
    assert (difference["only_to_count"], difference["only_from_count"]) == (1, 1)
    (rows,) = difference["partitions"]
    assert (rows["added_rows"], rows["removed_rows"], rows["rewritten_rows"]) == (1, 1, 0)
    assert sorted(row[:2] for row in difference["sample"]["rows"]) == [["DELETE", "3"], ["INSERT", "2"]]
    assert HOSTILE in shown.text


def test_the_first_other_ref_is_compared_with_main(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    shown = show(difference_page, lake, QUERY)
    assert (shown.values["from_ref"], shown.values["to_ref"]) == ("main", "dev")
    assert "Both have the same files." in shown.text
    assert "None: both have the same rows." in shown.text


def test_a_table_with_one_ref_has_nothing_to_compare(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    shown = show(difference_page, lake, QUERY)
    assert shown.values["difference"] is None
    assert "no second branch or tag" in shown.text


def test_refs_are_compared_though_main_is_empty(lake: Lake, orders: Table) -> None:
    orders.refs.create_branch("dev")
    orders.refs.create_branch("other", at="dev")
    assert "main" not in orders.refs
    shown = show(difference_page, lake, QUERY)
    assert (shown.values["from_ref"], shown.values["to_ref"]) == ("dev", "other")


def test_a_ref_that_does_not_exist_is_an_error(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(NotFoundError, match="no branch or tag `nope`"):
        show(difference_page, lake, QUERY | {"to": "nope"})
