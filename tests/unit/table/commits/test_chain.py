"""Several operations on one table as one."""

import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError, RefusedError
from bergline.format.metadata.updates import AddSnapshot, RemoveProperties, SetProperties
from bergline.table.commits.chain import Chain
from bergline.table.commits.operation import Change, CommitStamp, Landed, MetadataOperation
from bergline.table.operations.append import Append
from support.fixtures.competing_writers import files
from support.fixtures.data_files import written_files
from support.fixtures.rows import order_rows

NOW = 1_700_000_000_000


def append(table: Table, number: int, branch: str = "main") -> Append:
    return Append(table.io, written_files(table, order_rows(number)), branch=branch, discard_on_failure=True)


def chain_on(table: Table) -> Chain:
    return Chain(table.name, table.metadata, table.io)


def test_each_operation_builds_on_the_one_before(orders: Table) -> None:
    chain = chain_on(orders)
    assert chain.is_empty
    chain.add(append(orders, 1), NOW)
    chain.add(append(orders, 2), NOW)
    first, second = chain.metadata.snapshots
    assert (chain.is_empty, second.parent_snapshot_id) == (False, first.snapshot_id)
    change = chain.attempt(orders.metadata, CommitStamp(1, NOW))
    assert [u.snapshot for u in change.updates if isinstance(u, AddSnapshot)] == [first, second]


def test_another_base_keeps_snapshot_ids_and_data_files(lake: Lake, orders: Table) -> None:
    chain = chain_on(orders)
    chain.add(append(orders, 1), NOW)
    (before,) = chain.metadata.snapshots
    now = lake.load_table("db.orders").append(order_rows(9)).metadata
    change = chain.attempt(now, CommitStamp(2, NOW))
    (added,) = (u.snapshot for u in change.updates if isinstance(u, AddSnapshot))
    assert added.snapshot_id == before.snapshot_id
    assert added.parent_snapshot_id == now.refs["main"].snapshot_id


def test_operation_that_fails_leaves_the_chain_as_it_was_and_no_file(orders: Table) -> None:
    orders.append(order_rows(0)).refs.create_tag("v1")
    before, chain = files(orders, "**/*"), chain_on(orders)
    with pytest.raises(RefusedError, match="it is a tag"):
        chain.add(append(orders, 1, "v1"), NOW)
    assert chain.is_empty
    assert files(orders, "**/*") == before


def test_ended_chain_takes_nothing_more(orders: Table) -> None:
    chain = chain_on(orders)
    chain.end()
    with pytest.raises(InvalidInputError, match="expected an open transaction, found one that has ended"):
        chain.add(append(orders, 1), NOW)
    with pytest.raises(InvalidInputError, match="found one that has ended"):
        _ = chain.metadata


def test_attempt_that_landed_is_the_time_that_its_changes_were_worked_out(lake: Lake, orders: Table) -> None:
    chain = chain_on(orders)
    chain.add(append(orders, 1), NOW)
    first = chain.attempt(orders.metadata, CommitStamp(1, NOW))
    now = lake.load_table("db.orders").append(order_rows(9)).metadata
    chain.attempt(now, CommitStamp(2, NOW))
    again = chain.attempt(now, CommitStamp(3, NOW))
    chain.settled(Landed(3, now))
    (lost,), (landed,) = ([u.snapshot for u in c.updates if isinstance(u, AddSnapshot)] for c in (first, again))
    left = set(orders.io.list(orders.location))
    assert landed.manifest_list in left
    assert lost.manifest_list not in left


def test_chain_needs_validation_if_one_operation_does(orders: Table) -> None:
    chain = chain_on(orders)
    chain.add(MetadataOperation(lambda _: Change((SetProperties({"a": "1"}),))), NOW)
    assert not chain.needs_validation
    chain.add(MetadataOperation(lambda _: Change((RemoveProperties(("a",)),)), needs_validation=True), NOW)
    assert chain.needs_validation


def test_files_for_columns_that_got_other_ids_are_a_conflict(lake: Lake, orders: Table) -> None:
    def add_column(table: Table, name: str) -> None:
        with table.update_schema() as schema:
            schema.add_column(name, "long")

    def write() -> None:
        with orders.transaction() as inside:
            add_column(inside, "x")
            inside.append(order_rows(1))
            add_column(lake.load_table("db.orders"), "y")

    with pytest.raises(ConflictError, match="files were written in this transaction"):
        write()
