"""Writes of rows: one snapshot each; what cannot be written leaves nothing."""

import pytest

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.table.writes import write_data_files
from support.fixtures.competing_writers import files
from support.fixtures.rows import ids, order_rows


def test_every_write_is_one_snapshot_with_the_callers_summary(orders: Table) -> None:
    orders.append(order_rows(1, 2), summary={"job": "1"})
    orders.overwrite(order_rows(3), "id = 1", summary={"job": "2"})
    orders.delete("id = 2", summary={"job": "3"})
    orders.overwrite_partitions(order_rows(4), summary={"job": "4"})
    orders.overwrite(order_rows(5), summary={"job": "5"})
    assert [s.summary["job"] for s in orders.metadata.snapshots] == list("12345")
    assert ids(orders.scan().to_arrow()) == [5]


def test_delete_needs_a_filter_and_one_that_matches_nothing_commits_nothing(orders: Table) -> None:
    orders.append(order_rows(1))
    before = orders.metadata_location
    with pytest.raises(InvalidInputError, match="expected a filter, found none"):
        orders.delete(None)  # type: ignore[arg-type]
    orders.delete("id = 7")
    orders.overwrite_partitions(order_rows())
    assert orders.metadata_location == before


def test_refused_writes_leave_no_file(orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    before = files(orders, "**/*")
    with pytest.raises(RefusedError, match="cannot write to `v1`: it is a tag"):
        orders.append(order_rows(2), branch="v1")
    with pytest.raises(NotFoundError, match="missing"):
        orders.overwrite(order_rows(2), "missing = 1")
    with pytest.raises(InvalidInputError, match="which bergline writes itself"):
        orders.append(order_rows(2), summary={"source-snapshot-id": "1"})
    assert files(orders, "**/*") == before


def test_scan_is_written_as_rows(orders: Table) -> None:
    orders.append(order_rows(1, 2))
    (file,) = write_data_files(orders.io, orders.metadata, orders.scan("id = 2"))
    assert file.record_count == 1
    assert ids(orders.append(orders.scan("id = 2"), branch="dev").scan(ref="dev").to_arrow()) == [1, 2, 2]
