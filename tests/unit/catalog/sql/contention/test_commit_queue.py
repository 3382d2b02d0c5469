"""The queue of changes, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from catalog_files import new_catalog_file
from concurrency import run_at_once

from bergline.catalog.commit_queue import QueuedChange, QueueOutcome, QueueState
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.contention.commit_queue import GOOD_FOR_MS, LEAD_MS, SqlCommitQueue
from bergline.catalog.sql.contention_layout import QUEUE_LEADERS, QUEUED_COMMITS
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import RefusedError

A, B = TableName(("db",), "a"), TableName(("db",), "b")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    opened: SqlPointerStore
    if request.param == "sqlite":
        opened = SqlitePointerStore(str(new_catalog_file(tmp_path / "catalog.db")))
    else:
        opened = PostgresPointerStore(request.getfixturevalue("postgres"), catalog_name=f"queue-{uuid4().hex}")
    yield opened
    opened.close()


@pytest.fixture
def queue(store: SqlPointerStore) -> SqlCommitQueue:
    found = store.commit_queue
    assert isinstance(found, SqlCommitQueue)
    return found


def add(queue: SqlCommitQueue, table: TableName = A, *, read: tuple[str, ...] = ()) -> tuple[str, bool]:
    token = uuid4().hex
    return token, queue.add(table, QueuedChange(token, "ann", "{}"), read)


def tokens(queue: SqlCommitQueue, table: TableName = A) -> list[str]:
    return [row.token for row in queue.waiting(table, 100)]


def shift(store: SqlPointerStore, table: sa.Table, column: str, by_ms: int) -> None:
    """Let time pass for the rows of the store's catalog."""
    with store.database.changing() as connection:
        mine = table.c.catalog_name == store.catalog_name
        connection.execute(sa.update(table).where(mine).values({column: table.c[column] + by_ms}))


def land(store: SqlPointerStore, queue: SqlCommitQueue, token: str, leader: str) -> None:
    with store.database.changing() as connection:
        queue.land(connection, token, "file:///m.json", leader)


def test_the_first_leads_and_the_others_wait_in_their_order(queue: SqlCommitQueue) -> None:
    added = [add(queue) for _ in range(3)]
    assert [leads for _, leads in added] == [True, False, False]
    assert tokens(queue) == [token for token, _ in added]
    assert add(queue, B)[1]
    assert queue.waiting(A, 2)[0] == QueuedChange(added[0][0], "ann", "{}")
    assert len(queue.waiting(A, 2)) == 2
    assert queue.outcome(added[2][0]) == QueueOutcome(QueueState.WAITING, None, has_leader=True)


def test_change_lands_with_the_transaction_or_not_at_all(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    (first, _), (second, _) = add(queue), add(queue)

    def fail(connection: Any) -> None:
        queue.land(connection, first, "file:///m.json", first)
        raise RefusedError("rolled back")

    with pytest.raises(RefusedError, match="rolled back"), store.database.changing() as connection:
        fail(connection)
    assert tokens(queue) == [first, second]
    land(store, queue, first, first)
    assert queue.outcome(first) == QueueOutcome(QueueState.LANDED, "file:///m.json", has_leader=False)
    assert tokens(queue) == [second]
    assert queue.lead(A, second)


def test_change_that_was_withdrawn_does_not_land_and_one_that_landed_is_not_withdrawn(
    store: SqlPointerStore, queue: SqlCommitQueue
) -> None:
    (first, _), (second, _) = add(queue), add(queue)
    assert queue.withdraw(second)
    assert not queue.withdraw(second)
    assert queue.outcome(second) is None
    with pytest.raises(RefusedError, match="does not wait"):
        land(store, queue, second, first)
    land(store, queue, first, first)
    assert not queue.withdraw(first)
    with pytest.raises(RefusedError, match="does not wait"):
        land(store, queue, first, first)


def test_change_that_is_barred_cannot_be_added_any_more(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    token = uuid4().hex
    queue.bar(A, token)
    assert queue.outcome(token) == QueueOutcome(QueueState.REFUSED)
    with pytest.raises(sa.exc.IntegrityError):
        queue.add(A, QueuedChange(token, "ann", "{}"), ())
    assert tokens(queue) == []
    (there, _) = add(queue)
    queue.bar(A, there)
    assert tokens(queue) == [there]
    land(store, queue, there, there)
    queue.bar(A, there)
    assert queue.outcome(there) == QueueOutcome(QueueState.LANDED, "file:///m.json")


def test_refused_change_stays_refused(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    (first, _), (second, _) = add(queue), add(queue)
    queue.refuse([second], first)
    assert queue.outcome(second) == QueueOutcome(QueueState.REFUSED, None, has_leader=True)
    with pytest.raises(RefusedError):
        land(store, queue, second, first)
    queue.refuse([first], first)
    assert queue.outcome(first) == QueueOutcome(QueueState.REFUSED, None, has_leader=False)


def test_leader_that_is_gone_is_followed_by_another(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    (first, _), (second, _) = add(queue), add(queue)
    assert not queue.lead(A, second)
    assert queue.lead(A, first)
    shift(store, QUEUE_LEADERS, "until_ms", -LEAD_MS - 1)
    assert queue.outcome(second) == QueueOutcome(QueueState.WAITING, None, has_leader=False)
    assert queue.lead(A, second)
    assert not queue.lead(A, first)


def test_change_of_a_process_that_is_gone_is_not_taken_for_long(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    token, _ = add(queue)
    shift(store, QUEUED_COMMITS, "queued_ms", -GOOD_FOR_MS - 1)
    assert tokens(queue) == []
    assert queue.withdraw(token)


def test_change_is_too_old_to_land_for_a_leader_that_has_slept(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    token, _ = add(queue)
    assert tokens(queue) == [token]
    shift(store, QUEUED_COMMITS, "queued_ms", -GOOD_FOR_MS - 1)
    with pytest.raises(RefusedError, match="does not wait"):
        land(store, queue, token, "leader")
    assert queue.withdraw(token)


def test_change_from_before_a_clock_was_set_back_is_not_taken(store: SqlPointerStore, queue: SqlCommitQueue) -> None:
    token, _ = add(queue)
    shift(store, QUEUED_COMMITS, "queued_ms", GOOD_FOR_MS + 10_000)
    assert tokens(queue) == []
    with pytest.raises(RefusedError, match="does not wait"):
        land(store, queue, token, "leader")
    assert queue.withdraw(token)


def test_rows_are_removed_when_they_were_read_and_else_after_an_hour(
    store: SqlPointerStore, queue: SqlCommitQueue
) -> None:
    (read, _), (unread, _) = add(queue), add(queue)
    land(store, queue, read, read)
    kept, _ = add(queue, read=(read,))
    assert (queue.outcome(read), queue.outcome(unread) is None) == (None, False)
    shift(store, QUEUED_COMMITS, "queued_ms", -3_600_001)
    queue._forget_at_s = 0.0
    newest, _ = add(queue)
    assert [queue.outcome(t) is None for t in (unread, kept, newest)] == [True, True, False]


def test_of_many_who_come_at_once_one_leads(queue: SqlCommitQueue) -> None:
    leading: list[bool] = []
    run_at_once(*(lambda: leading.append(add(queue)[1]) for _ in range(6)))
    assert sorted(leading) == [False] * 5 + [True]
    assert len(tokens(queue)) == 6
