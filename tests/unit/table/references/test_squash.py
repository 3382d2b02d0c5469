"""Squashing: what is certain although history has expired, and what is refused because it is not."""

import datetime as dt

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import RefusedError
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, ids, order_rows


@pytest.fixture
def table(lake: Lake) -> Table:
    """Orders 1 and 2 by region, and a branch `staging` at that point that a manifest of its own tells apart."""
    table = lake.create_table("db.t", ORDERS, partition_by=["region"]).append(order_rows(1)).append(order_rows(2))
    table.refs.create_branch("staging")
    return table


def rows(table: Table, ref: str = "main") -> list[int]:
    return ids(table.refresh().scan(ref=ref).to_arrow())


def forget(table: Table, *, keep: int) -> None:
    """Expire what `staging` did by itself, except the last snapshots."""
    main = {s.snapshot_id for s in table.refresh().metadata.ancestors(table.refs["main"].snapshot_id)}
    own = [s.snapshot_id for s in table.metadata.ancestors(table.refs["staging"].snapshot_id)]
    expired = [i for i in own[keep:] if i not in main]
    table.expire(older_than=dt.datetime(2000, 1, 1, tzinfo=dt.UTC), snapshot_ids=expired)


def refused(table: Table) -> str:
    before = table.refresh().metadata
    with pytest.raises(RefusedError) as caught:
        table.refs.merge("staging", into="main", squash=True)
    assert table.refresh().metadata == before
    return str(caught.value)


@pytest.mark.parametrize("squash", [False, True])
def test_rows_that_were_merged_do_not_come_a_second_time_after_they_were_compacted_and_forgotten(
    table: Table, squash: bool
) -> None:
    table.append(order_rows(100), branch="staging").append(order_rows(101), branch="staging")
    table.append(order_rows(50, region="us"))
    table.refs.merge("staging", into="main", squash=squash)
    table.compact("id >= 100", branch="staging")
    table.append(order_rows(102), branch="staging")
    forget(table, keep=2)
    assert rows(table) == [1, 2, 50, 100, 101]
    assert "may be among those that have expired" in refused(table)


def test_rows_that_came_to_both_from_a_third_branch_do_not_come_twice(table: Table) -> None:
    table.refs.create_branch("dev")
    table.append(order_rows(100), branch="dev").append(order_rows(101), branch="staging")
    table.refs.merge("dev", into="staging")
    table.compact("id >= 100", branch="staging")
    table.append(order_rows(50, region="us"))
    table.refs.merge("dev", into="main")
    forget(table, keep=1)
    assert "may be among those that have expired" in refused(table)


def test_what_the_branch_may_have_taken_over_before_it_was_forgotten_is_refused(table: Table) -> None:
    table.append(order_rows(101, region="us"), branch="staging")
    table.append(order_rows(50)).append(order_rows(51))
    table.refs.merge("main", into="staging")
    table.compact("id in (50, 51)", branch="staging")
    forget(table, keep=1)
    assert rows(table, "staging") == [1, 2, 50, 51, 101]
    assert "their common ancestor cannot be found" in refused(table)


def test_a_merge_of_something_else_that_is_younger_is_in_nobody_s_way(table: Table) -> None:
    table.append(order_rows(100), branch="staging").append(order_rows(101), branch="staging")
    table.append(order_rows(50, region="us"))
    table.refs.create_branch("dev", at="main")
    table.append(order_rows(60), branch="dev").append(order_rows(51, region="us"))
    table.refs.merge("dev", into="main")
    table.append(order_rows(102), branch="staging")
    forget(table, keep=1)
    table.refs.merge("staging", into="main", squash=True)
    assert rows(table) == [1, 2, 50, 51, 60, 100, 101, 102]


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_file_that_was_removed_and_added_again_comes_again(lake: Lake, version: str) -> None:
    table = lake.create_table("db.again", ORDERS, properties={"format-version": version})
    table.append(order_rows(0)).append(order_rows(1, 2))
    (again,) = (p.file for p in table.scan("id > 0").plan().files)
    add_deletes(table, equality_deletes(table, pa.table({"id": [1]}), [1]))
    table.refresh().refs.create_branch("staging")
    table.append(order_rows(50))
    table.overwrite_files([], removed=[again], branch="staging")
    table.append_files([again], branch="staging")
    assert rows(table, "staging") == [0, 1, 2]
    table.refs.merge("staging", into="main", squash=True)
    assert rows(table) == [0, 1, 2, 50]
