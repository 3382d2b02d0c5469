"""Who came first, in words."""

import re
from collections.abc import Callable, Iterator

import msgspec
import pytest

from bergline import Table
from bergline.catalog.conflicts import describe_change, describe_latest
from bergline.format.metadata.snapshot import Snapshot
from support.fixtures.rows import order_rows


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


class Unwalked(tuple[Snapshot, ...]):
    """Snapshots of which only some are looked at."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Snapshot]:
        raise AssertionError("all snapshots were looked at")


def test_newest_snapshot_is_named_without_looking_at_the_history(orders: Table) -> None:
    first = orders.append(order_rows(1)).metadata
    now = orders.append(order_rows(2), branch="dev").metadata
    newest = now.snapshots[-1]
    assert newest not in first.snapshots
    long = msgspec.structs.replace(now, snapshots=Unwalked(now.snapshots))
    assert describe_latest(long).startswith(f"the newest is snapshot {newest.snapshot_id} (append on `dev`, ")


def test_newest_snapshot_that_was_not_added_last_is_named_by_its_ref(orders: Table) -> None:
    now = orders.append(order_rows(1)).append(order_rows(2)).metadata
    other = msgspec.structs.replace(now, snapshots=now.snapshots[::-1])
    assert describe_latest(other) == describe_latest(now)
    expired = msgspec.structs.replace(now, snapshots=now.snapshots[:1], refs={}, current_snapshot_id=None)
    assert describe_latest(expired).startswith(
        f"the newest is snapshot {now.snapshots[0].snapshot_id} (append, on no ref"
    )


def test_table_without_snapshots_has_no_newest(orders: Table) -> None:
    assert describe_latest(orders.metadata).startswith("the table has no snapshots, and was changed at 20")
