"""Many clients of a REST catalog at once, in one process: how many answers came, and how long each took."""

import asyncio
import json
import random
import re
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import uvloop

from bergline.format.manifest.avro import render_manifest, render_manifest_list
from bergline.format.manifest.inheritance import added_entry, assign_numbers
from bergline.format.manifest.manifest import DataFile, ManifestContent
from bergline.format.manifest.summary import describe_manifest
from bergline.format.metadata.json import parse_metadata

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_NUMBER = re.compile(rb'"last-sequence-number":(\d+)')
_HEAD = re.compile(rb'"current-snapshot-id":(-?\d+)')
_MOST_ATTEMPTS = 10_000
_RACED = b"greater than last sequence number"
"""What the reference server says, with 400, of a commit that was overtaken while it checked it."""


class Load(NamedTuple):
    """What came of a run: answers a second, how long half and nearly all of them took, in seconds, and conflicts."""

    rate: float
    half: float
    most: float
    conflicts: int = 0


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
        self.conflicts = 0
        """Commits that were answered with a conflict."""

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
        conflicts = sum(connection.conflicts for connection in connections)
        return Load(len(times) / took, times[len(times) // 2], times[len(times) * 99 // 100], conflicts)

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
        writer = await Appender.open(connection, path_of(number), branch_of(number))
        for _ in range(each):
            started = time.perf_counter()
            await writer.append()
            times.append(time.perf_counter() - started)

    return client


def beside(hot: str, own: str, each: int) -> Callable[..., Awaitable[None]]:
    """One client that commits to a table of its own, and is timed, while all others commit to one hot table."""
    done = asyncio.Event()

    async def client(connection: Connection, number: int, times: list[float]) -> None:
        writer = await Appender.open(connection, own if number == 0 else hot, "main")
        if number:
            while not done.is_set():
                await writer.append()
            return
        for _ in range(each):
            started = time.perf_counter()
            await writer.append()
            times.append(time.perf_counter() - started)
        done.set()

    return client


def property_changes(path: str, each: int) -> Callable[..., Awaitable[None]]:
    """Clients that each set a property of one table."""

    async def client(connection: Connection, number: int, times: list[float]) -> None:
        for turn in range(each):
            update = {"action": "set-properties", "updates": {f"client-{number}": str(turn)}}
            started = time.perf_counter()
            while (
                answer := await connection.ask("POST", path, {"requirements": [], "updates": [update]})
            ).status == 409:
                connection.conflicts += 1
            if answer.status != 200:
                raise RuntimeError(f"expected 200 or 409, found {answer.status}: {answer.body[:500]!r}")
            times.append(time.perf_counter() - started)

    return client


class Appender:
    """Appends to a branch of a table as engines do: a manifest and a manifest list of its own for each snapshot.

    It says that its appends may move, as bergline's client does; other servers than ours do not hear it.
    The data file is made up; the manifest has the same bytes each time, under another name.
    """

    def __init__(self, connection: Connection, path: str, branch: str, loaded: Answer) -> None:
        self._connection, self._path, self._branch, self._loaded = connection, path, branch, loaded
        metadata = parse_metadata(json.dumps(json.loads(loaded.body)["metadata"]).encode(), path)
        self._directory = f"{metadata.location.removesuffix('/')}/metadata"
        self._on_disk = Path(urlsplit(self._directory).path)
        self._on_disk.mkdir(parents=True, exist_ok=True)
        self._schema, self._spec = metadata.schema, metadata.spec
        self._entries = [added_entry(DataFile(f"{metadata.location}/data/made-up.parquet", "PARQUET", (), 1, 1000))]
        self._manifest = render_manifest(self._entries, self._schema, self._spec)

    @classmethod
    async def open(cls, connection: Connection, path: str, branch: str) -> Self:
        """Load the table."""
        return cls(connection, path, branch, await connection.ask("GET", path))

    async def append(self) -> None:
        """Commit one snapshot, however often it takes."""
        new, name = random.getrandbits(62), f"{uuid.uuid4()}-m0.avro"
        (self._on_disk / name).write_bytes(self._manifest)
        for attempt in range(_MOST_ATTEMPTS):
            body = self._snapshot(new, name, attempt)
            answer = await self._connection.ask("POST", self._path, body, "Bergline-May-Move: true\r\n")
            if answer.status == 200:
                self._loaded = answer
                return
            if answer.status != 409 and _RACED not in answer.body:
                raise RuntimeError(f"expected 200 or 409, found {answer.status}: {answer.body[:500]!r}")
            self._connection.conflicts += 1
            self._loaded = await self._connection.ask("GET", self._path)
        raise RuntimeError(f"no commit in {_MOST_ATTEMPTS} attempts")

    def _snapshot(self, new: int, name: str, attempt: int) -> dict[str, Any]:
        table, branch = self._loaded.body, self._branch
        parent, number = _head_of(table, branch), _last_number(table) + 1
        snapshot = {
            "snapshot-id": new,
            "sequence-number": number,
            "timestamp-ms": time.time_ns() // 1_000_000,
            "manifest-list": self._write_list(new, parent, number, name, attempt),
            "schema-id": 0,
            "summary": {"operation": "append", "added-data-files": "1", "added-records": "1", "total-records": "1"},
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

    def _write_list(self, new: int, parent: int | None, number: int, manifest: str, attempt: int) -> str:
        """The list of the new manifest alone: what the parent has costs the client the same on every server."""
        listed = describe_manifest(
            f"{self._directory}/{manifest}",
            len(self._manifest),
            self._entries,
            spec=self._spec,
            schema=self._schema,
            content=ManifestContent.DATA,
            snapshot_id=new,
        )
        name = f"snap-{new}-{attempt}-{uuid.uuid4()}.avro"
        data = render_manifest_list(assign_numbers([listed], new, number), new, parent, number)
        (self._on_disk / name).write_bytes(data)
        return f"{self._directory}/{name}"


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
