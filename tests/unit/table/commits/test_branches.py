"""What a write to a branch builds on, and which refs refuse writes."""

import datetime as dt
import itertools
from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.table.commits.branches import branch_head, check_branch_exists, check_write_branch, head_id
from support.fixtures.rows import order_rows


@pytest.fixture
def table(orders: Table) -> Table:
    """`main` and `dev` at different snapshots, and the tag `v1`."""
    orders.append(order_rows(1)).refs.create_tag("v1")
    return orders.append(order_rows(2), branch="dev")


def test_branch_that_does_not_exist_begins_at_main(table: Table) -> None:
    refs = table.metadata.refs
    for branch, source in (("main", "main"), ("dev", "dev"), ("new", "main")):
        head = branch_head(table.metadata, branch)
        assert head is not None
        assert head.snapshot_id == head_id(table.metadata, branch) == refs[source].snapshot_id


def test_empty_table_has_no_head(orders: Table) -> None:
    assert (branch_head(orders.metadata, "main"), head_id(orders.metadata, "dev")) == (None, None)
    check_branch_exists(orders.metadata, "main")


def test_tags_bad_names_and_missing_branches_are_refused(table: Table) -> None:
    check_write_branch(table.metadata, "new")
    with pytest.raises(RefusedError, match="cannot write to `v1`: it is a tag"):
        check_write_branch(table.metadata, "v1")
    with pytest.raises(RefusedError, match="cannot write to `v1`: it is a tag"):
        branch_head(table.metadata, "v1")
    with pytest.raises(InvalidInputError, match="ref name of 1 to 255 characters, found 0"):
        check_write_branch(table.metadata, "")
    with pytest.raises(NotFoundError, match="no branch `deev`") as error:
        check_branch_exists(table.metadata, "deev")
    assert "dev" in str(error.value.hints)


def test_nothing_is_written_for_a_table_at_a_tag_or_a_time(lake: Lake, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    orders.refs.create_branch("b")
    before = sorted(tmp_path.rglob("*.parquet"))
    for ref, branch in itertools.product(("v1", dt.datetime.now(dt.UTC).isoformat()), ("main", "b")):
        seen = lake.at(ref).load_table("db.orders")
        with pytest.raises(RefusedError, match="where nothing can be written"):
            seen.append(order_rows(2), branch=branch)
    assert sorted(tmp_path.rglob("*.parquet")) == before
