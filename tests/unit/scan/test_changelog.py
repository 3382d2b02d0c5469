"""Which data files a snapshot changed rows of, and by which deletes."""

import pytest

from bergline import Lake, Table
from bergline.expressions.parse import parse_predicate
from bergline.format.metadata.snapshot import Snapshot
from bergline.scan.changelog import plan_changelog, plan_difference
from bergline.scan.plan import ChangelogPlan, FileChange
from support.fixtures.add_deletes import add_deletes, equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def orders(lake: Lake) -> Table:
    """Orders 1 and 2 in `eu`, 3 in `us`."""
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.by_region", ORDERS, partition_by=["region"], properties=properties)
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def planned(table: Table, row_filter: str = "true") -> ChangelogPlan:
    """The changes of the last snapshot."""
    last = table.current_snapshot
    assert isinstance(last, Snapshot)
    return plan_changelog(
        table.io,
        table.metadata,
        [last],
        table_schema=table.schema,
        columns=table.schema,
        row_filter=parse_predicate(row_filter),
    )


def only_change(table: Table) -> FileChange:
    (change,) = planned(table).changes
    return change


def test_an_append_adds_files_of_which_nothing_was_there(orders: Table) -> None:
    change = only_change(orders)
    assert (change.before, change.after, change.ordinal) == (None, (), 0)
    assert orders.current_snapshot is not None
    assert change.snapshot_id == orders.current_snapshot.snapshot_id
    assert (change.may_insert, change.may_delete) == (True, False)


def test_removed_files_have_the_deletes_that_applied_before(orders: Table) -> None:
    orders.delete("id = 1").delete("region = 'eu'")
    change = only_change(orders)
    assert change.after is None
    assert [d.record_count for d in change.before or ()] == [1]
    assert (change.may_insert, change.may_delete) == (False, True)


def test_position_deletes_concern_only_their_data_file(orders: Table) -> None:
    orders.delete("id = 1")
    change = only_change(orders)
    assert change.file.partition == ("eu",)
    assert change.before == ()
    assert [d.record_count for d in change.after or ()] == [1]
    assert (change.may_insert, change.may_delete) == (False, True)


def test_equality_deletes_concern_older_files_of_their_partition(orders: Table) -> None:
    key = order_rows(7).select(["id"])
    add_deletes(orders, equality_deletes(orders, key, [1], ("us",)))
    change = only_change(orders)
    assert change.file.partition == ("us",)
    orders.append(order_rows(9, region="us"))
    assert only_change(orders).after == ()


def test_deletes_for_files_that_are_not_there_concern_nothing(orders: Table) -> None:
    paths = [p.file.file_path for p in orders.scan("region = 'eu'").plan().files]
    delete = position_deletes(orders, {paths[0]: [0]})
    orders.delete("region = 'eu'")
    add_deletes(orders, delete)
    assert planned(orders).changes == ()


def test_a_filter_prunes_files(orders: Table) -> None:
    assert planned(orders, "region = 'eu'").changes == ()
    assert len(planned(orders, "id = 3").changes) == 1
    assert planned(orders, "id = 4").changes == ()


def test_states_differ_in_files_and_deletes(orders: Table) -> None:
    orders.refs.create_tag("start")
    orders.delete("id = 1").append(order_rows(4))
    start, end = orders.metadata.ref("start").snapshot_id, orders.metadata.ref("main").snapshot_id
    schema = orders.schema
    forth, back = (
        plan_difference(orders.io, orders.metadata, *states, table_schema=schema, columns=schema).changes
        for states in ((start, end), (end, start))
    )
    assert [(c.may_insert, c.may_delete) for c in forth] == [(False, True), (True, False)]
    assert sorted((c.may_insert, c.may_delete) for c in back) == [(False, True), (True, False)]
    assert {(c.ordinal, c.snapshot_id) for c in forth} == {(None, None)}
