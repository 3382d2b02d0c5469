"""Appends that have lost a race wait in the catalog's queue, and whoever leads commits them together."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from catalog_files import new_catalog_uri
from competing_writers import files
from concurrency import run_for_each
from rows import ORDERS, order_rows

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Committed, TableChange, Unknown
from bergline.catalog.commit_queue import QueueState
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.contention_layout import QUEUE_LEADERS, QUEUED_COMMITS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import CommitUnknownError, ConflictError, StorageError, UnavailableError, UnsupportedError
from bergline.format.metadata.updates import RemovePartitionSpecs
from bergline.table.commits import queued_commit
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.commits.queued_commit import QueuedCommit, catalog_queue
from bergline.table.commits.turn import CommitTurn

pytestmark = pytest.mark.long

T = TableName(("db",), "orders")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    uri = new_catalog_uri(tmp_path / "c.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    with bergline.connect(uri, warehouse=str(tmp_path / "wh"), name=uuid4().hex, create=True) as opened:
        opened.create_namespace("db")
        opened.create_table("db.orders", ORDERS).append(order_rows(1))
        yield opened


@pytest.fixture
def queueing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All appends take the queue at once."""
    monkeypatch.setattr(CommitTurn, "has_lost", True)


def store_of(lake: Lake) -> SqlPointerStore:
    assert isinstance(lake.catalog, PointerCatalog)
    store = lake.catalog.store
    assert isinstance(store, SqlPointerStore)
    return store


def states(lake: Lake) -> list[str]:
    """Of the rows of the queue, in their order."""
    store = store_of(lake)
    mine = QUEUED_COMMITS.c.catalog_name == store.catalog_name
    query = sa.select(QUEUED_COMMITS.c.state).where(mine).order_by(QUEUED_COMMITS.c.queue_id)
    with store.database.reading() as connection:
        return list(connection.execute(query).scalars())


def ids(table: Table, ref: str = "main") -> list[int]:
    found: list[int] = sorted(table.refresh().scan(ref=ref).to_arrow()["id"].to_pylist())
    return found


def check_serial(table: Table) -> None:
    """The snapshots of `main` are one line, with numbers, totals and lists of their own, and nothing is left over."""
    line = list(table.refresh().metadata.ancestors(table.metadata.refs["main"].snapshot_id))
    line.reverse()
    assert [s.sequence_number for s in line] == list(range(1, len(line) + 1))
    total = 0
    for snapshot in line:
        assert snapshot.summary is not None
        total += int(snapshot.summary["added-records"])
        assert int(snapshot.summary["total-records"]) == total
    assert total == len(ids(table))
    assert files(table, "snap-*.avro") == {str(s.manifest_list).rsplit("/", 1)[-1] for s in table.metadata.snapshots}


def test_append_that_has_lost_waits_in_the_queue_and_lands(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = lake.load_table("db.orders"), lake.load_table("db.orders")
    commit, rivals = PointerCatalog.commit, [2]

    def beaten(catalog: PointerCatalog, changes: tuple[TableChange, ...]) -> object:
        if rivals and changes[0].base.name == T:
            other.append(order_rows(rivals.pop()))
        return commit(catalog, changes)

    monkeypatch.setattr(PointerCatalog, "commit", beaten)
    table.append(order_rows(3))
    assert states(lake) == ["landed"]
    assert ids(table) == [1, 2, 3]
    check_serial(table)


@pytest.mark.usefixtures("queueing")
def test_writers_that_wait_together_are_one_swap(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    number, each = 5, 3
    pause = threading.Barrier(number, timeout=60)
    load = PointerCatalog.load_table

    def append(writer: int) -> None:
        table = lake.load_table("db.orders")
        for step in range(each):
            pause.wait()
            table.append(order_rows(100 * writer + step + 10))

    monkeypatch.setattr(PointerCatalog, "load_table", lambda *arguments: time.sleep(0.02) or load(*arguments))
    run_for_each(append, range(number))
    table = lake.load_table("db.orders")
    assert ids(table) == sorted([1, *(100 * w + s + 10 for w in range(number) for s in range(each))])
    check_serial(table)
    assert len(table.metadata.metadata_log) < 1 + number * each
    assert set(states(lake)) <= {"landed"}


@pytest.mark.usefixtures("queueing")
def test_writers_of_other_branches_wait_in_the_same_queue(lake: Lake) -> None:
    lake.load_table("db.orders").refs.create_branch("b")
    run_for_each(
        lambda n: lake.load_table("db.orders").append(order_rows(n), branch="b" if n % 2 else "main"), range(10, 14)
    )
    table = lake.load_table("db.orders")
    assert (ids(table), ids(table, "b")) == ([1, 10, 12], [1, 11, 13])


@pytest.mark.usefixtures("queueing")
def test_change_of_a_writer_that_is_gone_is_committed_by_the_next_leader(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(QueuedCommit, "_until_decided", die)
        patched.setattr(QueuedCommit, "_withdraw", lambda _: None)
        with pytest.raises(Killed):
            lake.load_table("db.orders").append(order_rows(2))
    assert states(lake) == ["waiting"]
    with store_of(lake).database.changing() as connection:
        connection.execute(sa.update(QUEUE_LEADERS).values(until_ms=1))  # the lead of the one that is gone is over
    table = lake.load_table("db.orders")
    table.append(order_rows(3))
    assert ids(table) == [1, 2, 3]


@pytest.mark.usefixtures("queueing")
def test_writer_that_gives_up_withdraws_its_change_and_goes_by_itself(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_commit, "_GIVE_UP_S", 0.0)
    table = lake.load_table("db.orders")
    table.append(order_rows(2))
    assert states(lake) == []
    assert ids(table) == [1, 2]


@pytest.mark.usefixtures("queueing")
def test_change_that_does_not_fit_any_more_is_refused_alone(lake: Lake) -> None:
    stale = lake.load_table("db.orders")
    lake.drop_table("db.orders")
    lake.create_table("db.orders", ORDERS)
    with pytest.raises(ConflictError, match="dropped and re-created"):
        stale.append(order_rows(2))
    assert ids(lake.load_table("db.orders")) == []


@pytest.mark.usefixtures("queueing")
def test_retention_that_is_set_while_a_change_waits_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = lake.load_table("db.orders"), lake.load_table("db.orders")
    waiting, rivals = store_of(lake).commit_queue.waiting, [7]

    def after_rival(*arguments: Any) -> Any:
        if rivals:
            other.refs.set_retention("main", max_ref_age_ms=rivals.pop())
        return waiting(*arguments)

    monkeypatch.setattr(store_of(lake).commit_queue, "waiting", after_rival)
    table.append(order_rows(2))
    assert table.refresh().metadata.refs["main"].max_ref_age_ms == 7
    assert ids(table) == [1, 2]
    check_serial(table)


def replace_column(table: Table) -> None:
    with table.update_schema() as schema:
        schema.drop_column("amount")
    with table.update_schema() as schema:
        schema.add_column("amount", "double")


@pytest.mark.usefixtures("queueing")
@pytest.mark.parametrize("branch", ["main", "dev"])
def test_column_that_is_replaced_while_a_change_waits_loses_no_values(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    table, other = lake.load_table("db.orders"), lake.load_table("db.orders")
    table.refs.create_branch("dev")
    waiting, rivals = store_of(lake).commit_queue.waiting, [replace_column]

    def after_rival(*arguments: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(CommitTurn, "has_lost", False)
            if rivals:
                rivals.pop()(other)
                other.append(order_rows(3), branch="dev" if branch == "main" else "main")
        return waiting(*arguments)

    monkeypatch.setattr(store_of(lake).commit_queue, "waiting", after_rival)
    with pytest.raises(ConflictError, match="column `amount` would no longer have the id 2"):
        table.append(order_rows(2), branch=branch)
    assert 2 not in ids(table, branch)


@pytest.mark.usefixtures("queueing")
def test_partition_spec_that_is_removed_while_a_change_waits_is_missed_by_no_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("db.new", ORDERS)
    waiting, rivals = store_of(lake).commit_queue.waiting, [lake.load_table("db.new")]

    def after_rival(*arguments: Any) -> Any:
        for other in rivals:
            with other.update_spec() as spec:
                spec.add_field("region")
            other.commit(MetadataOperation(lambda _: Change((RemovePartitionSpecs((0,)),))))
        rivals.clear()
        return waiting(*arguments)

    monkeypatch.setattr(store_of(lake).commit_queue, "waiting", after_rival)
    with pytest.raises(ConflictError, match="expected partition spec 0"):
        table.append(order_rows(2))
    assert ids(table) == []


@pytest.mark.usefixtures("queueing")
def test_table_that_is_to_be_encrypted_while_a_change_waits_gets_no_plain_files(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = lake.load_table("db.orders"), lake.load_table("db.orders")
    waiting = store_of(lake).commit_queue.waiting

    def after_rival(*arguments: Any) -> Any:
        other.set_properties({"encryption.key-id": "k"})
        return waiting(*arguments)

    monkeypatch.setattr(store_of(lake).commit_queue, "waiting", after_rival)
    with pytest.raises(UnsupportedError, match="encrypt"):
        table.append(order_rows(2))
    assert len(table.refresh().metadata.snapshots) == 1


@pytest.mark.usefixtures("queueing")
@pytest.mark.parametrize("lost", ["outcome", "waiting"])
def test_database_that_fails_while_a_change_waits_is_asked_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    failing_once(monkeypatch, store_of(lake).commit_queue, lost, UnavailableError("gone"))
    table = lake.load_table("db.orders")
    table.append(order_rows(2))
    assert ids(table) == [1, 2]


@pytest.mark.usefixtures("queueing")
def test_outcome_that_cannot_be_found_out_is_unknown_and_deletes_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.load_table("db.orders")
    table.set_properties({"commit.status-check.num-retries": "0"})
    queue = store_of(lake).commit_queue
    before = files(table, "*.avro")

    def gone(*_: object) -> Any:
        raise StorageError("gone")

    for name in ("outcome", "withdraw"):
        monkeypatch.setattr(queue, name, gone)
    with pytest.raises(CommitUnknownError, match="gone"):
        table.append(order_rows(2))
    assert len(files(table, "*.avro") - before) == 2
    assert states(lake) == ["waiting"]


def test_what_was_put_into_the_queue_without_an_answer_is_settled(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row is there although the database has not said so."""
    change = captured_change(lake, monkeypatch)
    known = catalog_queue(lake.catalog)
    assert known is not None
    add = known.queue.add

    def add_in_doubt(*arguments: Any) -> bool:
        add(*arguments)
        raise StorageError("no answer")

    monkeypatch.setattr(known.queue, "add", add_in_doubt)
    monkeypatch.setattr(queued_commit, "_GIVE_UP_S", 0.0)
    assert QueuedCommit(known, change).run() is None
    assert states(lake) == []


@pytest.mark.parametrize("lost", ["add", "withdraw"])
def test_connection_lost_on_the_way_to_or_from_the_queue_leaves_no_doubt(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The row is not there, and never will be."""
    change = captured_change(lake, monkeypatch)
    known = catalog_queue(lake.catalog)
    assert known is not None
    if lost == "add":
        monkeypatch.setattr(known.queue, "add", raising(StorageError("the connection was lost")))
    else:
        withdraw, left = known.queue.withdraw, [StorageError("the connection was lost")]

        def withdraw_in_doubt(token: str) -> bool:
            done = withdraw(token)
            if left:
                raise left.pop()
            return done

        monkeypatch.setattr(known.queue, "withdraw", withdraw_in_doubt)
        monkeypatch.setattr(queued_commit, "_GIVE_UP_S", 0.0)
    assert QueuedCommit(known, change, lambda _: None).run() is None
    assert states(lake) == [QueueState.REFUSED.value]


def test_landed_change_is_never_called_anything_else(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    change = captured_change(lake, monkeypatch)
    known = catalog_queue(lake.catalog)
    assert known is not None
    failing_once(monkeypatch, known.catalog, "metadata_at", UnavailableError("gone"))
    waits: list[float] = []
    outcome = QueuedCommit(known, change, waits.append).run()
    assert isinstance(outcome, Committed)
    assert len(waits) == 1
    monkeypatch.setattr(known.catalog, "metadata_at", raising(UnavailableError("gone")))
    again = captured_change(lake, monkeypatch)
    unknown = QueuedCommit(known, again, waits.append).run()
    assert isinstance(unknown, Unknown)
    assert unknown.metadata_location == store_of(lake).read(T)
    assert states(lake)[-1] == QueueState.LANDED.value


def captured_change(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> TableChange:
    """An append that was worked out and not sent."""
    found: list[TableChange] = []

    class Sent(BaseException):
        pass

    def catch(_: PointerCatalog, changes: tuple[TableChange, ...]) -> None:
        found.extend(changes)
        raise Sent

    with monkeypatch.context() as patched:
        patched.setattr(PointerCatalog, "commit", catch)
        with pytest.raises(Sent):
            lake.load_table("db.orders").append(order_rows(50))
    return found[0]


def failing_once(monkeypatch: pytest.MonkeyPatch, target: object, name: str, error: Exception) -> None:
    real, left = getattr(target, name), [error]

    def fail(*arguments: Any) -> Any:
        if left:
            raise left.pop()
        return real(*arguments)

    monkeypatch.setattr(target, name, fail)


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail
