"""Commits that keep losing get a turn, by which the other writers let them go first."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import PointersWithTurns
from bergline.catalog.turns import LONGEST_TURN_MS, TurnKeeper, turn_holder
from bergline.errors import UnavailableError
from bergline.table.commits.turn import LOSSES_BEFORE_A_TURN, CommitTurn
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.rows import ORDERS, order_rows

T = TableName(("db",), "orders")


@pytest.fixture(params=["memory:", "sqlite"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    uri = request.param if request.param == "memory:" else new_catalog_uri(tmp_path / "catalog.db")
    with bergline.connect(uri, create=True) as opened:
        opened.create_namespace("db")
        opened.create_table("db.orders", ORDERS).append(order_rows(1))
        yield opened


def store_of(lake: Lake) -> PointersWithTurns:
    assert isinstance(lake.catalog, PointerCatalog)
    store = lake.catalog.store
    assert isinstance(store, PointersWithTurns)
    return store


def commit_turn(lake: Lake, clock_ms: list[int] | None = None) -> CommitTurn:
    return CommitTurn(lake.catalog, [T], lambda: clock_ms[0] if clock_ms else 0)


def lose(turn: CommitTurn, clock_ms: list[int] | None = None, took_ms: int = 0) -> None:
    with turn.attempt():
        if clock_ms:
            clock_ms[0] += took_ms
        turn.worked_out()
        turn.lost()


def test_turn_is_asked_for_after_some_losses_and_given_back(lake: Lake) -> None:
    turn = commit_turn(lake)
    for _ in range(LOSSES_BEFORE_A_TURN):
        lose(turn)
        assert store_of(lake).read_with_turn(T)[1] is None
    with turn.attempt():
        assert turn.is_held
        assert store_of(lake).read_with_turn(T)[1] is not None
        lake.load_table("db.orders").append(order_rows(2))
        assert store_of(lake).read_with_turn(T)[1] is not None  # it did not wait for its own turn to end
    turn.end()
    assert store_of(lake).read_with_turn(T)[1] is None


def test_lease_is_by_the_time_that_attempts_take(lake: Lake) -> None:
    clock = [1]
    turn = commit_turn(lake, clock)
    for _ in range(LOSSES_BEFORE_A_TURN):
        lose(turn, clock, took_ms=2000)
    with turn.attempt():
        found = store_of(lake).read_with_turn(T)[1]
        assert found is not None
        assert 3000 < found.left_ms <= 5000


def test_no_turn_is_asked_for_that_could_not_last_long_enough(lake: Lake) -> None:
    clock = [1]
    turn = commit_turn(lake, clock)
    for _ in range(LOSSES_BEFORE_A_TURN):
        lose(turn, clock, took_ms=LONGEST_TURN_MS)
    with turn.attempt():
        assert not turn.is_held
        assert store_of(lake).read_with_turn(T)[1] is None


def test_commit_that_is_refused_a_turn_names_no_holder(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server commits those of a holder alone, and those of all others together."""
    assert store_of(lake).take_turn([T], "other", 5000)
    given_back: list[object] = []
    monkeypatch.setattr(store_of(lake), "give_back_turn", lambda *which: given_back.append(which))
    turn = commit_turn(lake)
    for _ in range(LOSSES_BEFORE_A_TURN):
        lose(turn)
    with turn.attempt():
        assert not turn.is_held
        assert turn_holder() is None
    turn.end()
    assert given_back == []


def test_commit_goes_on_without_a_turn_that_cannot_be_had(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise UnavailableError("locked")

    monkeypatch.setattr(store_of(lake), "take_turn", refuse)
    monkeypatch.setattr(store_of(lake), "give_back_turn", refuse)
    turn = commit_turn(lake)
    for _ in range(LOSSES_BEFORE_A_TURN):
        lose(turn)
    with turn.attempt():
        assert not turn.is_held
        assert turn_holder() is not None  # it may have been granted
    turn.end()


def test_commit_waits_while_another_has_its_turn(lake: Lake) -> None:
    store = store_of(lake)
    table = lake.load_table("db.orders")
    assert store.take_turn([T], "me", 5000)
    before = store.read(T)
    landed = threading.Event()
    writer = threading.Thread(target=lambda: table.append(order_rows(2)) and landed.set())
    writer.start()
    assert not landed.wait(0.3)
    assert store.read(T) == before
    store.give_back_turn([T], "me")
    writer.join()
    assert landed.is_set()
    assert table.refresh().scan().to_arrow().num_rows == 2


def expire_the_first(lake: Lake) -> None:
    table = lake.load_table("db.orders")
    first = table.metadata.snapshots[0].snapshot_id
    assert table.expire(snapshot_ids=[first]).removed_snapshots == (first,)


SLOW: dict[str, Callable[[Lake], object]] = {
    "merge": lambda lake: lake.load_table("db.orders").refs.merge("b", into="main"),
    "publish": lambda lake: lake.publish("b", tables=["db.orders"], merge=True),
    "compaction": lambda lake: lake.load_table("db.orders").compact("id < 2"),
    "expiry": expire_the_first,
}


@pytest.mark.long
@pytest.mark.parametrize("slow", SLOW)
def test_slow_commits_come_through_beside_writers_that_never_pause(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """They always compute for longer than the others take to commit: without a turn they would never win."""
    table = lake.load_table("db.orders").append(order_rows(0))
    table.refs.create_branch("b")
    table.append(order_rows(100), branch="b")
    end = threading.Event()
    this = threading.local()
    commit = PointerCatalog.commit
    committed = [0]

    def commit_slowly(catalog: PointerCatalog, changes: object, *more: object) -> object:
        if getattr(this, "is_slow", False):
            before = committed[0]
            pause = time.monotonic() + 1
            while committed[0] < before + 3 and time.monotonic() < pause:
                time.sleep(0.01)
        return commit(catalog, changes, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(PointerCatalog, "commit", commit_slowly)

    def append_on_and_on(number: int) -> None:
        writing = lake.load_table("db.orders")
        while not end.is_set():
            writing.append(order_rows(number))
            committed[0] += 1

    writers = [threading.Thread(target=append_on_and_on, args=(n,)) for n in (2, 3)]
    for writer in writers:
        writer.start()
    try:
        this.is_slow = True
        SLOW[slow](lake)
    finally:
        this.is_slow = False
        end.set()
        for writer in writers:
            writer.join()
    found = table.refresh().scan().to_arrow()["id"].to_pylist()
    assert found.count(100) == (slow in ("merge", "publish"))
    assert len(found) == committed[0] + 2 + found.count(100)


def test_catalogs_without_turns_commit_as_before(tmp_path: Path) -> None:
    with bergline.connect(f"file://{tmp_path}/lake", create=True) as opened:
        opened.create_namespace("db")
        table = opened.create_table("db.orders", ORDERS)
        keeper: TurnKeeper | None = opened.catalog.turns  # type: ignore[attr-defined]
        assert keeper is None
        table.append(order_rows(1))
