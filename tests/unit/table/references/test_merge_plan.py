"""What a merge or rebase amounts to on one base."""

import pytest

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.table.references.merge_plan import MergePlan, MergeRequest, plan_merge
from support.fixtures.rows import order_rows

MERGE, REBASE = MergeRequest("dev", "main", "onto"), MergeRequest("dev", "main", "picked")


def heads(table: Table) -> tuple[int, int]:
    return table.refs["main"].snapshot_id, table.refs["dev"].snapshot_id


def test_ref_that_is_behind_only_moves(orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    assert plan_merge(orders.io, orders.metadata, MERGE) == MergePlan()
    orders.append(order_rows(2), branch="dev")
    assert plan_merge(orders.io, orders.metadata, MERGE) == MergePlan(heads(orders)[1])
    assert plan_merge(orders.io, orders.metadata, REBASE) == MergePlan()


def test_lines_that_have_parted_are_replayed(orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    orders.append(order_rows(2)).append(order_rows(3), branch="dev")
    merge, rebase = (plan_merge(orders.io, orders.metadata, request) for request in (MERGE, REBASE))
    assert (merge.start, rebase.start) == (None, heads(orders)[0])
    assert merge.divergence == rebase.divergence
    assert merge.divergence is not None
    assert [s.snapshot_id for s in merge.divergence.picked] == [heads(orders)[1]]


def test_requests_name_what_moves_and_how_they_are_refused() -> None:
    assert (MERGE.moved, REBASE.moved) == ("main", "dev")
    assert MERGE.refusal == "cannot merge `dev` into `main`"
    assert REBASE.refusal == "cannot rebase `dev` onto `main`"
    with pytest.raises(InvalidInputError, match="expected two branches, found `dev` twice"):
        MergeRequest("dev", "dev", "onto")


def test_tags_do_not_move_and_missing_refs_are_not_found(orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    orders.append(order_rows(2))
    with pytest.raises(RefusedError, match="cannot write to `v1`"):
        plan_merge(orders.io, orders.metadata, MergeRequest("main", "v1", "onto"))
    with pytest.raises(NotFoundError):
        plan_merge(orders.io, orders.metadata, MERGE)
