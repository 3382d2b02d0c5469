"""The model of tools/scale_simulation.py beside the real server: appends to one table that must be put on another head.

Latencies of this machine's disk and of SQLite are measured, and processor times by 1 and by 64 clients; the model then
says what 8 and 32 clients get.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import bergline
from bergline.catalog.rest.protocol.bodies import CommitTableRequest
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.updates import Update
from bergline.table.commits.operation import CommitStamp
from bergline.table.operations.append import Append
from bergline.table.writes import write_data_files
from rest_load import Connection, Load, run_clients
from results import Scaled

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from scale_simulation import Lake, Latency, Simulation, Store

from support.servers.bergline_server import BerglineServer

SCHEMA = pa.schema([("id", pa.int64())])
AT_ONCE = 32
MOST = 64
MAY_MOVE = "Content-Type: application/json\r\nbergline-may-move: true\r\n"


def cases(small: bool) -> Iterator[Scaled]:
    """Commits by 1, 8, 32 and 64 clients: of the server, and of the model, which is set by the first and the last."""
    each, rounds = (64, 1) if small else (128, 3)
    with tempfile.TemporaryDirectory() as temporary, BerglineServer(Path(temporary)) as server:
        directory = Path(temporary)
        usual = Lake(
            "group",
            1,
            measured_store(directory),
            each // 2,
            gzip=False,
            at_once=AT_ONCE,
            is_prepared=True,
            seconds=20.0,
        )
        appends(server.uri, 1, 10, "warm")
        real: dict[int, Load] = {}
        for number in range(rounds):  # in turn, and the fastest of each: other work on the machine only slows down
            for clients in (1, 8, 32, MOST):
                load = appends(server.uri, clients, each, f"round{number}_")
                real[clients] = max(real.get(clients, load), load, key=lambda one: one.rate)
    own_ms, group_ms = fitted(usual, real[1].rate, real[MOST].rate)
    yield Scaled(f"processor time of a commit, by {MOST} clients", "ms", own_ms)
    yield Scaled(f"processor time of a group, by 1 and {MOST} clients", "ms", group_ms)
    for clients, load in real.items():
        said = Simulation(replace(usual, writers=clients, cpu_ms=own_ms, group_cpu_ms=group_ms)).run()
        yield Scaled(f"appends to one table, {clients} clients", "/s", load.rate, said.rate, "the model")
        yield Scaled(f"the same, p50, {clients} clients", "ms", load.half * 1000, said.at(0.5) * 1000, "the model")
        yield Scaled(f"the same, p99, {clients} clients", "ms", load.most * 1000, said.at(0.99) * 1000, "the model")


def fitted(usual: Lake, alone: float, by_most: float) -> tuple[float, float]:
    """Processor times of a commit and of a group, in milliseconds, with which the model gives both rates."""
    free = Simulation(replace(usual, cpu_ms=0.0, group_cpu_ms=0.0)).run().rate
    both_ms = max(1000 / alone - 1000 / free, 0.0)
    low, high = 0.0, both_ms
    for _ in range(12):
        own_ms = (low + high) / 2
        tried = replace(usual, writers=MOST, cpu_ms=own_ms, group_cpu_ms=both_ms - own_ms)
        if Simulation(tried).run().rate > by_most:
            low = own_ms
        else:
            high = own_ms
    return own_ms, both_ms - own_ms


def appends(uri: str, clients: int, commits: int, name: str = "t") -> Load:
    """Appends to a new table, all prepared on its first state."""
    path = f"/v1/namespaces/db/tables/{name}{clients}"
    with bergline.connect(uri) as lake:
        if not lake.namespace_exists("db"):
            lake.create_namespace("db")
        table = lake.create_table(f"db.{name}{clients}", SCHEMA)
        table.append(pa.table({"id": [0]}, schema=SCHEMA))
        bodies = [prepared(table, number) for number in range(commits)]

    async def client(connection: Connection, number: int, times: list[float]) -> None:
        for body in bodies[number::clients]:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{MAY_MOVE}\r\n"
            began = time.perf_counter()
            answer = await connection.send(head.encode() + body)
            times.append(time.perf_counter() - began)
            if answer.status != 200:
                raise RuntimeError(f"expected 200, found {answer.status}: {answer.body[:500]!r}")

    return run_clients(uri, clients, client)


def prepared(table: bergline.Table, number: int) -> bytes:
    """The request of one append, whose files are written."""
    files = write_data_files(table.io, table.metadata, pa.table({"id": [number]}, schema=SCHEMA))
    change = Append(table.io, files, fast=True).attempt(table.metadata, CommitStamp(1, time.time_ns() // 1_000_000))
    return encode_json(CommitTableRequest[Update](change.requirements, change.updates, table.name))


def measured_store(directory: Path) -> Store:
    """What this machine takes to write and to read a small file, and to move a pointer."""
    with bergline.connect(
        f"sqlite:///{directory}/measured.db", warehouse=str(directory / "measured"), create=True
    ) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA)
        io, data = table.io, os.urandom(2000)
        places = [f"{table.location}/put{number}" for number in range(100)]
        put = latency(lambda n: io.create(places[n], data), len(places))
        get = latency(lambda n: io.read(places[n]), len(places))
        store = lake.catalog.store
        names = [table.metadata_location, *places]
        swap = latency(lambda n: store.swap(table.name, names[n], names[n + 1]), len(places))
    return Store(put, get, swap, 500)


def latency(run: Callable[[int], object], times: int) -> Latency:
    """The distribution of so many calls."""
    found = []
    for number in range(times):
        began = time.perf_counter()
        run(number)
        found.append((time.perf_counter() - began) * 1000)
    found.sort()
    return Latency(statistics.median(found), max(found[int(times * 0.98)], statistics.median(found) * 1.01))
