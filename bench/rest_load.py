"""Many clients of a REST catalog at once, in one process: how many answers came, and how long each took."""

import asyncio
import json
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_NUMBER = re.compile(rb'"last-sequence-number":(\d+)')
_HEAD = re.compile(rb'"current-snapshot-id":(-?\d+)')
_MOST_ATTEMPTS = 10_000
_RACED = b"greater than last sequence number"
"""What the reference server says, with 400, of a commit that was overtaken while it checked it."""


class Load(NamedTuple):
    """What came of a run: answers a second, and how long half and nearly all of them took, in seconds."""

    rate: float
    half: float
    most: float


class Answer(NamedTuple):
    """A status, the head and the body."""

    status: int
    head: bytes
    body: bytes


class Connection:
    """One kept-alive connection to a server."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        self._host, self._port = parts.hostname, parts.port

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 24)

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    async def ask(self, method: str, path: str, body: Any = None, headers: str = "") -> Answer:
        """The answer to one request."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n"
        kind = "Content-Type: application/json\r\n" if data else ""
        return await self.send(f"{head}{kind}{headers}\r\n".encode() + data)

    async def send(self, request: bytes) -> Answer:
        """The answer to a request that is written out already."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        if length := _LENGTH.search(head):
            body = await self._reader.readexactly(int(length[1]))
        elif _CHUNKED.search(head):
            body = await self._chunks()
        else:
            body = b""
        return Answer(status, head, body)

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readexactly(2)
        return b"".join(parts)


def run_clients(uri: str, clients: int, client: Callable[[Connection, int, list[float]], Awaitable[None]]) -> Load:
    """Each client on a connection of its own, all at once; each adds the times of its answers to a list."""

    async def run() -> Load:
        connections = [Connection(uri) for _ in range(clients)]
        for connection in connections:
            await connection.open()
        times: list[float] = []
        started = time.perf_counter()
        await asyncio.gather(*(client(connection, n, times) for n, connection in enumerate(connections)))
        took = time.perf_counter() - started
        for connection in connections:
            connection.close()
        times.sort()
        return Load(len(times) / took, times[len(times) // 2], times[len(times) * 99 // 100])

    return uvloop.run(run())


def loads(path: str, seconds: float, status: int, headers: str = "") -> Callable[..., Awaitable[None]]:
    """Clients that ask for the same thing again and again for some time."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()

    async def client(connection: Connection, _: int, times: list[float]) -> None:
        end = time.perf_counter() + seconds
        while (started := time.perf_counter()) < end:
            answer = await connection.send(request)
            if answer.status != status:
                raise RuntimeError(f"expected {status}, found {answer.status}: {answer.body[:500]!r}")
            times.append(time.perf_counter() - started)

    return client


def commits(
    path_of: Callable[[int], str], branch_of: Callable[[int], str], each: int
) -> Callable[..., Awaitable[None]]:
    """Clients that add snapshots to a branch of a table; who loses looks again and tries again, within one time."""

    async def client(connection: Connection, number: int, times: list[float]) -> None:
        path, branch = path_of(number), branch_of(number)
        loaded = await connection.ask("GET", path)
        for _ in range(each):
            started = time.perf_counter()
            loaded = await _commit(connection, path, branch, loaded)
            times.append(time.perf_counter() - started)

    return client


async def _commit(connection: Connection, path: str, branch: str, loaded: Answer) -> Answer:
    new = random.getrandbits(62)
    for _ in range(_MOST_ATTEMPTS):
        answer = await connection.ask("POST", path, _snapshot(loaded.body, branch, new))
        if answer.status == 200:
            return answer
        if answer.status != 409 and _RACED not in answer.body:
            raise RuntimeError(f"expected 200 or 409, found {answer.status}: {answer.body[:500]!r}")
        loaded = await connection.ask("GET", path)
    raise RuntimeError(f"no commit in {_MOST_ATTEMPTS} attempts")


def _snapshot(table: bytes, branch: str, new: int) -> dict[str, Any]:
    """The commit of one append, as engines send it: the manifest list is theirs, the server does not read it."""
    parent = _head_of(table, branch)
    snapshot = {
        "snapshot-id": new,
        "sequence-number": _last_number(table) + 1,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "manifest-list": f"file:/nowhere/snap-{new}.avro",
        "schema-id": 0,
        "summary": {"operation": "append", "added-records": "1", "total-records": "1"},
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": parent}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": new},
        ],
    }


def _last_number(table: bytes) -> int:
    found = _NUMBER.search(table)
    assert found
    return int(found[1])


def _head_of(table: bytes, branch: str) -> int | None:
    """The branch's snapshot; the whole document is read only for branches other than main."""
    if branch == "main":
        found = _HEAD.search(table)
        return int(found[1]) if found and int(found[1]) >= 0 else None
    ref = json.loads(table)["metadata"]["refs"].get(branch)
    return ref and int(ref["snapshot-id"])
