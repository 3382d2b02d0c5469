"""A policy that is asked beside grants, over real HTTP."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bergline.errors import InvalidInputError, UnavailableError
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import parse_securable
from bergline.server.access import policy as policy_module
from bergline.server.access.policy import KEPT_S, Policy, PolicyQuestion
from bergline.server.credentials.vending import StaticVending
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient, bearer, set_branch, set_property, snapshot
from support.servers.granted_server import GrantedServer
from support.servers.policy_server import PolicyServer

ORDERS = "/v1/namespaces/db/tables/orders"
ALL = "list,read,write,create,drop,manage-refs,publish"
VENDED = {"x-iceberg-access-delegation": "vended-credentials"}
LOCAL = {"host": "localhost:8181"}


def question(name: str = "orders", ref: str | None = "main") -> PolicyQuestion:
    securable = parse_securable(f"table db.{name}").at(ref)
    return PolicyQuestion("corp:ann", frozenset({"corp:b", "corp:a"}), Privilege.WRITE, securable)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[PolicyServer]:
    with PolicyServer() as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def policy(server: PolicyServer, clock: Clock) -> Policy:
    return Policy(server.url, "lake", clock)


@pytest.fixture
def policed(granted: GrantedServer, policy: Policy) -> GrantedServer:
    """`ann` has everything by grants, `bob` nothing; the policy is asked too."""
    granted.grant(ALL, "catalog", "ann")
    granted.context.access.policy = policy
    return granted


class TestQuestions:
    """What is asked, and what counts as an answer."""

    def test_question_says_who_wants_to_do_what_on_what(self, policy: Policy, server: PolicyServer) -> None:
        assert policy.ask(question()).allow
        assert server.asked == [
            {
                "catalog": "lake",
                "principal": "corp:ann",
                "groups": ["corp:a", "corp:b"],
                "privilege": "write",
                "securable": {"kind": "table", "namespace": ["db"], "name": "orders", "ref": "main"},
            }
        ]

    @pytest.mark.parametrize(
        ("result", "allow", "reason"),
        [
            (True, True, None),
            (False, False, None),
            ({"allow": True}, True, None),
            ({"allow": False, "reason": "closed"}, False, "closed"),
            (None, False, "it has no decision on this"),
        ],
    )
    def test_answer_in_each_form(
        self, policy: Policy, server: PolicyServer, result: Any, allow: bool, reason: str | None
    ) -> None:
        server.decide = lambda _: result
        answer = policy.ask(question())
        assert (answer.allow, answer.reason) == (allow, reason)

    def test_undefined_decision_is_a_refusal(self, policy: Policy, server: PolicyServer) -> None:
        server.body = b"{}"
        assert not policy.ask(question()).allow

    @pytest.mark.parametrize(
        "body", [b"", b"true", b'{"result": 1}', b'{"result": "true"}', b'{"result": {}}', b"\xff", b"[" * 10_000]
    )
    def test_anything_else_is_no_answer(self, policy: Policy, server: PolicyServer, body: bytes) -> None:
        server.body = body
        with pytest.raises(UnavailableError, match="could not be asked, so nothing was done"):
            policy.ask(question())

    def test_error_long_answer_and_silence_are_no_answer(
        self, policy: Policy, server: PolicyServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.status = 500
        with pytest.raises(UnavailableError):
            policy.ask(question())
        server.status, server.body, clock.now = 200, b" " * 100_000, 10
        with pytest.raises(UnavailableError):
            policy.ask(question())
        server.body, server.delay_s = None, 0.5
        monkeypatch.setattr(policy_module, "_TIMEOUTS_S", (0.1, 0.1))
        with pytest.raises(UnavailableError):
            Policy(server.url, "lake").ask(question())
        server.stop()
        clock.now = 20
        with pytest.raises(UnavailableError):
            policy.ask(question())

    def test_after_no_answer_nobody_asks_for_a_second(self, policy: Policy, server: PolicyServer, clock: Clock) -> None:
        server.status = 500
        for _ in range(3):
            with pytest.raises(UnavailableError):
                policy.ask(question())
        assert len(server.asked) == 1
        server.status, clock.now = 200, 1.0
        assert policy.ask(question()).allow

    def test_answers_are_kept_for_a_moment(self, policy: Policy, server: PolicyServer, clock: Clock) -> None:
        assert policy.known(question()) is None
        policy.ask(question())
        server.decide = lambda _: False
        assert policy.ask(question()).allow
        assert policy.known(question()) is not None
        assert not policy.ask(question(ref="other")).allow
        clock.now = KEPT_S
        assert policy.known(question()) is None
        assert not policy.ask(question()).allow

    def test_so_many_answers_are_kept_and_no_more(
        self, policy: Policy, server: PolicyServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(policy_module, "_MAX_KEPT", 2)
        for name in ("a", "b", "c"):
            policy.ask(question(name))
        assert [policy.known(question(name)) is not None for name in ("a", "b", "c")] == [False, True, True]

    @pytest.mark.parametrize("url", ["http://policy.example/v1", "policy", "ftp://127.0.0.1/x", ""])
    def test_address_where_others_could_answer_is_refused(self, url: str) -> None:
        with pytest.raises(InvalidInputError, match="the policy"):
            Policy(url, "lake")


class TestServed:
    """Requests to a server with grants and a policy."""

    def test_policy_gives_nothing(self, policed: GrantedServer, server: PolicyServer) -> None:
        assert policed("ann", "GET", ORDERS).status == 200
        before = len(server.asked)
        assert policed("bob", "GET", ORDERS).status == 404
        assert policed.commit("bob", set_property("a", "1")).status == 404
        assert len(server.asked) == before  # what grants refuse is not asked about

    def test_policy_takes_away_with_its_reason(self, policed: GrantedServer, server: PolicyServer) -> None:
        server.decide = lambda asked: {"allow": asked["privilege"] != "write", "reason": "frozen\nuntil monday"}
        assert policed("ann", "GET", ORDERS).status == 200
        before = policed.context.catalog.pointer(parse_securable("table db.orders").table_name)
        for refused in (
            policed.commit("ann", set_property("a", "1")),
            policed.commit("ann", snapshot(1, 1), set_branch("main", 1)),
        ):
            assert refused.error == (403, "ForbiddenException")
            assert "does not let `ann` use the privilege `write` on table `db.orders`" in refused.message
            assert "frozen until monday" in refused.message
        assert policed.context.catalog.pointer(parse_securable("table db.orders").table_name) == before

    def test_commit_asks_about_each_ref(self, policed: GrantedServer, server: PolicyServer) -> None:
        server.decide = lambda asked: asked["securable"]["ref"] != "main"
        assert policed.commit("ann", snapshot(1, 1), set_branch("load", 1)).status == 200
        assert {("read", "db.orders", None), ("write", "db.orders", "load")} <= set(server.privileges())
        refused = policed.commit("ann", set_branch("main", 1))
        assert refused.status == 403
        assert "for ref `main`" in refused.message

    @pytest.mark.parametrize(
        ("method", "path", "body", "privilege"),
        [
            ("DELETE", ORDERS, None, "drop"),
            ("POST", "/v1/namespaces", {"namespace": ["new"]}, "create"),
            ("GET", "/v1/namespaces/db/tables", None, "list"),
            ("HEAD", ORDERS, None, "list"),
            ("POST", f"{ORDERS}/plan", {}, "read"),
            ("GET", f"{ORDERS}/credentials", None, "read"),
        ],
    )
    def test_every_endpoint_asks(
        self, policed: GrantedServer, server: PolicyServer, method: str, path: str, body: Any, privilege: str
    ) -> None:
        server.decide = lambda asked: asked["privilege"] != privilege
        assert policed("ann", method, path, body).status == 403

    def test_without_an_answer_nothing_is_done(
        self, policed: GrantedServer, server: PolicyServer, clock: Clock
    ) -> None:
        assert policed("ann", "GET", ORDERS).status == 200
        server.stop()
        clock.now = KEPT_S
        before = policed.context.catalog.pointer(parse_securable("table db.orders").table_name)
        for answer in (policed("ann", "GET", ORDERS), policed.commit("ann", set_property("a", "1"))):
            assert answer.error == (503, "ServiceUnavailableException")
            assert "could not be asked" in answer.message
        assert policed.context.catalog.pointer(parse_securable("table db.orders").table_name) == before
        assert policed.client("GET", "/health").status == 200

    def test_revoked_by_the_policy_is_refused_soon_from_the_cache_too(
        self, policed: GrantedServer, server: PolicyServer, clock: Clock
    ) -> None:
        for _ in range(3):
            assert policed("ann", "GET", ORDERS).status == 200
        assert server.privileges().count(("read", "db.orders", None)) == 1
        server.decide = lambda _: False
        clock.now = KEPT_S
        assert policed("ann", "GET", ORDERS).status == 403

    def test_keys_to_write_are_for_those_whom_the_policy_lets_write(
        self, policed: GrantedServer, server: PolicyServer, clock: Clock
    ) -> None:
        policed.context.credentials.vending = StaticVending(
            {"s3.access-key-id": "key", "s3.secret-access-key": "secret"}
        )
        for _ in range(2):  # also where the load itself is in memory
            assert policed("ann", "GET", ORDERS, headers=VENDED).status == 200
            assert ("write", "db.orders", None) in server.privileges()
            server.asked.clear()
            clock.now += KEPT_S
        server.decide = lambda asked: asked["privilege"] != "write"
        server.status = 200
        assert policed("ann", "GET", ORDERS, headers=VENDED).status == 200
        server.status = 500
        clock.now += KEPT_S
        assert policed("ann", "GET", ORDERS, headers=VENDED).status == 503

    def test_console_asks_too(self, policed: GrantedServer, server: PolicyServer) -> None:
        headers = LOCAL | bearer("bl_ann")
        query = {"name": "db.orders"}
        assert policed.client("GET", "/table.json", query=query, headers=headers).status == 200
        server.decide = lambda asked: asked["securable"]["name"] != "orders"
        assert policed.client("GET", "/lake.json", headers=headers).status == 200
        page = policed.client("GET", "/table/rows.json", query={"name": "db.orders"}, headers=headers)
        assert page.status == 200  # kept for a moment
        policed.context.access.policy = Policy(server.url, "lake")
        assert policed.client("GET", "/table/rows.json", query=query, headers=headers).status == 403

    def test_nobody_waits_in_the_event_loop(self, policed: GrantedServer, server: PolicyServer) -> None:
        assert policed("root", "GET", ORDERS).status == 200
        server.delay_s = 1.0

        async def ask() -> tuple[float, int]:
            slow = asyncio.create_task(policed.client.send("GET", ORDERS, [b""], headers=bearer("bl_ann")))
            await asyncio.sleep(0.2)
            started = time.monotonic()
            known = await policed.client.send("GET", ORDERS, [b""], headers=bearer("bl_root"))
            took = time.monotonic() - started
            assert known.status == 200
            assert not slow.done()
            return took, (await slow).status

        took, status = asyncio.run(ask())
        assert took < 0.5
        assert status == 200


def test_policy_works_without_grants(tmp_path: Path, server: PolicyServer) -> None:
    server.decide = lambda asked: asked["privilege"] in {"create", "read", "list"} and asked["principal"] == "anonymous"
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=ServerSettings(policy_url=server.url))
    try:
        with AsgiClient(opened) as client:
            client.namespace("db")
            client.table("orders")
            assert client("GET", ORDERS).status == 200
            assert client.commit(set_property("a", "1")).status == 403
            assert client("DELETE", ORDERS).status == 403
            assert client("GET", "/lake.json", headers=LOCAL).status == 200
    finally:
        opened.catalog.close()


def test_address_of_a_policy_is_looked_at_before_anybody_comes(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="https"):
        open_server(
            new_catalog_uri(tmp_path / "lake/catalog.db"), limits=ServerSettings(policy_url="http://policy.example/x")
        )
