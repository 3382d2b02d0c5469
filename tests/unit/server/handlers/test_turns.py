"""Turns through the server: endpoints of bergline's own, and commits that wait while somebody else has one."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import bergline
from bergline.catalog.identifiers import TableName
from bergline.catalog.turns import LONGEST_TURN_MS, TurnKeeper
from bergline.server.context.context import ServerContext
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ORDERS, order_rows
from support.servers.asgi_client import AsgiClient, AsgiResponse, set_property
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

T = TableName(("db",), "orders")
TABLE = "/v1/namespaces/db/tables/orders"
TURN = f"/bergline{TABLE}/turn"


@pytest.fixture
def orders(client: AsgiClient) -> AsgiClient:
    client.namespace("db")
    client.table()
    return client


def take(client: AsgiClient, holder: str = "me", lease_ms: int = 5000) -> bool:
    response = client("POST", TURN, {"holder": holder, "lease-ms": lease_ms})
    assert response.status == 200, response
    granted: bool = response.json["granted"]
    return granted


def give_back(client: AsgiClient, holder: str = "me") -> None:
    assert client("DELETE", TURN, query={"holder": holder}).status == 204


class Committing:
    """A commit in a thread of its own."""

    def __init__(self, client: AsgiClient, send: Any = None, **more: Any) -> None:
        self.response: AsgiResponse | None = None
        self._send = send or (lambda: client.commit(set_property("a", "b"), **more))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_done(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def status(self) -> int:
        assert self.is_done(60)
        assert self.response is not None
        return self.response.status

    def _run(self) -> None:
        self.response = self._send()


@pytest.fixture(params=["table", "transaction"])
def commit(request: pytest.FixtureRequest, orders: AsgiClient) -> Iterator[Any]:
    """Starts a commit of one kind."""
    identifier = {"namespace": ["db"], "name": "orders"}
    change = {"identifier": identifier, "requirements": [], "updates": [set_property("a", "b")]}
    body = change if request.param == "table" else {"table-changes": [change]}
    path = TABLE if request.param == "table" else "/v1/transactions/commit"
    return lambda **more: Committing(orders, lambda: orders("POST", path, body, **more))


def test_commits_of_others_wait_until_the_turn_is_given_back(orders: AsgiClient, commit: Any) -> None:
    assert take(orders)
    waiting = commit()
    assert not waiting.is_done(0.3)
    assert commit(headers={"Bergline-Turn": "me"}).status() in {200, 204}
    assert not waiting.is_done(0.1)
    give_back(orders)
    assert waiting.status() in {200, 204}


def test_turn_that_only_the_database_knows_of_is_found_and_waited_for(
    context: ServerContext, orders: AsgiClient, commit: Any
) -> None:
    assert context.store.take_turn([T], "elsewhere", 5000)
    waiting = commit()
    assert not waiting.is_done(0.3)
    context.store.give_back_turn([T], "elsewhere")
    assert waiting.status() in {200, 204}


def test_commit_with_a_key_is_made_once_after_its_wait(orders: AsgiClient) -> None:
    headers = {"Idempotency-Key": "0190b6b6-6b6b-7b6b-8b6b-6b6b6b6b6b6b"}
    assert take(orders, lease_ms=400)
    first, second = Committing(orders, headers=headers), Committing(orders, headers=headers)
    assert first.status() == second.status() == 200
    assert len(orders("GET", TABLE).json["metadata"]["metadata-log"]) == 1


def test_waiting_commits_take_no_thread(context: ServerContext, orders: AsgiClient) -> None:
    """More of them than there are threads, and the turn's holder still comes through."""
    assert take(orders)
    number = 2 * context.settings.threads

    async def run() -> list[AsgiResponse]:
        body = [b'{"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}']
        waiting = [asyncio.create_task(orders.send("POST", TABLE, body)) for _ in range(number)]
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
        held = await orders.send("POST", TABLE, body, headers={"Bergline-Turn": "me"})
        assert held.status == 200
        assert not any(task.done() for task in waiting)
        assert (await orders.send("DELETE", TURN, [b""], query={"holder": "me"})).status == 204
        return await asyncio.wait_for(asyncio.gather(*waiting), 60)

    assert {response.status for response in asyncio.run(run())} == {200}
    assert orders.application.runner.bodies._held == 0


def test_second_turn_waits_for_its_time(orders: AsgiClient) -> None:
    assert take(orders)
    assert not take(orders, "you")
    time.sleep(0.3)
    give_back(orders, "you")
    assert not take(orders, "you")
    give_back(orders)
    assert not take(orders, "you")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"holder": "", "lease-ms": 1},
        {"holder": "a b", "lease-ms": 1},
        {"holder": "x" * 65, "lease-ms": 1},
        {"holder": "me", "lease-ms": 0},
        {"holder": "me", "lease-ms": LONGEST_TURN_MS + 1},
        {"holder": "me", "lease-ms": "1"},
    ],
)
def test_bad_turns_are_refused(orders: AsgiClient, body: dict[str, Any]) -> None:
    assert orders("POST", TURN, body).error == (400, "BadRequestException")
    assert orders("DELETE", TURN).error == (400, "IllegalArgumentException")
    assert orders.commit(set_property("a", "b")).status == 200


def test_there_are_no_turns_on_a_table_that_is_not_there(client: AsgiClient) -> None:
    client.namespace("db")
    assert client("POST", TURN, {"holder": "me", "lease-ms": 1}).error == (404, "NoSuchTableException")
    assert client("DELETE", TURN, query={"holder": "me"}).error == (404, "NoSuchTableException")


def test_client_takes_turns_on_several_tables_or_none(context: ServerContext) -> None:
    with on_socket(context) as port, bergline.connect(f"http://127.0.0.1:{port}") as lake:
        lake.create_namespace("db")
        names = [TableName(("db",), name) for name in ("a", "b")]
        for name in names:
            lake.create_table(str(name), ORDERS)
        keeper: TurnKeeper = lake.catalog.turns  # type: ignore[attr-defined]
        assert context.store.take_turn([names[1]], "other", 5000)
        assert not keeper.take_turn(names, "me", 5000)
        assert context.store.read_with_turn(names[0])[1] is None
        context.store.give_back_turn([names[1]], "other")
        time.sleep(0.2)
        assert keeper.take_turn(names, "me", 5000)
        lake.load_table("db.a")
        assert [context.store.read_with_turn(name)[1] is not None for name in names] == [True, True]
        keeper.give_back_turn(names, "me")
        assert [context.store.read_with_turn(name)[1] for name in names] == [None, None]


def test_merge_through_the_server_comes_through_beside_writers_that_never_pause(context: ServerContext) -> None:
    """It loses each of its first attempts to another commit, and is let through by all when it has lost some."""
    with on_socket(context) as port, bergline.connect(f"http://127.0.0.1:{port}") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        table.refs.create_branch("b")
        table.append(order_rows(100), branch="b")
        end, committed = threading.Event(), [0, 0]

        def work(number: int) -> None:
            if number == len(committed):
                try:
                    table.refs.merge("b", into="main")
                finally:
                    end.set()
                return
            writing = lake.load_table("db.orders")
            while not end.is_set():
                writing.append(order_rows(2))
                committed[number] += 1

        run_for_each(work, range(len(committed) + 1))
        found = table.refresh().scan().to_arrow()["id"].to_pylist()
        assert found.count(100) == 1
        assert len(found) == sum(committed) + 2
