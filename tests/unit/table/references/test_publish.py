"""Publishing a branch: merged, tagged and dropped in one change."""

import pytest

from bergline import Table
from bergline.errors import ConflictError, RefusedError
from bergline.table.references.publish import Publish, PublishRequest
from bergline.table.references.published_runs import PUBLISHED_RUNS, PublishedRun, has_run
from support.fixtures.rows import ids, order_rows


@pytest.fixture
def table(orders: Table) -> Table:
    """`dev` is one snapshot ahead of `main`."""
    orders.append(order_rows(1)).refs.create_branch("dev")
    return orders.append(order_rows(2), branch="dev")


def test_branch_is_fast_forwarded_tagged_and_dropped(table: Table) -> None:
    head, run = table.refs["dev"].snapshot_id, PublishedRun("etl", "7")
    operation = Publish(table.io, PublishRequest("dev", "main", tag="v1", run=run))
    table.commit(operation)
    assert {name: ref.snapshot_id for name, ref in table.metadata.refs.items()} == {"main": head, "v1": head}
    assert (operation.result.head, operation.result.replayed) == (head, {})
    assert has_run(table.metadata, "main", run)
    assert PUBLISHED_RUNS in table.properties


def test_branch_that_is_kept_stays(table: Table) -> None:
    table.commit(Publish(table.io, PublishRequest("dev", "main", keep_branch=True)))
    assert table.refs["dev"] == table.refs["main"]


def test_lines_that_have_parted_are_merged_only_if_that_is_allowed(table: Table) -> None:
    table.append(order_rows(3))
    before = table.metadata_location
    with pytest.raises(RefusedError, match="both have moved on since") as error:
        table.commit(Publish(table.io, PublishRequest("dev", "main")))
    assert error.value.hints == ("`merge=True` replays the branch's snapshots on top of the other",)
    assert table.refresh().metadata_location == before
    operation = Publish(table.io, PublishRequest("dev", "main", merge=True))
    table.commit(operation)
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    assert len(operation.result.replayed) == 1


def test_branch_that_is_elsewhere_than_expected_is_a_conflict(table: Table) -> None:
    expected = table.refs["main"].snapshot_id
    with pytest.raises(ConflictError, match=f"expected branch `dev` at snapshot {expected}"):
        table.commit(Publish(table.io, PublishRequest("dev", "main", head=expected)))
