"""Maintenance: rewrites change no row, expiry and orphan files no snapshot that is needed."""

import datetime as dt

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.table.operations.compaction import CompactionResult
from support.fixtures.rows import ids, order_rows

FUTURE = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def small(orders: Table) -> Table:
    """Three files in three snapshots."""
    return orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3))


def test_compaction_and_manifest_rewrites_keep_the_rows(small: Table) -> None:
    result = small.compact()
    assert (result.rewritten_data_files, result.added_data_files) == (3, 1)
    assert small.compact() == CompactionResult()
    assert small.append(order_rows(4)).rewrite_manifests().inspect("manifests").num_rows == 1
    assert ids(small.scan().to_arrow()) == [1, 2, 3, 4]


def test_expiry_does_what_its_plan_and_its_dry_run_say(small: Table) -> None:
    before = small.metadata_location
    plan = small.plan_expiry(older_than=FUTURE)
    dry = small.expire(older_than=FUTURE, dry_run=True)
    assert small.refresh().metadata_location == before
    done = small.expire(older_than=FUTURE)
    assert plan.removed_snapshots == dry.removed_snapshots == done.removed_snapshots
    assert len(done.removed_snapshots) == 2
    assert ids(small.scan().to_arrow()) == [1, 2, 3]


def test_plans_of_a_transaction_are_of_its_own_state_and_are_not_repeated(small: Table) -> None:
    with small.transaction() as inside:
        inside.append(order_rows(4))
        assert len(inside.plan_expiry(older_than=FUTURE).removed_snapshots) == 3
        with pytest.raises(InvalidInputError, match="no transaction around orphan files"):
            inside.plan_orphans()
    assert ids(small.scan().to_arrow()) == [1, 2, 3, 4]


def test_orphan_plan_is_for_its_own_table(lake: Lake, small: Table) -> None:
    stray = f"{small.location}/data/stray.parquet"
    small.io.create(stray, b"stray")
    plan = small.plan_orphans(older_than=FUTURE, allow_recent=True)
    assert [f.location.removeprefix("file://") for f in plan.files] == [stray.removeprefix("file://")]
    with pytest.raises(InvalidInputError, match=r"expected a plan for table `db\.other`"):
        lake.create_table("db.other", small.schema).sweep_orphans(plan)
    assert len(small.sweep_orphans(plan).deleted) == 1
    assert not small.io.exists(stray)


def test_bad_arguments_are_refused(small: Table) -> None:
    small.refs.create_tag("v1")
    with pytest.raises(NotFoundError, match="no branch `dev`"):
        small.compact(branch="dev")
    for rewrite in (small.compact, small.rewrite_manifests):
        with pytest.raises(RefusedError, match="cannot write to `v1`"):
            rewrite(branch="v1")
    with pytest.raises(InvalidInputError, match="expected a list of snapshot ids"):
        small.expire(snapshot_ids=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="expected prefix_mismatch of error, ignore, delete"):
        small.plan_orphans(prefix_mismatch="maybe")
