"""Batches of streaming queries, committed once."""

import pytest

from bergline import Lake, Table
from bergline.errors import CommitUnknownError
from bergline.table.operations.append import Append
from bergline.table.references.stream_batches import CommittedOnce, StreamBatch
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import overtaken, rival_lake
from support.fixtures.data_files import written_files
from support.fixtures.rows import ids, order_rows
from support.models.table_invariants import check_nothing_is_missing


def write(table: Table, batch: StreamBatch, *numbers: int, branch: str = "main") -> CommittedOnce:
    files = written_files(table, order_rows(*numbers))
    append = Append(table.io, files, branch=branch, summary=batch.summary, discard_on_failure=True)
    return CommittedOnce(append, batch, branch)


def test_batch_is_known_by_the_summary_of_its_snapshot(orders: Table) -> None:
    assert not StreamBatch("q", 0).is_committed(orders.metadata, "main")
    orders.commit(write(orders, StreamBatch("q", 4), 1))
    orders.append(order_rows(2))
    assert orders.metadata.snapshots[0].summary["spark.sql.streaming.queryId"] == "q"
    assert orders.metadata.snapshots[0].summary["spark.sql.streaming.epochId"] == "4"
    found = [StreamBatch("q", n).is_committed(orders.metadata, "main") for n in (3, 4, 5)]
    assert found == [True, True, False]
    assert not StreamBatch("other", 4).is_committed(orders.metadata, "main")


def test_batch_that_is_sent_again_is_not_committed_twice(orders: Table) -> None:
    batch = StreamBatch("q", 0)
    orders.commit(write(orders, batch, 1))
    orders.commit(write(orders, batch, 1))
    assert ids(orders.scan().to_arrow()) == [1]
    assert len(orders.metadata.snapshots) == 1


def test_batch_that_another_process_commits_first_is_not_committed_twice(orders: Table, lake: Lake) -> None:
    batch = StreamBatch("q", 0)
    late = overtaken(lake, lambda: orders.commit(write(orders, batch, 1))).load_table("db.orders")
    late.commit(write(late, batch, 1))
    assert ids(late.scan().to_arrow()) == [1]
    assert len(late.metadata.snapshots) == 1
    check_nothing_is_missing(late)


@pytest.mark.parametrize("fault", [Fault.STORE_GOES_AWAY, Fault.STORE_WENT_AWAY])
def test_batch_whose_outcome_was_unknown_is_committed_once(orders: Table, lake: Lake, fault: Fault) -> None:
    batch = StreamBatch("q", 0)
    failing = rival_lake(lake, fault)[0].load_table("db.orders")
    with pytest.raises(CommitUnknownError):
        failing.commit(write(failing, batch, 1))
    assert batch.is_committed(orders.refresh().metadata, "main") == (fault is Fault.STORE_GOES_AWAY)
    orders.commit(write(orders, batch, 1))  # as the query does when it is started again
    assert ids(orders.scan().to_arrow()) == [1]
    check_nothing_is_missing(orders)


def test_history_of_each_branch_counts_by_itself(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("b")
    orders.commit(write(orders, StreamBatch("q", 0), 2, branch="b"))
    assert StreamBatch("q", 0).is_committed(orders.metadata, "b")
    assert not StreamBatch("q", 0).is_committed(orders.metadata, "main")
