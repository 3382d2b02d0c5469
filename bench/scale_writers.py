"""Processes without a server on one SQLite catalog: appends to one table, and slow commits beside writers.

The other side is the same without turns, in the same run.
"""

import contextlib
import datetime as dt
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Barrier, Event

import pyarrow as pa

import bergline
from bergline import Lake, Table
from bergline.errors import ConflictError
from bergline.table.commits import commit
from results import Scaled

SCHEMA = pa.schema([("id", pa.int64())])
WITHOUT = "each for itself"
NEVER = 10**9
GIVE_UP_S = 30


def rows(count: int) -> pa.Table:
    return pa.table({"id": range(count)}, schema=SCHEMA)


@contextlib.contextmanager
def each_for_itself() -> Iterator[None]:
    """In the block nobody in this process takes turns."""
    before = commit.LOSSES_BEFORE_A_TURN, commit.LOSSES_OF_APPENDS
    commit.LOSSES_BEFORE_A_TURN = commit.LOSSES_OF_APPENDS = NEVER  # type: ignore[misc]
    try:
        yield
    finally:
        commit.LOSSES_BEFORE_A_TURN, commit.LOSSES_OF_APPENDS = before  # type: ignore[misc]


def append_on(uri: str, turns: bool, begin: Barrier, end: Event, times: int) -> None:
    """Append to the table again and again, so many times or until the end."""
    with contextlib.nullcontext() if turns else each_for_itself():
        table = bergline.connect(uri).load_table("db.t")
        table.append(rows(1))  # what the first one takes for itself is not of interest
        begin.wait()
        for _ in range(times):
            if end.is_set():
                return
            with contextlib.suppress(ConflictError):  # it tries for as long as the merge does
                table.append(rows(1))


@contextlib.contextmanager
def writing(uri: str, writers: int, times: int, *, turns: bool) -> Iterator[list[SpawnProcess]]:
    """Writers in processes of their own, which all begin at once."""
    context = multiprocessing.get_context("spawn")
    begin, end = context.Barrier(writers + 1), context.Event()
    arguments = (uri, turns, begin, end, times)
    processes = [context.Process(target=append_on, args=arguments, daemon=True) for _ in range(writers)]
    for process in processes:
        process.start()
    begin.wait()
    try:
        yield processes
    finally:
        end.set()
        for process in processes:
            process.join()


def appends_per_second(writers: int, times: int, *, turns: bool) -> float:
    with tempfile.TemporaryDirectory() as directory:
        uri = new_lake(directory)
        with writing(uri, writers, times, turns=turns) as processes:
            started = time.perf_counter()
            for process in processes:
                process.join()
            seconds = time.perf_counter() - started
        with bergline.connect(uri) as lake:
            assert lake.load_table("db.t").scan().to_arrow().num_rows == writers * (times + 1)
        return writers * times / seconds


def slow_seconds(kind: str, writers: int, times: int, *, turns: bool) -> float:
    """How long the slowest of some commits takes beside the writers; one that gives up took as long as that."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        uri = new_lake(directory)
        lake = stack.enter_context(bergline.connect(uri))
        table = lake.load_table("db.t")
        table.append(rows(1))
        for number in range(times):
            table.refs.create_branch(f"b{number}")
            for _ in range(20):
                table.append(rows(10), branch=f"b{number}")
        if not turns:
            stack.enter_context(each_for_itself())
        stack.enter_context(writing(uri, writers, NEVER, turns=turns))
        found = []
        for number in range(times):
            wait_for_commits(table, 5 * writers)  # there is something to compact and to expire
            started = time.perf_counter()
            with contextlib.suppress(ConflictError):
                SLOW[kind](lake, f"b{number}")
            found.append(time.perf_counter() - started)
        return max(found)


def wait_for_commits(table: Table, number: int) -> None:
    """Until the others have made so many."""
    last = table.refresh().metadata.last_sequence_number
    while table.refresh().metadata.last_sequence_number < last + number:
        time.sleep(0.05)


SLOW: dict[str, Callable[[Lake, str], object]] = {
    "merge": lambda lake, branch: lake.load_table("db.t").refs.merge(branch, into="main"),
    "publish": lambda lake, branch: lake.publish(branch, merge=True),
    "compaction": lambda lake, _: lake.load_table("db.t").compact(),
    "expiry": lambda lake, _: lake.load_table("db.t").expire(older_than=dt.datetime.now(dt.UTC), retain_last=5),
}


def new_lake(directory: str) -> str:
    uri = f"sqlite:///{directory}/catalog.db"
    with bergline.connect(uri, create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", SCHEMA, properties={"commit.retry.total-timeout-ms": str(GIVE_UP_S * 1000)})
    return uri


def cases(small: bool) -> Iterator[Scaled]:
    writers, times, slowly = (4, 5, 1) if small else (8, 40, 3)
    fast, slow = (appends_per_second(writers, times, turns=turns) for turns in (True, False))
    yield Scaled(f"{writers} processes append to one table", "/s", fast, slow, WITHOUT)
    for kind in SLOW:
        ours, theirs = slow_seconds(kind, 4, slowly, turns=True), slow_seconds(kind, 4, 1, turns=False)
        case = f"{kind} beside 4 writers that never pause, slowest of {slowly}; gives up after {GIVE_UP_S} s"
        yield Scaled(case, "s", ours, theirs, WITHOUT)
