"""A table as a user holds it."""

import datetime as dt

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError
from support.fixtures.rows import ids, order_rows


def test_methods_that_write_return_the_table_itself(orders: Table) -> None:
    assert orders.append(order_rows(1)).set_properties({"a": "1"}).delete("id = 1") is orders
    assert orders.refresh() is orders


def test_properties_show_the_metadata_as_last_loaded(lake: Lake, orders: Table) -> None:
    other = lake.load_table("db.orders").append(order_rows(1))
    assert (orders.current_snapshot, orders.location) == (None, orders.metadata.location)
    assert orders.refresh().current_snapshot == other.current_snapshot
    assert (orders.schema, orders.spec) == (orders.metadata.schema, orders.metadata.spec)
    orders.properties["a"] = "a copy"
    assert "a" not in orders.properties


def test_text_names_the_table_its_pointer_and_the_transaction(orders: Table) -> None:
    assert repr(orders) == f"Table('db.orders', {orders.metadata_location!r})"
    with orders.transaction() as inside:
        assert repr(inside).endswith(", in a transaction)")
        for table in (inside, orders):
            with pytest.raises(InvalidInputError, match="no transaction inside another"), table.transaction():
                pass


def test_reads_choose_a_version_by_ref_snapshot_or_moment(orders: Table) -> None:
    first = orders.append(order_rows(1)).current_snapshot
    assert first is not None
    orders.refs.create_tag("v1")
    orders.append(order_rows(2))
    moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    for version in ({"ref": "v1"}, {"snapshot_id": first.snapshot_id}, {"as_of_ms": first.timestamp_ms}):
        assert ids(orders.scan(**version).to_arrow()) == [1]  # type: ignore[arg-type]
        assert orders.inspect("files", **version).num_rows == 1  # type: ignore[arg-type]
    assert orders.scan(as_of=moment).snapshot_id == first.snapshot_id
    assert ids(orders.scan_appends(first.snapshot_id).to_arrow()) == [2]
    assert ids(orders.changes("v1").added) == [2]
