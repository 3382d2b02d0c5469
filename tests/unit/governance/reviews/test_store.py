"""Checks and approvals by the name of a table."""

import pytest

from bergline import Lake, Table
from bergline.catalog.protection.caller import acting_as
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.rows import order_rows


@pytest.fixture
def head(orders: Table) -> int:
    orders.append(order_rows(1))
    return orders.refs["main"].snapshot_id


def test_reviews_are_of_one_snapshot_and_have_the_callers_name(lake: Lake, orders: Table, head: int) -> None:
    with acting_as("ci"):
        lake.reviews.report_check("db.orders", head, "nulls", passed=False, detail="3 of 10")
        lake.reviews.report_check("db.orders", head, "pii", passed=None)
    with acting_as("ann"):
        lake.reviews.approve("db.orders", head, detail="looks right")
    found = [(c.name, c.state, c.principal, c.detail) for c in lake.reviews.checks("db.orders", head)]
    assert found == [("nulls", "failed", "ci", "3 of 10"), ("pii", "pending", "ci", None)]
    (approval,) = lake.reviews.approvals("db.orders", head)
    assert (approval.principal, approval.withdrawn, approval.detail) == ("ann", False, "looks right")
    orders.append(order_rows(2))
    assert lake.reviews.checks("db.orders", orders.refs["main"].snapshot_id) == ()


def test_approval_is_withdrawn_by_who_gave_it(lake: Lake, head: int) -> None:
    with acting_as("ann"):
        lake.reviews.approve("db.orders", head)
    with acting_as("zoe"), pytest.raises(NotFoundError, match="no approval of `zoe`"):
        lake.reviews.withdraw("db.orders", head)
    with acting_as("ann"):
        lake.reviews.withdraw("db.orders", head)
        with pytest.raises(NotFoundError, match="no approval of `ann`"):
            lake.reviews.withdraw("db.orders", head)
    assert [a.withdrawn for a in lake.reviews.approvals("db.orders", head)] == [True]


def test_wrong_reviews_are_refused(lake: Lake, head: int) -> None:
    with pytest.raises(NotFoundError, match="no snapshot with id 7"):
        lake.reviews.approve("db.orders", 7)
    with pytest.raises(InvalidInputError, match="expected a check without"):
        lake.reviews.report_check("db.orders", head, "a,b")
    with pytest.raises(InvalidInputError, match="up to 4000 characters"):
        lake.reviews.approve("db.orders", head, detail="x" * 5000)
