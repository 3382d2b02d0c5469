"""Requests that are none, and pages for those who run the server."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from asgi_client import AsgiClient
from concurrency import LONG_S

from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, ENDPOINTS
from bergline.server.handlers.context import ServerContext
from bergline.server.opening import open_server


def test_config_lists_every_endpoint(ask: AsgiClient) -> None:
    config = ask("GET", "/v1/config").json
    assert config["endpoints"] == [str(e) for e in ENDPOINTS if e not in ALWAYS_THERE]
    assert config["defaults"] == config["overrides"] == {}


def test_config_knows_its_warehouse_alone(ask: AsgiClient, context: ServerContext) -> None:
    for warehouse in ("lake", "", context.settings.warehouse or ""):
        assert ask("GET", "/v1/config", query={"warehouse": warehouse}).status == 200
    assert ask("GET", "/v1/config", query={"warehouse": "other"}).error == (404, "NoSuchWarehouseException")


def test_advertised_separator_is_understood_beside_the_usual_one(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/catalog.db", separator="%2E", properties={"s3.region": "x"})
    with AsgiClient(context) as ask:
        config = ask("GET", "/v1/config").json
        assert config["overrides"] == {"namespace-separator": "%2E"}
        assert config["defaults"] == {"s3.region": "x"}
        ask.namespace("a", "b")
        for path in ("a%1Fb", "a%2Eb", "a.b"):
            assert ask("GET", f"/v1/namespaces/{path}").json["namespace"] == ["a", "b"]
    context.catalog.close()


def test_secrets_do_not_reach_clients(tmp_path: Path) -> None:
    secrets = {"s3.access-key-id": "me", "s3.secret-access-key": "hush", "s3.session-token": "t"}
    context = open_server(f"sqlite:///{tmp_path}/catalog.db", properties=secrets)
    with AsgiClient(context) as ask:
        assert ask("GET", "/v1/config").json["defaults"] == {}
    context.catalog.close()


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v2/config", "//v1/config", "/v1/namespaces/", "/v1/%63"])
def test_unknown_paths_are_not_found(ask: AsgiClient, path: str) -> None:
    assert ask("GET", path).status in {404, 400}


def test_wrong_methods_are_named(ask: AsgiClient) -> None:
    told = ask("PUT", "/v1/namespaces")
    assert told.status == 405
    assert told.headers["allow"] == "GET, POST"


@pytest.mark.parametrize("segment", ["%FF", "%00", "", "a%1F%1Fb", "%1F"])
def test_names_that_nothing_can_have_are_refused(ask: AsgiClient, segment: str) -> None:
    assert ask("GET", f"/v1/namespaces/{segment}").status == 400


def test_body_may_come_in_parts_and_not_be_too_large(context: ServerContext) -> None:
    context.settings = msgspec.structs.replace(context.settings, max_body_bytes=100)
    with AsgiClient(context) as ask:
        parts = [b'{"namespace"', b': ["db"]}']
        assert asyncio.run(ask.send("POST", "/v1/namespaces", parts)).status == 200
        assert asyncio.run(ask.send("POST", "/v1/namespaces", [b" " * 60] * 2)).status == 413
        assert ask("POST", "/v1/namespaces", b"{}", headers={"content-length": "101"}).status == 413


def test_half_sent_request_changes_nothing(ask: AsgiClient) -> None:
    assert asyncio.run(ask.send("POST", "/v1/namespaces", [])).status == 400
    assert ask("GET", "/v1/namespaces").json["namespaces"] == []


def test_failure_of_the_server_itself_is_an_answer(
    ask: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(context.catalog, "list_namespaces", lambda _: 1 / 0)
    assert ask("GET", "/v1/namespaces").error == (500, "InternalServerError")
    assert "ZeroDivisionError" in caplog.text


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
    ask: AsgiClient, context: ServerContext, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.settings = msgspec.structs.replace(context.settings, request_timeout_s=0.2)
    monkeypatch.setattr(context.catalog, "create_namespace", held)
    assert ask("GET", "/v1/namespaces").error == (503, "ServiceUnavailableException")
    monkeypatch.setattr(context.catalog, "load_table", held)
    assert ask("POST", "/v1/namespaces", {"namespace": ["a"]}).error == (504, "CommitStateUnknownException")
    for path, body in (("plan", {}), ("tasks", {"plan-task": "x"})):  # which change nothing
        told = ask("POST", f"/v1/namespaces/db/tables/t/{path}", body)
        assert told.error == (503, "ServiceUnavailableException")
    held.over.set()


def test_whoever_shows_no_token_sends_no_large_body(ask: AsgiClient) -> None:
    form = b"grant_type=client_credentials&client_secret=x&scope=catalog"
    assert ask("POST", "/v1/oauth/tokens", form).status == 200
    assert ask("POST", "/v1/oauth/tokens", form + b"x" * 70_000).status == 413


def test_pages_of_the_server_are_only_read(ask: AsgiClient) -> None:
    for path in ("/health", "/ready", "/metrics", "/openapi.json"):
        assert ask("HEAD", path).status == 200
        told = ask("DELETE", path)
        assert told.error == (405, "UnsupportedOperationException")
        assert told.headers["allow"] == "GET, HEAD"


def test_health_is_told_while_every_thread_waits(context: ServerContext, held: Held) -> None:
    context.settings = msgspec.structs.replace(context.settings, threads=1)

    async def meanwhile(ask: AsgiClient) -> list[int]:
        waiting = asyncio.create_task(ask.send("GET", "/v1/namespaces", []))
        try:
            await held.has_begun()
            told = await asyncio.wait_for(ask.send("GET", "/health", []), 60)
        finally:
            held.over.set()
        return [told.status, (await waiting).status]

    with AsgiClient(context) as ask:
        assert asyncio.run(meanwhile(ask)) == [200, 200]


@pytest.mark.parametrize(("what", "body"), [("plan", b"{}"), ("tasks", b'{"plan-task": "x"}')])
def test_slow_plans_are_in_nobodys_way(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch, what: str, body: bytes
) -> None:
    held = Held(lambda: 1 / 0)
    monkeypatch.setattr(context.catalog, "load_table", held)

    async def meanwhile(ask: AsgiClient) -> list[int]:
        plans = [
            asyncio.create_task(ask.send("POST", f"/v1/namespaces/db/tables/orders/{what}", [body])) for _ in range(20)
        ]
        try:
            await held.has_begun()
            told = await asyncio.wait_for(ask.send("GET", "/v1/namespaces", []), 60)
        finally:
            held.over.set()
        return [told.status, *{(await plan).status for plan in plans}]

    with AsgiClient(context) as ask:
        assert asyncio.run(meanwhile(ask)) == [200, 500]


def test_change_that_waited_too_long_for_a_thread_does_not_begin(
    context: ServerContext, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.settings = msgspec.structs.replace(context.settings, threads=1)
    monkeypatch.setattr(context.catalog, "drop_namespace", held)

    async def behind(ask: AsgiClient) -> list[int]:
        first = asyncio.create_task(ask.send("DELETE", "/v1/namespaces/other", [b""]))
        try:
            await held.has_begun()
            context.settings = msgspec.structs.replace(context.settings, request_timeout_s=0.05)
            told = await ask.send("POST", "/v1/namespaces", [b'{"namespace": ["db"]}'])
        finally:
            held.over.set()
        return [told.status, (await first).status]

    with AsgiClient(context) as ask:
        assert asyncio.run(behind(ask)) == [503, 204]  # not 504: it is certain that it never began
    assert not context.catalog.namespace_exists(("db",))


def test_health_readiness_and_metrics(ask: AsgiClient, context: ServerContext) -> None:
    assert ask("GET", "/health").json == {"status": "ok"}
    assert ask("GET", "/ready").json == {"status": "ready"}
    ask("GET", "/v1/namespaces")
    text = ask("GET", "/metrics").body.decode()
    assert 'bergline_requests_total{operation="list_namespaces",status="200"} 1' in text
    assert 'bergline_request_seconds_count{operation="list_namespaces"} 1' in text
    context.catalog.close()
    assert ask("GET", "/ready").status == 400
    assert ask("GET", "/health").status == 200


def test_address_that_holds_v1_already_is_said_to(ask: AsgiClient) -> None:
    assert ask("GET", "/v1/v1/config").message.endswith("; the address that clients are given ends before /v1")
    assert ask("GET", "/v1/nothing").message == "no endpoint at /v1/nothing"
