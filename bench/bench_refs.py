"""Tags and branches beside PyIceberg in one run, on a table of many snapshots: alone, and four processes at once.

Both work on the same state: a table that bergline wrote, registered once in a catalog of each. PyIceberg gives up
where others come first too often: its processes look again and try again, as a user would; the failures are counted.
bergline's must all succeed at the first call. Prints both times and, for many processes, the time until all are done.
"""

import argparse
import logging
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy.exc import OperationalError

import bergline
from bergline import Lake
from results import report, times

SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("region", pa.string())])
ROWS = pa.table({"id": [1, 2, 3], "amount": [1.0, 2.0, 3.0], "region": ["a", "b", "c"]}, schema=SCHEMA)
SNAPSHOTS = 2000
PROCESSES, EACH = 4, 10
ROUNDS = 10
NAME = "db.orders"

Took = tuple[float, float, int]
"""When a process began and ended, and how many of its commits failed."""


def written_table(lake: Lake, snapshots: int) -> str:
    """The metadata file of a table with so many appends behind it, and a branch for each process."""
    table = lake.create_table(NAME, SCHEMA)
    for _ in range(snapshots):
        table.append(ROWS)
    for number in range(PROCESSES):
        table.refs.create_branch(f"b{number}")
    return table.metadata_location


def our_lake(directory: str) -> Lake:
    return bergline.connect(f"sqlite:///{directory}/ours.db", create=True)


def their_catalog(directory: str) -> SqlCatalog:
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)  # it tells of every attempt that lost
    return SqlCatalog("lake", uri=f"sqlite:///{directory}/theirs.db", warehouse=Path(directory, "theirs").as_uri())


def bench_one_tag(directory: str, snapshots: int) -> None:
    with our_lake(directory) as lake:
        table = lake.load_table(NAME)
        names = iter(range(ROUNDS))
        ours = times(ROUNDS, lambda: table.refs.create_tag(f"alone{next(names)}"))
    peer = their_catalog(directory).load_table(NAME)
    head = peer.metadata.current_snapshot_id
    peer_names = iter(range(ROUNDS))
    theirs = times(ROUNDS, lambda: peer.manage_snapshots().create_tag(head, f"alone{next(peer_names)}").commit())
    report(f"a tag on a table of {snapshots:,} snapshots", ours, theirs)


def our_tags(directory: str, number: int, start: Barrier) -> Took:
    with our_lake(directory) as lake:
        table = lake.load_table(NAME)
        return timed(start, lambda n: table.refs.create_tag(f"w{number}.{n}"))


def our_appends(directory: str, number: int, start: Barrier) -> Took:
    with our_lake(directory) as lake:
        table = lake.load_table(NAME)
        return timed(start, lambda _: table.append(ROWS, branch=f"b{number}"))


def their_tags(directory: str, number: int, start: Barrier) -> Took:
    peer = their_catalog(directory).load_table(NAME)
    head = peer.metadata.current_snapshot_id
    return timed(start, lambda n: peer.manage_snapshots().create_tag(head, f"w{number}.{n}").commit(), peer.refresh)


def their_appends(directory: str, number: int, start: Barrier) -> Took:
    peer = their_catalog(directory).load_table(NAME)
    rows = ROWS.cast(peer.schema().as_arrow())
    return timed(start, lambda _: peer.append(rows, branch=f"b{number}"), peer.refresh)


def timed(start: Barrier, commit: Callable[[int], Any], look_again: Callable[[], Any] | None = None) -> Took:
    """All commits of one process; without a way to look again the first failure is the end."""
    failures = 0
    start.wait()
    began = time.perf_counter()
    for number in range(EACH):
        while True:
            try:
                commit(number)
                break
            except (CommitFailedException, OperationalError, ValueError):  # also "sequence number ... older than ..."
                if look_again is None:
                    raise
                failures += 1
                look_again()
    return began, time.perf_counter(), failures


def at_once(run: Callable[[str, int, Barrier], Took], directory: str) -> tuple[float, int]:
    """Seconds until all processes are done, and the failures of all."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(PROCESSES) as pool:
        start = manager.Barrier(PROCESSES)
        took = pool.starmap(run, [(directory, number, start) for number in range(PROCESSES)])
    began, ended, failures = zip(*took, strict=True)
    return max(ended) - min(began), sum(failures)


def bench_at_once(directory: str, what: str, ours: Callable[..., Took], theirs: Callable[..., Took]) -> None:
    our_time, our_failures = at_once(ours, directory)
    assert our_failures == 0
    their_time, their_failures = at_once(theirs, directory)
    report(f"{PROCESSES} x {EACH} {what} (PyIceberg: {their_failures} failures)", [our_time], [their_time])


def check_all_there(directory: str, snapshots: int) -> None:
    """Every tag and every append is there, on both sides."""
    tags = {f"w{number}.{n}" for number in range(PROCESSES) for n in range(EACH)}
    with our_lake(directory) as lake:
        table = lake.load_table(NAME)
        assert tags <= set(table.refs)
        assert len(table.metadata.snapshots) == snapshots + PROCESSES * EACH
        for number in range(PROCESSES):
            rows = table.scan(ref=f"b{number}").to_arrow().num_rows
            assert rows == (snapshots + EACH) * ROWS.num_rows, rows
    peer = their_catalog(directory).load_table(NAME)
    assert tags <= set(peer.metadata.refs)
    assert len(peer.metadata.snapshots) == snapshots + PROCESSES * EACH


def main(snapshots: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
            lake.create_namespace("db")
            location = written_table(lake, snapshots)
        with our_lake(directory) as lake:
            lake.create_namespace("db")
            lake.register_table(NAME, location)
        catalog = their_catalog(directory)
        catalog.create_namespace("db")
        catalog.register_table(NAME, location)
        bench_one_tag(directory, snapshots)
        bench_at_once(directory, "tags", our_tags, their_tags)
        bench_at_once(directory, "appends to own branches", our_appends, their_appends)
        check_all_there(directory, snapshots)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("snapshots", type=int, nargs="?", default=SNAPSHOTS, help=f"of the table ({SNAPSHOTS})")
    main(options.parse_args().snapshots)
