"""Operations that create a branch or a tag."""

import pytest

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, InvalidInputError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.table.references.new_ref import NewRef, StartBranch
from bergline.table.references.ref_changes import Retention
from support.fixtures.rebasing_lake import rebasing
from support.fixtures.rows import order_rows

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


def test_ref_is_created_at_a_snapshot_with_its_retention(orders: Table) -> None:
    first = orders.append(order_rows(1)).refs["main"].snapshot_id
    orders.append(order_rows(2))
    orders.commit(NewRef("v1", TAG, Retention(max_ref_age_ms=7)).operation(orders.io, first))
    orders.commit(NewRef("dev", BRANCH, Retention()).operation(orders.io, None))
    assert (orders.refs["v1"].snapshot_id, orders.refs["v1"].max_ref_age_ms) == (first, 7)
    assert orders.refs["dev"].snapshot_id == orders.refs["main"].snapshot_id


def test_branch_of_an_empty_table_gets_an_empty_snapshot(orders: Table) -> None:
    operation = NewRef("dev", BRANCH, Retention(min_snapshots_to_keep=3)).operation(orders.io, None)
    assert isinstance(operation, StartBranch)
    orders.commit(operation)
    assert list(orders.refs) == ["dev"]
    assert orders.refs["dev"].min_snapshots_to_keep == 3
    assert orders.scan(ref="dev").to_arrow().num_rows == 0


def test_branch_of_an_empty_table_is_not_put_on_one_that_another_made_meanwhile(lake: Lake, orders: Table) -> None:
    late, catalog = rebasing(lake, lambda: lake.load_table("db.orders").append(order_rows(1), branch="dev"))
    with pytest.raises(AlreadyExistsError, match="branch `dev` exists already"):
        late.load_table("db.orders").refs.create_branch("dev")
    assert not catalog.placed
    assert [s.summary["added-records"] for s in orders.refresh().metadata.snapshots] == ["1"]


def test_existing_ref_is_kept_replaced_or_refused(orders: Table) -> None:
    first = orders.append(order_rows(1)).refs["main"].snapshot_id
    orders.refs.create_tag("v1")
    orders.append(order_rows(2))
    with pytest.raises(AlreadyExistsError, match="tag `v1` exists already"):
        orders.commit(NewRef("v1", TAG, Retention()).operation(orders.io, None))
    orders.commit(NewRef("v1", TAG, Retention(), if_not_exists=True).operation(orders.io, None))
    assert orders.refs["v1"].snapshot_id == first
    with pytest.raises(InvalidInputError, match="expected a branch, found the tag `v1`"):
        orders.commit(NewRef("v1", BRANCH, Retention(), if_not_exists=True).operation(orders.io, None))
    orders.commit(NewRef("v1", TAG, Retention(), or_replace=True).operation(orders.io, None))
    assert orders.refs["v1"].snapshot_id == orders.refs["main"].snapshot_id
    with pytest.raises(InvalidInputError, match="expected one of if_not_exists and or_replace, found both"):
        NewRef("v1", TAG, Retention(), if_not_exists=True, or_replace=True)
