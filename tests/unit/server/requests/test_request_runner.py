"""Handlers in threads: what takes too long, and what keeps nobody else waiting."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from bergline.server.context.context import ServerContext
from support.fixtures.concurrency import LONG_S
from support.servers.asgi_client import AsgiClient


class Held:
    """A call that has begun when `begun` is set, and ends when `over` is."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer
        self.begun = threading.Semaphore(0)
        self.over = threading.Event()

    def __call__(self, *_: object) -> Any:
        self.begun.release()
        assert self.over.wait(LONG_S)
        return self._answer()

    async def has_begun(self) -> None:
        """Wait for one call more."""
        assert await asyncio.to_thread(self.begun.acquire, timeout=LONG_S)


@pytest.fixture
def held(context: ServerContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Lists of namespaces take as long as a test wants."""
    call = Held(list)
    monkeypatch.setattr(context.catalog, "list_namespaces", call)
    yield call
    call.over.set()


def test_answer_that_takes_too_long_is_given_up(
    client: AsgiClient, context: ServerContext, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.settings = msgspec.structs.replace(context.settings, request_timeout_s=0.2)
    monkeypatch.setattr(context.catalog, "create_namespace", held)
    assert client("GET", "/v1/namespaces").error == (503, "ServiceUnavailableException")
    monkeypatch.setattr(context.catalog, "load_table", held)
    assert client("POST", "/v1/namespaces", {"namespace": ["a"]}).error == (504, "CommitStateUnknownException")
    for path, body in (("plan", {}), ("tasks", {"plan-task": "x"})):  # which change nothing
        response = client("POST", f"/v1/namespaces/db/tables/t/{path}", body)
        assert response.error == (503, "ServiceUnavailableException")
    held.over.set()


def test_health_is_told_while_every_thread_waits(context: ServerContext, held: Held) -> None:
    context.settings = msgspec.structs.replace(context.settings, threads=1)

    async def meanwhile(client: AsgiClient) -> list[int]:
        waiting = asyncio.create_task(client.send("GET", "/v1/namespaces", []))
        try:
            await held.has_begun()
            response = await asyncio.wait_for(client.send("GET", "/health", []), 60)
        finally:
            held.over.set()
        return [response.status, (await waiting).status]

    with AsgiClient(context) as client:
        assert asyncio.run(meanwhile(client)) == [200, 200]


@pytest.mark.parametrize(("what", "body"), [("plan", b"{}"), ("tasks", b'{"plan-task": "x"}')])
def test_slow_plans_are_in_nobodys_way(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch, what: str, body: bytes
) -> None:
    held = Held(lambda: 1 / 0)
    monkeypatch.setattr(context.catalog, "load_table", held)

    async def meanwhile(client: AsgiClient) -> list[int]:
        plans = [
            asyncio.create_task(client.send("POST", f"/v1/namespaces/db/tables/orders/{what}", [body]))
            for _ in range(20)
        ]
        try:
            await held.has_begun()
            response = await asyncio.wait_for(client.send("GET", "/v1/namespaces", []), 60)
        finally:
            held.over.set()
        return [response.status, *{(await plan).status for plan in plans}]

    with AsgiClient(context) as client:
        assert asyncio.run(meanwhile(client)) == [200, 500]


def test_change_that_waited_too_long_for_a_thread_does_not_begin(
    context: ServerContext, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.settings = msgspec.structs.replace(context.settings, threads=1)
    monkeypatch.setattr(context.catalog, "drop_namespace", held)

    async def behind(client: AsgiClient) -> list[int]:
        first = asyncio.create_task(client.send("DELETE", "/v1/namespaces/other", [b""]))
        try:
            await held.has_begun()
            context.settings = msgspec.structs.replace(context.settings, request_timeout_s=0.05)
            response = await client.send("POST", "/v1/namespaces", [b'{"namespace": ["db"]}'])
        finally:
            held.over.set()
        return [response.status, (await first).status]

    with AsgiClient(context) as client:
        assert asyncio.run(behind(client)) == [503, 204]  # not 504: it is certain that it never began
    assert not context.catalog.namespace_exists(("db",))
