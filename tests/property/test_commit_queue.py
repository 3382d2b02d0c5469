"""Processes that append through the queue of a SQL catalog, in any order, while some die and answers are lost.

What was acknowledged is there once, what was refused is not there, and the history is that of some serial order.
"""

import random
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, pairwise
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from rows import ORDERS, order_rows
from stepped_processes import LAND, Accident, Fate, Interrupted, Killed, SteppedWorld, StoryStep, take_over_time
from table_invariants import check_nothing_is_missing, pointer_line

from bergline import Lake, Table
from bergline.catalog.catalog import Outcome, TableChange
from bergline.catalog.commit_queue import QueueState
from bergline.catalog.sql.contention.commit_queue import GOOD_FOR_MS
from bergline.catalog.sql.contention_layout import QUEUED_COMMITS
from bergline.errors import BerglineError, CommitUnknownError, RefusedError
from bergline.table.commits.queued_commit import QueuedCommit

PROCESSES = 3
FIRST = 1
"""The row that the table has from the beginning, which deletes go for."""

WEIGHTS = {Fate.GO: 60, Fate.UNAVAILABLE: 2, Fate.NOT_DONE: 2, Fate.DONE: 3, Fate.LATE: 3}
FATES = [fate for fate in Fate for _ in range(WEIGHTS.get(fate, 1))]
ACCIDENTS = {
    LAND: [Fate.NOT_DONE, Fate.DONE, Fate.DONE, Fate.LATE],
    "add": [Fate.NOT_DONE, Fate.DONE, Fate.LATE, Fate.LATE],
    "withdraw": [Fate.NOT_DONE, Fate.DONE],
    "refuse": [Fate.NOT_DONE, Fate.DONE],
}
CUT_OFF_FOR = [0, 0, 0, 1, 1, 3, 6]
PAUSES_S = [*[0.0] * 40, 1.5, 4.0, 4.0, 35.0, 35.0, 70.0, 4000.0]
CALM = 0.6
"""How many of the tales have accidents alone: in the others few changes get through the queue at all."""
CALM_PAUSES_S = [*[0.0] * 60, 1.5]
ACTIONS = ["queue", "queue", "queue", "queue alone", "queue alone", "queue alone", "direct", "delete", "retain"]
"""Alone: what the queue says was not committed is given up, with its files, and not tried without the queue."""
APPENDS = {"queue", "queue alone", "direct"}


class Tale(msgspec.Struct, frozen=True):
    """What each process wants to do, and how they get on."""

    plans: list[list[str]]
    story: list[StoryStep]
    accidents: list[Accident]
    """Lost answers that are not the only ones: otherwise nearly everything is found out."""
    looks_again: int
    """How often a process that was not answered looks again, until it gives up."""


@st.composite
def tales(draw: st.DrawFn) -> Tale:
    """From a seed alone: stories of Hypothesis' own have the same few values again and again, and little happens."""
    chance = random.Random(draw(st.integers(0, 2**64 - 1)))  # noqa: S311
    length = chance.randint(20, 150)
    plans = [chance.choices(ACTIONS, k=chance.randint(1, 3)) for _ in range(chance.randint(2, PROCESSES))]
    is_calm = chance.random() < CALM
    fates, pauses_s = ([Fate.GO], CALM_PAUSES_S) if is_calm else (FATES, PAUSES_S)
    story = [
        StoryStep(chance.randrange(PROCESSES), chance.choice(fates), chance.choice(pauses_s)) for _ in range(length)
    ]
    accidents = [
        Accident(kind, chance.randint(1, 3), chance.choice(ACCIDENTS[kind]), chance.choice(CUT_OFF_FOR))
        for kind in chance.choices([*ACCIDENTS], weights=[3, 3, 1, 1], k=chance.randint(1, 4))
    ]
    return Tale(plans, story, accidents, looks_again=chance.choice((0, 0, 1, 3)))


class Attempted(msgspec.Struct):
    """Something that a process wanted to do, and what it was told."""

    action: str
    number: int
    """The row, or the retention."""
    begun: int
    ended: int = 0
    told: str = "nothing"


class QueueStory:
    """A table, the processes that write to it, and what they were told."""

    def __init__(self, world: SteppedWorld, lakes: list[Lake], name: str, looks_again: int) -> None:
        self._world = world
        self._numbers = count(FIRST + 1)
        self.attempted: list[Attempted] = []
        properties = {"commit.status-check.num-retries": str(looks_again)}
        lakes[0].create_table(name, ORDERS, properties=properties).append(order_rows(FIRST))
        self._tables = [lake.load_table(name) for lake in lakes]

    def play(self, plans: list[list[str]], story: list[StoryStep], accidents: Sequence[Accident] = ()) -> None:
        """Let each process do what it plans."""
        works = [partial(self._work, table, plan) for table, plan in zip(self._tables, plans, strict=False)]
        self._world.run(works, story, accidents)

    def waiting(self) -> dict[str, int]:
        """The snapshots of changes that are in the queue, undecided, by their tokens."""
        name, queued = self._tables[0].name, QUEUED_COMMITS.c
        query = sa.select(queued.token, queued.change).where(
            queued.table_name == name.name, queued.state == QueueState.WAITING.value
        )
        return {token: snapshot_of(change) for token, change in self._world.read(query)}

    def _work(self, table: Table, plan: list[str]) -> None:
        for action in plan:
            self._attempt(table, action)

    def _attempt(self, table: Table, action: str) -> None:
        one = Attempted(action, next(self._numbers), self._world.steps)
        self.attempted.append(one)
        PREFERS.queue, PREFERS.alone = action.startswith("queue"), action == "queue alone"
        try:
            self._act(table, one)
            one.told = "done"
        except CommitUnknownError:
            one.told = "unknown"
        except BerglineError:
            one.told = "not done"
        except (Killed, Interrupted):
            self._world.restart()
            return
        one.ended = self._world.steps

    def _act(self, table: Table, one: Attempted) -> None:
        match one.action:
            case "queue" | "queue alone" | "direct":
                table.append(order_rows(one.number))
            case "delete":
                table.delete(f"id = {FIRST}")
            case "retain":
                table.refs.set_retention("main", max_ref_age_ms=one.number)

    def check(self, left_waiting: Collection[int]) -> None:
        table = self._tables[0].refresh()
        assert table.metadata.snapshots_by_id.keys().isdisjoint(left_waiting)
        assert GIVEN_UP.isdisjoint(table.metadata.snapshots_by_id), "the queue had said that it would not be committed"
        line = list(table.metadata.ancestors(table.metadata.refs["main"].snapshot_id))[::-1]
        assert len(line) == len(table.metadata.snapshots)
        rows = [frozenset(self._rows(table, s.snapshot_id)) for s in line]
        landed = {}
        for number, (before, after) in enumerate(pairwise(rows), 1):
            new = after - before
            assert len(new) + len(before - after) == 1, "a snapshot is one change"
            assert before - after <= {FIRST}
            landed |= dict.fromkeys(new or {FIRST}, number)
        assert [s.sequence_number for s in line] == list(range(1, len(line) + 1))
        assert [int(s.summary["total-records"]) for s in line] == [len(r) for r in rows]
        appends = [one for one in self.attempted if one.action in APPENDS]
        assert set(landed) - {FIRST} <= {one.number for one in appends}
        for one in appends:
            event(f"{one.action}: {one.told}")
            if one.told == "done":
                assert one.number in rows[-1], one
            if one.told == "not done":
                assert one.number not in landed, one
        known = [one for one in appends if one.number in landed]
        for one in known:
            for other in known:
                if one.told == "done" and one.ended < other.begun:
                    assert landed[one.number] < landed[other.number], (one, other)
        self._check_retention(table)
        check_nothing_is_missing(table)
        pointer_line(table)

    def _check_retention(self, table: Table) -> None:
        asked = [one for one in self.attempted if one.action == "retain"]
        kept = table.metadata.refs["main"].max_ref_age_ms
        assert kept in {None, *(one.number for one in asked)}
        if any(one.told == "done" for one in asked):
            assert kept is not None

    def _rows(self, table: Table, snapshot_id: int) -> list[int]:
        found: list[int] = table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist()
        assert len(found) == len(set(found)), "a row is there twice"
        return found


PREFERS = threading.local()
REFUSED: set[str] = set()
"""The tokens of what the queue certainly would not commit."""
GIVEN_UP: set[int] = set()
"""The snapshots of those of them that nobody else was to commit."""
_NUMBERS = count()
Opened = tuple[SteppedWorld, list[Lake]]


def snapshot_of(change: str) -> int:
    """The id of the snapshot that a change in the queue adds."""
    (added,) = (u for u in msgspec.json.decode(change)["updates"] if u["action"] == "add-snapshot")
    number: int = added["snapshot"]["snapshot-id"]
    return number


def noting_what_is_given_up(run: Callable[[QueuedCommit], Outcome | None]) -> Callable[[QueuedCommit], Outcome | None]:
    def noting(commit: QueuedCommit) -> Outcome | None:
        outcome = run(commit)
        if outcome is None:
            REFUSED.add(commit._token)
        if outcome is None and PREFERS.alone:
            GIVEN_UP.add(snapshot_of(commit._row.change))
        return outcome

    return noting


def commit_unless_alone(
    commit: Callable[[tuple[TableChange, ...]], Outcome], changes: tuple[TableChange, ...]
) -> Outcome:
    if getattr(PREFERS, "alone", False):
        raise RefusedError("only through the queue")
    return commit(changes)


@contextmanager
def opened(uri: str, warehouse: Path) -> Iterator[Opened]:
    """A catalog for some processes."""
    with pytest.MonkeyPatch.context() as patch:
        world = take_over_time(patch, lambda: getattr(PREFERS, "queue", False))
        lakes = world.open(uri, str(warehouse), uuid.uuid4().hex, PROCESSES)
        lakes[0].create_namespace("db")
        patch.setattr(QueuedCommit, "run", noting_what_is_given_up(QueuedCommit.run))
        for lake in lakes:
            patch.setattr(lake.catalog, "commit", partial(commit_unless_alone, lake.catalog.commit))
        yield world, lakes
        for lake in lakes:
            lake.close()


@pytest.fixture
def in_sqlite(tmp_path: Path) -> Iterator[Opened]:
    with opened(f"sqlite:///{tmp_path}/c.db", tmp_path / "wh") as world:
        yield world


@pytest.fixture
def in_postgres(postgres: str, tmp_path: Path) -> Iterator[Opened]:
    with opened(postgres, tmp_path / "wh") as world:
        yield world


def tell(opened: Opened, tale: Tale) -> None:
    world, lakes = opened
    told = QueueStory(world, lakes, f"db.t{next(_NUMBERS)}", tale.looks_again)
    told.play(tale.plans, tale.story, tale.accidents)
    assert REFUSED.isdisjoint(told.waiting()), "whoever leads next would commit it"
    world.pass_time(GOOD_FOR_MS / 1000 + 1)
    left = told.waiting()
    told.play([["queue"]], [])  # a leader that finds what those before it have left
    assert told.attempted[-1].told == "done"
    told.check(left.values())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tales())
def test_what_was_acknowledged_is_there_once_in_some_order(in_sqlite: Opened, tale: Tale) -> None:
    tell(in_sqlite, tale)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tales())
def test_what_was_acknowledged_is_there_once_in_postgres_too(in_postgres: Opened, tale: Tale) -> None:
    tell(in_postgres, tale)
