"""Dropped branches and tags come back while their snapshots are there."""

import pytest

from bergline import Table
from bergline.errors import AlreadyExistsError, NotFoundError
from support.fixtures.rows import order_rows


@pytest.fixture
def table(orders: Table) -> Table:
    """A branch ahead of `main` with retention, and a tag."""
    orders.append(order_rows(1))
    orders.refs.create_tag("v1", max_ref_age_ms=5000)
    orders.refs.create_branch("dev", min_snapshots_to_keep=3)
    orders.append(order_rows(2), branch="dev")
    return orders


def test_dropped_branch_comes_back_as_it_was_last(table: Table) -> None:
    before = table.refs["dev"]
    table.refs.drop_branch("dev")
    table.append(order_rows(3))
    table.refs.restore("dev")
    assert table.refs["dev"] == before
    assert table.scan(ref="dev").to_arrow().num_rows == 2


def test_dropped_tag_comes_back_as_a_tag_with_its_retention(table: Table) -> None:
    before = table.refs["v1"]
    table.refs.drop_tag("v1")
    table.refs.restore("v1")
    assert table.refs["v1"] == before


def test_ref_that_is_there_is_not_restored(table: Table) -> None:
    with pytest.raises(AlreadyExistsError, match="branch `dev` exists already"):
        table.refs.restore("dev")


def test_ref_that_never_was_is_not_found_and_near_ones_are_named(table: Table) -> None:
    table.refs.drop_branch("dev")
    with pytest.raises(NotFoundError, match="no dropped branch or tag `devs`") as caught:
        table.refs.restore("devs")
    assert "dev" in caught.value.near


def test_ref_whose_snapshot_has_expired_is_not_restored(table: Table) -> None:
    snapshot = table.refs["dev"].snapshot_id
    table.refs.drop_branch("dev")
    table.expire(snapshot_ids=[snapshot])
    with pytest.raises(NotFoundError, match=f"its snapshot {snapshot} has expired"):
        table.refs.restore("dev")
    assert "dev" not in table.refs
