"""How evenly the writers of one table get through: appends of each in the same time, and the slowest append of all.

Processes without a server, on SQLite and PostgreSQL, on a disk and on files that take some milliseconds for every
operation, as object stores do; the other side is the same without turns. And bergline's client, PyIceberg and DuckDB
together on `bergline serve`; the other side is Iceberg's reference REST server with the same clients. A commit that
lost is tried again at once by clients that do not do so by themselves. The figure that is kept for the report is the
time that an append took the writer who got fewest in.
"""

import argparse
import contextlib
import functools
import logging
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException

import bergline
from bergline.errors import ConflictError
from bergline.io.local import LocalFileIO
from bergline.table.commits import commit
from results import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers.bergline_server import BerglineServer
from support.servers.java_rest_server import JavaRestServer
from support.servers.peers import duckdb_connection
from support.servers.postgres_server import running_postgres

ROWS = pa.table({"id": pa.array([1], pa.int64())})
NEVER = 10**9
WITHOUT, REFERENCE = "without turns", "REST reference server"
HEAD = (
    "| writers | appends of each | fewest | median | most | slowest | the other: appends of each | fewest | median "
    "| most | slowest | fewest, relative |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)

Append = Callable[[], bool]
"""Try once; whether it is in."""
Opened = AbstractContextManager[Append]


class Sizes(NamedTuple):
    """How many, for how long, and what a file operation takes on the slow files."""

    processes: int
    seconds: float
    file_ms: float


class Got(NamedTuple):
    """What one writer got in, and its slowest append, also if that did not end in time."""

    appends: int
    slowest_s: float


@contextlib.contextmanager
def library(uri: str, table: str, file_ms: float, turns: bool) -> Iterator[Append]:
    """No server: bergline on the database itself."""
    slow_files(file_ms)
    if not turns:
        commit.LOSSES_BEFORE_A_TURN = commit.LOSSES_OF_APPENDS = NEVER  # type: ignore[misc]
    with bergline.connect(uri) as lake:
        yield functools.partial(appended, lake.load_table(table))


@contextlib.contextmanager
def client(uri: str) -> Iterator[Append]:
    """The client of bergline on a REST server."""
    with bergline.connect(uri) as lake:
        yield functools.partial(appended, lake.load_table("db.t"))


def appended(table: bergline.Table) -> bool:
    """One append of bergline, which tries again by itself."""
    try:
        table.append(ROWS)
    except ConflictError:
        return False
    return True


@contextlib.contextmanager
def pyiceberg(uri: str) -> Iterator[Append]:
    """PyIceberg on a REST server; after a conflict with the table as it is then."""
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)  # it says of every conflict that it tries again
    catalog = load_catalog("lake", type="rest", uri=uri)

    def append() -> bool:
        try:
            catalog.load_table("db.t").append(ROWS)
        except CommitFailedException:
            return False
        return True

    yield append


@contextlib.contextmanager
def duck(uri: str) -> Iterator[Append]:
    """DuckDB on a REST server."""
    with duckdb_connection() as connection:
        connection.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")

        def append() -> bool:
            try:
                connection.execute("INSERT INTO lake.db.t VALUES (1)")
            except duckdb.Error as error:
                if "409" not in str(error) and "onflict" not in str(error):
                    raise
                return False
            return True

        yield append


def slow_files(file_ms: float) -> None:
    """From now on every file operation of this process takes so much longer."""
    if not file_ms:
        return
    for name in ("open_input", "create", "create_output", "exists", "delete"):
        setattr(LocalFileIO, name, slowed(getattr(LocalFileIO, name), file_ms / 1000))


def slowed(operation: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    @functools.wraps(operation)
    def run(*arguments: Any, **named: Any) -> Any:
        time.sleep(seconds)
        return operation(*arguments, **named)

    return run


def write(
    place: int, opened: Callable[[], Opened], begin: Barrier, seconds: float, results: "Queue[tuple[int, Got]]"
) -> None:
    """One writer, in a process of its own."""
    with opened() as append:
        while not append():
            pass  # what the first one takes for itself is not of interest
        begin.wait()
        end = time.monotonic() + seconds
        appends, slowest = 0, 0.0
        while time.monotonic() < end:
            started = time.monotonic()
            landed = append()
            while not landed and time.monotonic() < end:
                landed = append()
            now = time.monotonic()
            slowest = max(slowest, now - started)
            appends += landed and now <= end
    results.put((place, Got(appends, slowest)))


def race(writers: Sequence[Callable[[], Opened]], seconds: float) -> list[Got]:
    """What each of the writers got in while all of them wrote."""
    context = multiprocessing.get_context("spawn")
    begin, results = context.Barrier(len(writers)), context.Queue()
    processes = [
        context.Process(target=write, args=(place, opened, begin, seconds, results), daemon=True)
        for place, opened in enumerate(writers)
    ]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=seconds + 300) for _ in processes)
    for process in processes:
        process.join()
    return [found[place] for place in range(len(writers))]


def of_processes(place: str, uri: str, warehouse: Path, sizes: Sizes) -> None:
    """Processes on one SQL catalog, with quick and with slow files."""
    with bergline.connect(uri, warehouse=warehouse, create=True) as lake:
        lake.create_namespace("db")
        for file_ms in dict.fromkeys((0.0, sizes.file_ms)):
            sides = []
            for turns in (True, False):
                name = f"db.t{file_ms:g}_{turns}"
                lake.create_table(name, ROWS.schema)
                writer = functools.partial(library, uri, name, file_ms, turns)
                sides.append(race([writer] * sizes.processes, sizes.seconds))
            case = f"{sizes.processes} processes on {place}, {file_ms:g} ms per file operation"
            show(case, *sides, WITHOUT, sizes.seconds)


def of_clients(directory: Path, sizes: Sizes) -> None:
    """Three kinds of clients on one server, half of them bergline's."""
    others = sizes.processes // 2
    kinds = [client] * (sizes.processes - others) + [pyiceberg] * (others - others // 2) + [duck] * (others // 2)
    sides = []
    for server in (BerglineServer, JavaRestServer):
        place = directory / server.__name__
        place.mkdir()
        with server(place) as running:
            with bergline.connect(running.uri) as lake:
                lake.create_namespace("db")
                lake.create_table("db.t", ROWS.schema)
            sides.append(race([functools.partial(kind, running.uri) for kind in kinds], sizes.seconds))
    case = ", ".join(f"{kinds.count(kind)} {kind.__name__}" for kind in dict.fromkeys(kinds))
    show(f"clients of a server: {case}", *sides, REFERENCE, sizes.seconds)


def show(case: str, ours: Sequence[Got], theirs: Sequence[Got], peer: str, seconds: float) -> None:
    """One row; the writers of each side in the order in which the case names them."""
    fewest, other = (max(min(got.appends for got in side), 0.5) for side in (ours, theirs))
    print(f"| {case} | {spread(ours)} | {spread(theirs)} ({peer}) | {fewest / other:.1f} |", flush=True)
    record(f"an append of the last of {case}", [seconds / fewest], [seconds / other], peer)


def spread(side: Sequence[Got]) -> str:
    counts = [got.appends for got in side]
    cells = (", ".join(map(str, counts)), min(counts), f"{statistics.median(counts):g}", max(counts))
    return f"{' | '.join(map(str, cells))} | {max(got.slowest_s for got in side):.1f} s"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--processes", type=int, default=6)
    arguments.add_argument("--seconds", type=float, default=30)
    arguments.add_argument("--file-ms", type=float, default=50, help="what an operation on slow files takes")
    arguments.add_argument("--only", choices=("sqlite", "postgresql", "server"), action="append")
    arguments.add_argument("--quick", action="store_true", help="in a minute, to see that it works")
    given = arguments.parse_args()
    sizes = Sizes(4, 3, 20) if given.quick else Sizes(given.processes, given.seconds, given.file_ms)
    only = given.only or ("sqlite", "postgresql", "server")
    print(HEAD)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        if "sqlite" in only:
            of_processes("SQLite", f"sqlite:///{directory}/catalog.db", directory / "sqlite", sizes)
        if "postgresql" in only:
            with running_postgres() as uri:
                of_processes("PostgreSQL", uri, directory / "postgresql", sizes)
        if "server" in only:
            of_clients(directory, sizes)


if __name__ == "__main__":
    main()
