"""Who came first, in words."""

import re
from collections.abc import Callable

import pytest
from rows import order_rows

from bergline import Table
from bergline.catalog.conflicts import describe_change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.append(order_rows(2)), r"snapshot \d+ \(append on `main`, 20..-..-..T.*\+00:00\) came first"),
        (lambda t: t.append(order_rows(2), branch="dev"), r"snapshot \d+ \(append on `dev`, .*\) came first"),
        (lambda t: t.append(order_rows(2)).append(order_rows(3)), r"\) and 1 more came first"),
        (lambda t: t.overwrite(order_rows(2)), r"\(overwrite on `main`, "),
        (lambda t: t.refs.create_tag("v1"), r"`v1` changed first, at 20"),
        (lambda t: t.set_properties({"a": "b"}), r"its properties changed first, at 20"),
        (lambda _: None, r"its metadata changed first, at 20"),
    ],
)
def test_change_is_named(orders: Table, change: Callable[[Table], object], expected: str) -> None:
    base = orders.append(order_rows(1)).metadata
    change(orders)
    assert re.search(expected, describe_change(base, orders.refresh().metadata))
