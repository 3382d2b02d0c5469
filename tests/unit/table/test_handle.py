"""The state that the parts of a table share."""

import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError
from bergline.format.metadata.updates import SetProperties
from bergline.table.commits.chain import Chain
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.handle import TableHandle
from support.fixtures.rows import order_rows

SET = MetadataOperation(lambda _: Change((SetProperties({"a": "1"}),)))


def handle_on(lake: Lake, table: Table, chain: Chain | None = None) -> TableHandle:
    return TableHandle(lake.catalog, lake.catalog.load_table(table.name), summary={"team": "x"}, chain=chain)


def test_commit_moves_the_handle_forward(lake: Lake, orders: Table) -> None:
    handle = handle_on(lake, orders)
    before = handle.metadata_location
    assert handle.commit(SET).properties["a"] == "1"
    assert handle.metadata_location == lake.load_table("db.orders").metadata_location != before


def test_handle_with_a_chain_commits_nothing_and_stays_where_it_began(lake: Lake, orders: Table) -> None:
    chain = Chain(orders.name, orders.metadata, orders.io)
    handle = handle_on(lake, orders, chain)
    handle.commit(SET)
    orders.append(order_rows(1))
    handle.refresh()
    assert handle.in_transaction
    assert (handle.metadata.properties["a"], handle.metadata.current_snapshot) == ("1", None)
    assert "a" not in lake.load_table("db.orders").properties


def test_newest_state_is_of_the_same_table_or_a_conflict(lake: Lake, orders: Table) -> None:
    handle = handle_on(lake, orders)
    orders.append(order_rows(1))
    assert handle.load_newest().metadata_location == orders.metadata_location
    lake.drop_table("db.orders")
    lake.create_table("db.orders", orders.schema)
    with pytest.raises(ConflictError, match="dropped and re-created"):
        handle.load_newest()


def test_summary_has_entries_of_the_table_of_the_caller_and_the_wap_id(lake: Lake, orders: Table) -> None:
    handle = handle_on(lake, orders)
    assert handle.snapshot_summary({"job": "7"}, "w") == {"team": "x", "job": "7", "wap.id": "w"}
    with pytest.raises(InvalidInputError, match=r"`wap\.id`, which bergline writes itself"):
        handle.snapshot_summary({"wap.id": "w"})
