"""The model of tools/scale_simulation.py beside the real server: appends to one table that must be put on another head.

Latencies of this machine's disk and of SQLite are measured, and so is the processor time of a commit, by one client;
the model then says what more clients get.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

import bergline
from bergline.catalog.rest.protocol.bodies import CommitTableRequest
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.updates import Update
from bergline.table.changes.append import Append
from bergline.table.commits.operation import CommitStamp
from bergline.table.writes import write_data_files
from rest_load import Connection, Load, run_clients
from results import Scaled

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support" / "servers"))
from bergline_server import BerglineServer
from scale_simulation import Lake, Latency, Simulation, Store

SCHEMA = pa.schema([("id", pa.int64())])
MAY_MOVE = "Content-Type: application/json\r\nbergline-may-move: true\r\n"


def cases(small: bool) -> Iterator[Scaled]:
    """Commits a second by 1, 8 and 32 clients: of the server, and of the model."""
    each = 40 if small else 400
    with tempfile.TemporaryDirectory() as temporary, BerglineServer(Path(temporary)) as server:
        directory = Path(temporary)
        store = measured_store(directory)
        alone = appends(server.uri, 1, each)
        lake = Lake("group", 1, store, snapshots=each // 2, gzip=False, is_prepared=True, cpu_ms=0.0, seconds=20.0)
        cpu_s = 1 / alone.rate - 1 / Simulation(lake).run().rate
        yield Scaled("processor time of a commit, by which the model is set", "ms", cpu_s * 1000)
        for clients in (8, 32):
            real = appends(server.uri, clients, each)
            model = Lake(
                "group", clients, store, snapshots=each // 2, gzip=False, is_prepared=True, cpu_ms=cpu_s * 1000
            )
            said = Simulation(model).run()
            yield Scaled(f"appends to one table, {clients} clients", "/s", real.rate, said.rate, "the model")
            yield Scaled(f"the same, p50, {clients} clients", "ms", real.half * 1000, said.at(0.5) * 1000, "the model")
            yield Scaled(f"the same, p99, {clients} clients", "ms", real.most * 1000, said.at(0.99) * 1000, "the model")


def appends(uri: str, clients: int, commits: int) -> Load:
    """Appends to a new table, all prepared on its first state."""
    path = f"/v1/namespaces/db/tables/t{clients}"
    with bergline.connect(uri) as lake:
        if not lake.namespace_exists("db"):
            lake.create_namespace("db")
        table = lake.create_table(f"db.t{clients}", SCHEMA)
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


if __name__ == "__main__":
    for one in cases("--small" in sys.argv):
        print(one)
