"""Small commits while the server plans scans of a large table: in worker processes, and in its own threads."""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import bergline
from made_up import table_of
from rest_load import Connection
from results import Scaled

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.servers.bergline_server import BerglineServer

TABLES = "/v1/namespaces/db/tables"
PLANNERS = 4
PEER = "plans in threads"


class Sides(NamedTuple):
    """What was measured on one server, in seconds."""

    alone: list[float]
    beside: list[float]
    plans: float


def cases(small: bool) -> Iterator[Scaled]:
    """Commits beside plans, and the plans themselves."""
    files, manifests = (4_000, 4) if small else (200_000, 40)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        with BerglineServer(home) as server, bergline.connect(server.uri) as lake:  # makes the catalog
            lake.create_namespace("db")
            table_of(lake, "db.large", manifests, files)
            table_of(lake, "db.small", 1, 1)
        sides = {}
        for processes in ("1", "0"):
            with BerglineServer(home, "--planning-processes", processes) as server:
                sides[processes] = asyncio.run(measured(server.uri, files))
    ours, theirs = sides["1"], sides["0"]
    what = f"{PLANNERS} scans of {files:,} files are planned"
    for share in (50, 99):
        found = (1000 * at(side.beside, share) for side in (ours, theirs))
        yield Scaled(f"p{share} of a small commit while {what}", "ms", *found, PEER)
    yield Scaled("p99 of a small commit beside nothing", "ms", 1000 * at(ours.alone, 99))
    yield Scaled(f"until {what}", "s", ours.plans, theirs.plans, PEER)


async def measured(uri: str, files: int) -> Sides:
    """Commits alone, and until all plans are there."""
    await planned(uri, files)  # reads the manifests, and starts the worker
    alone = await commits(uri, asyncio.create_task(asyncio.sleep(5)))
    started = time.perf_counter()
    planning = asyncio.gather(*(planned(uri, files) for _ in range(PLANNERS)))
    beside = await commits(uri, planning)
    return Sides(alone, beside, time.perf_counter() - started)


async def planned(uri: str, files: int) -> None:
    """One plan, and all its tasks one after the other."""
    connection = Connection(uri)
    await connection.open()
    found, waiting = 0, [("plan", {})]
    while waiting:
        path, body = waiting.pop()
        answer = await connection.ask("POST", f"{TABLES}/large/{path}", body)
        assert answer.status == 200, answer.body[:500]
        found += answer.body.count(b'"data-file"')
        _, _, tasks = answer.body.rpartition(b'"plan-tasks":')
        if tasks.startswith(b"["):
            waiting += [("tasks", {"plan-task": task}) for task in json.loads(tasks.rstrip(b"}"))]
    connection.close()
    assert found == files, found


async def commits(uri: str, until: asyncio.Future) -> list[float]:
    """How long each commit took, one after the other."""
    connection = Connection(uri)
    await connection.open()
    times: list[float] = []
    while not until.done():
        updates = [{"action": "set-properties", "updates": {"n": str(len(times))}}]
        started = time.perf_counter()
        answer = await connection.ask("POST", f"{TABLES}/small", {"requirements": [], "updates": updates})
        times.append(time.perf_counter() - started)
        assert answer.status == 200, answer.body[:500]
        await asyncio.sleep(0.01)
    connection.close()
    await until
    return times


def at(times: list[float], share: int) -> float:
    """What so many of a hundred stay below."""
    return sorted(times)[min(len(times) - 1, len(times) * share // 100)]
