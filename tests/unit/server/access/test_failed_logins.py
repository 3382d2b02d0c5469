"""Tokens that are refused slow down nobody but who sends them."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bergline.catalog.sql.tokens.tokens import SqlTokens
from bergline.server.access import failed_logins
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.failed_logins import FailedLogins
from bergline.server.app import Application
from bergline.server.context.context import ServerContext
from bergline.server.http.errors import RequestRefused
from support.servers.asgi_client import TOKEN, AsgiClient, AsgiResponse, bearer
from support.servers.oidc_issuer import OidcIssuerServer

HERE, THERE = "10.0.0.1", "10.0.0.2"
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Callers:
    """Requests from several addresses."""

    def __init__(self, context: ServerContext) -> None:
        self.application = Application(context)
        self._address = HERE
        self._client = AsgiClient(context, self)  # type: ignore[arg-type]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.application({**scope, "client": (self._address, 40_000)}, receive, send)

    def get(self, token: str, address: str = HERE, path: str = "/v1/config") -> AsgiResponse:
        self._address = address
        return self._client("GET", path, headers={**bearer(token), "host": "localhost:1"})

    def exchange(self, secret: str, address: str = HERE) -> AsgiResponse:
        self._address = address
        form = f"grant_type=client_credentials&client_secret={secret}".encode()
        return self._client("POST", "/v1/oauth/tokens", form, headers=FORM)

    async def send(self, token: str) -> AsgiResponse:
        return await self._client.send("GET", "/v1/config", [b""], headers=bearer(token))


def limited(context: ServerContext, clock: Clock, most: int = 3, **more: Any) -> None:
    """A server with tokens, and a clock for what it knows of them."""
    context.authenticator = Authenticator(context.records, clock, max_failed_logins=most, **more)
    context.authenticator.failures = FailedLogins(most, clock)


@pytest.fixture
def callers(guarded: ServerContext, clock: Clock) -> Iterator[Callers]:
    clock.now = time.time()
    limited(guarded, clock)
    made = Callers(guarded)
    yield made
    made.application.close()


def wait_of(failures: FailedLogins, address: str) -> int:
    """For how long an address is told to wait; 0 if it is not."""
    try:
        failures.check(address)
    except RequestRefused as refusal:
        return int(refusal.response.headers["retry-after"])
    return 0


def test_address_waits_after_so_many_failures_and_no_longer_than_it_must(clock: Clock) -> None:
    failures = FailedLogins(3, clock)
    for _ in range(3):
        assert wait_of(failures, HERE) == 0
        failures.note(HERE, None)
    assert (wait_of(failures, HERE), wait_of(failures, THERE)) == (20, 0)
    clock.now += 15
    assert wait_of(failures, HERE) == 5
    clock.now += 5
    assert wait_of(failures, HERE) == 0
    failures.note(HERE, None)
    assert wait_of(failures, HERE) == 20
    clock.now += 3600
    for _ in range(3):
        failures.note(HERE, None)
    assert wait_of(failures, HERE) == 20  # an hour without failures allows no more of them at once
    assert (failures.failed, failures.refused) == (7, 4)


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "", True),
        ("a name", "another", False),
    ],
)
def test_addresses_of_one_network_count_together(address: str, other: str, *, same: bool) -> None:
    failures = FailedLogins(1)
    failures.note(address, None)
    assert (wait_of(failures, other) > 0) is same


def test_no_more_sources_are_kept_than_fit(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(failed_logins, "_MAX_SOURCES", 10)
    failures = FailedLogins(1, clock)
    for number in range(100):
        failures.note(f"10.0.0.{number}", None)
    assert [n for n in range(100) if wait_of(failures, f"10.0.0.{n}")] == list(range(90, 100))


def test_limit_may_be_off() -> None:
    failures = FailedLogins(0)
    for _ in range(1000):
        failures.note(HERE, "ann")
    assert wait_of(failures, HERE) == 0


def test_address_that_guesses_is_told_to_wait_and_known_tokens_are_not(callers: Callers, clock: Clock) -> None:
    assert callers.get(TOKEN).status == 200
    for _ in range(3):
        assert callers.get("bl_wrong").error == (401, "NotAuthorizedException")
    refused = callers.get("bl_wrong")
    assert refused.error == (429, "TooManyRequestsException")
    assert 0 < int(refused.headers["retry-after"]) <= 20
    assert "try again in" in refused.message
    for _ in range(3):  # also after it has to be looked at again
        assert callers.get(TOKEN).status == 200
        clock.now += 6
    callers.application.context.records.tokens.create("new", "bl_new", 1, None)
    for _ in range(3):
        callers.get("bl_wrong")
    assert callers.get("bl_new").status == 429
    assert callers.get("bl_new", THERE).status == callers.get("bl_new").status == 200
    text = callers.get(TOKEN, path="/metrics").body.decode()
    assert "\nbergline_failed_logins_total 3\n" in text
    assert "\nbergline_limited_logins_total 5\n" in text


def test_token_that_was_known_counts_once_it_is_revoked(callers: Callers, clock: Clock) -> None:
    assert callers.get(TOKEN).status == 200
    callers.application.context.records.tokens.revoke("ann")
    clock.now += 6
    assert [callers.get(TOKEN).status for _ in range(4)] == [401, 401, 401, 429]


def test_request_without_a_token_is_no_attempt(callers: Callers, guarded: ServerContext) -> None:
    with AsgiClient(guarded) as client:
        assert {client("GET", "/v1/config").status for _ in range(10)} == {401}
    assert guarded.authenticator.failures.failed == 0


def test_token_endpoint_and_console_count_too(callers: Callers) -> None:
    assert callers.exchange(TOKEN).status == 200
    assert [callers.exchange("bl_wrong").status for _ in range(4)] == [401, 401, 401, 429]
    assert callers.exchange(TOKEN).status == 200
    assert callers.get("bl_wrong").status == 429
    page = callers.get("bl_wrong", path="/lake.json")
    assert (page.status, "try again in" in page.json["error"]["message"]) == (503, True)
    assert [callers.get("bl_wrong", THERE, "/lake.json").status for _ in range(4)] == [401, 401, 401, 503]
    assert callers.get(TOKEN, path="/lake.json").status == 200


def test_expired_token_on_many_machines_is_told_to_wait(callers: Callers) -> None:
    statuses = [callers.get("bl_old", f"10.0.1.{number}").status for number in range(5)]
    assert statuses == [419, 419, 419, 429, 429]


def test_forged_tokens_in_a_name_are_told_to_wait_and_its_own_are_not(
    guarded: ServerContext, issuer: OidcIssuerServer, clock: Clock
) -> None:
    clock.now = time.time()
    limited(guarded, clock, issuers=[issuer.settings()])
    callers = Callers(guarded)
    forged = issuer.token(number=2)
    statuses = [callers.get(forged, f"10.0.1.{number}").status for number in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert callers.get(issuer.token(), "10.0.2.1").status == 200
    assert callers.get(issuer.token(number=2, sub="bob"), "10.0.2.2").status == 401
    callers.application.close()


def test_tokens_that_take_long_to_refuse_keep_nobody_waiting(
    guarded: ServerContext, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.now = time.time()
    limited(guarded, clock, most=0)
    callers, is_held, find = Callers(guarded), threading.Event(), SqlTokens.find

    def held(tokens: SqlTokens, text: str) -> Any:
        if text == "bl_wrong":
            is_held.wait(60)
        return find(tokens, text)

    monkeypatch.setattr(SqlTokens, "find", held)
    assert callers.get(TOKEN).status == 200
    clock.now += 6

    async def flood() -> list[int]:
        wrong = [asyncio.create_task(callers.send("bl_wrong")) for _ in range(150)]
        await asyncio.sleep(0.1)
        refused = [task.result().status for task in wrong if task.done()]
        assert (await callers.send(TOKEN)).status == 200  # is looked at again, and answered
        assert sum(task.done() for task in wrong) == len(refused)
        is_held.set()
        assert {(await task).status for task in wrong} == {401, 503}
        return refused

    assert asyncio.run(flood()) == [503] * 46  # 4 are looked at, and 100 wait
    callers.application.close()
