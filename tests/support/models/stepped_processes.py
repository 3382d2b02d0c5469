"""Processes on one SQL catalog, as threads of which one runs at a time, in the order and with the accidents of a story.

They stop before everything that they ask of the database, and wherever they wait; time goes on only then.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest
import sqlalchemy as sa

import bergline
from bergline import Lake
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.contention import commit_queue
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.postgres import PostgresDatabase
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqliteDatabase
from bergline.errors import BerglineError, StorageError, UnavailableError
from bergline.table.commits import queued_commit
from bergline.table.commits.retry import Timing
from bergline.table.commits.turn import CommitTurn

CLOCK = sa.Table("test_clock", sa.MetaData(), sa.Column("ms", sa.BigInteger, nullable=False))
_BEGIN_MS: Final = 1_800_000_000_000
_MOST_STEPS: Final = 5_000
_LONG_S: Final = 100
_QUEUE_READS: Final = ("outcome", "waiting")
_POINTER_READS: Final = ("read", "read_with_turn")
LAND: Final = "land"
"""A swap in whose transaction something is noted, as by who leads a queue."""
_CHANGES: Final = ("add", "withdraw", "bar", "lead", "refuse")


class Fate(Enum):
    """What becomes of a step."""

    GO = "go"
    UNAVAILABLE = "unavailable"
    """It is not done, and the process is told so."""
    NOT_DONE = "not done"
    """It is not done, and the process does not know."""
    DONE = "done"
    """It is done, and the process does not know."""
    LATE = "late"
    """It is done when somebody is next to change something, and the process does not know."""
    KILLED = "killed"
    """The process ends before it."""
    KILLED_AFTER = "killed after"
    KILLED_LATE = "killed late"
    INTERRUPTED = "interrupted"
    """As by the user: the process may still clean up."""


class StoryStep(NamedTuple):
    """Which of the processes that are left goes on, what becomes of its step, and how long the step took."""

    process: int
    fate: Fate = Fate.GO
    took_s: float = 0


class Accident(NamedTuple):
    """What becomes of the n-th step of a kind, whoever takes it, and of that process' next steps: no answer."""

    kind: str
    number: int
    fate: Fate
    cut_off_for: int = 0


class Killed(BaseException):
    """The process is no more; whatever it tries to do does not happen."""


class Interrupted(BaseException):
    """The user wants the process to end."""


class _Process(threading.Thread):
    def __init__(self, world: "SteppedWorld", work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._world = world
        self._work = work
        self.may_run = threading.Semaphore(0)
        self.fate = Fate.GO
        self.next_step: str | None = None
        """What it is about to ask of the database; None if it only waits."""
        self.cut_off_for = 0
        self.is_dead = False
        self.has_ended = False
        self.error: BaseException | None = None

    def run(self) -> None:
        self._world.here.process = self
        self.may_run.acquire()
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (raised again by the test)
            self.error = error
        self.has_ended = True
        self._world.stopped.release()


class SteppedWorld:
    """The processes, the time, and what is still on its way to the database."""

    def __init__(self) -> None:
        self.here = threading.local()
        self.stopped = threading.Semaphore(0)
        self.steps = 0
        self.now_s = 0.0
        self._late: list[tuple[str, Callable[[], object]]] = []
        self._told_s = 0.0
        self._accidents: Sequence[Accident] = ()
        self._taken: Counter[str] = Counter()
        self._database: SqlDatabase | None = None

    def open(self, uri: str, warehouse: str, name: str, number: int) -> list[Lake]:
        """A lake for each process, all on the same catalog."""
        timing = Timing(clock_ms=self.now_ms, sleep=self.sleep, uniform=lambda _, high: high)
        opened = []
        for _ in range(number):
            lake = bergline.connect(uri, warehouse=warehouse, name=name, create=True)
            assert isinstance(lake.catalog, PointerCatalog)
            self._attach(lake.catalog)
            opened.append(Lake(lake.catalog, name, timing=timing))
        return opened

    def _attach(self, catalog: PointerCatalog) -> None:
        store = catalog.store
        assert isinstance(store, SqlPointerStore)
        if self._database is None:
            self._database = store.database
            with store.database.changing() as connection:
                CLOCK.create(connection, checkfirst=True)
                connection.execute(sa.delete(CLOCK))
                connection.execute(sa.insert(CLOCK).values(ms=_BEGIN_MS))
        catalog._sleep = self.sleep
        queue = store._queue
        for target, name, changes in (
            *((queue, name, False) for name in _QUEUE_READS),
            *((queue, name, True) for name in _CHANGES),
            *((store, name, False) for name in _POINTER_READS),
            (store, "swap", True),
            (store, "take_turn", True),
            (store, "give_back_turn", True),
        ):
            setattr(target, name, self._stepped(store.database, target, name, changes=changes))

    def _stepped(self, database: SqlDatabase, target: object, name: str, *, changes: bool) -> Callable[..., Any]:
        act = getattr(target, name)

        def step(*arguments: Any) -> Any:
            notes = getattr(database._noting, "notes", ())
            fate = self._pause(LAND if name == "swap" and notes else name)
            if fate is Fate.UNAVAILABLE:
                raise UnavailableError("not there")
            if fate is Fate.NOT_DONE:
                raise StorageError("no answer")
            if changes:
                self.arrive(before=name)
            if changes and fate in {Fate.LATE, Fate.KILLED_LATE}:
                self._late.append((name, lambda: _with_notes(database, notes, lambda: act(*arguments))))
            else:
                answer = act(*arguments)
            if fate in {Fate.KILLED_AFTER, Fate.KILLED_LATE}:
                self._kill()
            if fate is not Fate.GO:
                raise StorageError("no answer")
            return answer

        return step

    def arrive(self, before: str | None = None) -> None:
        """What was on its way is done, before something that its locks keep waiting.

        A row that is about to be there does not keep anybody from finding none to withdraw.
        """
        waiting = [(name, act) for name, act in self._late if (name, before) == ("add", "withdraw")]
        arriving = [act for name, act in self._late if (name, before) != ("add", "withdraw")]
        self._late = waiting
        for act in arriving:
            act()

    def sleep(self, seconds: float) -> None:
        """Let others go on."""
        if self._process is not None and self._pause() in {Fate.KILLED_AFTER, Fate.KILLED_LATE}:
            self._kill()
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        """For all processes; the database's clock is a little behind."""
        self.now_s += seconds
        if self.now_s - self._told_s >= 0.2:
            self._told_s = self.now_s
            assert self._database is not None
            with self._database.changing() as connection:
                connection.execute(sa.update(CLOCK).values(ms=self.now_ms()))

    def read(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        """Rows of the database."""
        assert self._database is not None
        with self._database.reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def now_ms(self) -> int:
        """The time of day."""
        return _BEGIN_MS + int(self.now_s * 1000)

    @property
    def _process(self) -> _Process | None:
        return getattr(self.here, "process", None)

    def restart(self) -> None:
        """After the process has ended, another one has its place."""
        process = self._process
        assert process is not None
        process.is_dead = False

    def _kill(self) -> None:
        process = self._process
        assert process is not None
        process.is_dead = True
        raise Killed

    def _pause(self, next_step: str | None = None) -> Fate:
        """Stop until the process is to go on."""
        process = self._process
        if process is None:
            return Fate.GO
        if process.is_dead:
            raise Killed
        process.next_step = next_step
        self.stopped.release()
        process.may_run.acquire()
        if process.fate is Fate.KILLED:
            self._kill()
        if process.fate is Fate.INTERRUPTED:
            raise Interrupted
        return process.fate

    def _fate(self, process: _Process, told: Fate) -> Fate:
        """What becomes of the next step of a process, of which the story tells one thing, and its accidents another."""
        kind = process.next_step
        if kind is None:
            return told
        self._taken[kind] += 1
        for accident in self._accidents:
            if (accident.kind, accident.number) == (kind, self._taken[kind]):
                process.cut_off_for = accident.cut_off_for
                return accident.fate
        if process.cut_off_for:
            process.cut_off_for -= 1
            return Fate.NOT_DONE if told is Fate.GO else told
        return told

    def run(
        self, works: Sequence[Callable[[], object]], story: Iterable[StoryStep], accidents: Sequence[Accident] = ()
    ) -> None:
        """Let each work be done by a process of its own, by the story and then one after the other, to their ends."""
        self._accidents = accidents
        self._taken = Counter()
        processes = [_Process(self, work) for work in works]
        for process in processes:
            process.start()
        left, told = list(processes), iter(story)
        most = self.steps + _MOST_STEPS
        while left:
            self.steps += 1
            step = next(told, StoryStep(self.steps))
            process = left[step.process % len(left)]
            self.pass_time(step.took_s)
            process.fate = self._fate(process, step.fate)
            process.may_run.release()
            if not self.stopped.acquire(timeout=_LONG_S):
                pytest.fail("a process does not stop")
            left = [p for p in left if not p.has_ended]
            if self.steps > most:
                pytest.fail("the processes do not end")
        self.arrive()
        for process in processes:
            process.join()
            if process.error is not None:
                raise process.error


def _with_notes(database: SqlDatabase, notes: tuple[Any, ...], act: Callable[[], object]) -> None:
    """A transaction that was complete but for its end, done by whoever comes next."""
    own = getattr(database._noting, "notes", ())
    database._noting.notes = notes
    try:
        act()
    except BerglineError:
        pass
    finally:
        database._noting.notes = own


def take_over_time(patch: pytest.MonkeyPatch, prefers_queue: Callable[[], bool]) -> SteppedWorld:
    """From now on time passes only as processes wait; appends that prefer it go into the queue at once."""
    world = SteppedWorld()
    for kind in (SqliteDatabase, PostgresDatabase):
        patch.setattr(kind, "now_ms", lambda _: sa.select(CLOCK.c.ms).scalar_subquery())
    clock = SimpleNamespace(monotonic=lambda: world.now_s, time_ns=time.time_ns)
    for module in (queued_commit, commit_queue):
        patch.setattr(module, "time", clock)
    patch.setattr(CommitTurn, "has_lost", property(lambda turn: prefers_queue() or turn._lost > 0))
    return world
