"""Clients that cannot ask for turns: one that came too late twice is let come again before everybody else."""

import threading
import time
from typing import Any

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.turns import LONGEST_TURN_MS
from bergline.server.commits.overtaken_clients import LOSSES_BEFORE_A_TURN
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient, AsgiResponse, set_branch, set_property, snapshot

pytestmark = pytest.mark.long

T = TableName(("db",), "orders")
TABLE = "/v1/namespaces/db/tables/orders"
PYICEBERG = "PyIceberg/0.12"
OURS = {"Bergline-May-Move": "true"}
IDENTIFIER = {"namespace": ["db"], "name": "orders"}


@pytest.fixture
def orders(client: AsgiClient) -> AsgiClient:
    """A table whose head is 2, which came after 1."""
    client.namespace("db")
    client.table()
    for number, parent in ((1, None), (2, 1)):
        added = snapshot(number, number, parent)
        added["snapshot"]["timestamp-ms"] = time.time_ns() // 1_000_000
        assert client.commit(added, set_branch("main", number)).status == 200
    return client


@pytest.fixture(params=["table", "transaction"])
def sent_on(request: pytest.FixtureRequest, orders: AsgiClient) -> Any:
    """Sends a change of another client that was worked out on a head; DuckDB sends all of them as transactions."""

    def send(head: int, agent: str = PYICEBERG) -> int:
        headers = {"User-Agent": agent}
        required = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}]
        if request.param == "table":
            return orders.commit(set_property("who", "other"), requirements=required, headers=headers).status
        change = {"identifier": IDENTIFIER, "requirements": required, "updates": [set_property("who", "other")]}
        return orders("POST", "/v1/transactions/commit", {"table-changes": [change]}, headers=headers).status

    return send


class Appending:
    """A commit of a client of ours, in a thread of its own."""

    def __init__(self, client: AsgiClient) -> None:
        self.response: AsgiResponse | None = None
        self._thread = threading.Thread(target=self._run, args=(client,), daemon=True)
        self._thread.start()

    def _run(self, client: AsgiClient) -> None:
        self.response = client.commit(set_property("who", "ours"), headers=OURS)

    def is_done(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return not self._thread.is_alive()


def load(client: AsgiClient, agent: str = PYICEBERG) -> None:
    assert client("GET", TABLE, headers={"User-Agent": agent}).status == 200


@pytest.fixture
def lost(orders: AsgiClient, sent_on: Any) -> None:
    """Another client came too late, so often that it is given a turn, and comes again."""
    for _ in range(LOSSES_BEFORE_A_TURN):
        load(orders)
        assert sent_on(1) == 409
    load(orders)


@pytest.mark.usefixtures("lost")
def test_client_that_lost_twice_comes_again_before_all_others(
    orders: AsgiClient, context: ServerContext, sent_on: Any
) -> None:
    ours = Appending(orders)
    assert not ours.is_done(0.2)
    assert sent_on(2) in {200, 204}
    assert ours.is_done(60)
    assert ours.response is not None
    assert ours.response.status == 200
    assert context.store.read_with_turn(T)[1] is None


@pytest.mark.usefixtures("lost")
def test_turn_is_of_one_program_of_one_caller(sent_on: Any) -> None:
    started = time.monotonic()
    assert sent_on(2, agent="another") in {200, 204}
    assert time.monotonic() - started > 0.5


def test_losses_of_different_clients_are_not_added_up(orders: AsgiClient, context: ServerContext, sent_on: Any) -> None:
    for number in range(LOSSES_BEFORE_A_TURN):
        assert sent_on(1, agent=str(number)) == 409
        load(orders, agent=str(number))
    assert context.store.read_with_turn(T)[1] is None


@pytest.mark.usefixtures("lost")
def test_others_wait_no_longer_than_the_turn_for_a_client_that_does_not_commit(
    orders: AsgiClient, context: ServerContext
) -> None:
    turn = context.store.read_with_turn(T)[1]
    assert turn is not None
    assert 500 < turn.left_ms < LONGEST_TURN_MS
    assert Appending(orders).is_done(60)
    assert context.store.read_with_turn(T)[1] is None


def test_client_that_does_not_come_again_holds_up_nobody(
    orders: AsgiClient, context: ServerContext, sent_on: Any
) -> None:
    for _ in range(LOSSES_BEFORE_A_TURN):
        assert sent_on(1) == 409
    load(orders, agent="somebody else")
    assert context.store.read_with_turn(T)[1] is None


@pytest.mark.usefixtures("lost")
def test_nobody_gets_a_second_turn_at_once(orders: AsgiClient, context: ServerContext, sent_on: Any) -> None:
    """The others go first for as long as the first one lasted."""
    time.sleep(0.3)
    assert sent_on(2) in {200, 204}
    for _ in range(LOSSES_BEFORE_A_TURN):
        assert sent_on(1) == 409
    load(orders)
    assert context.store.read_with_turn(T)[1] is None
    assert Appending(orders).is_done(60)


def test_losses_that_no_turn_can_help_bring_none(orders: AsgiClient, context: ServerContext) -> None:
    """Of our own clients, which ask by themselves; not of a branch; and of who would need too long."""
    old = snapshot(3, 3, 2)
    old["snapshot"]["timestamp-ms"] = (time.time_ns() // 1_000_000) - 2 * LONGEST_TURN_MS
    assert orders.commit(old, set_branch("main", 3)).status == 200
    head = {"type": "assert-ref-snapshot-id", "ref": "main"}
    refused = [
        ({**head, "snapshot-id": 1}, {"Bergline-May-Move": "false"}),
        ({"type": "assert-current-schema-id", "current-schema-id": 7}, {}),
        ({**head, "ref": "gone", "snapshot-id": 1}, {}),
    ]
    assert orders.commit(snapshot(4, 4, 3), set_branch("main", 4)).status == 200
    refused.append(({**head, "snapshot-id": 3}, {}))
    for requirement, headers in refused:
        for _ in range(LOSSES_BEFORE_A_TURN):
            response = orders.commit(set_property("a", "b"), requirements=[requirement], headers=headers)
            assert response.status == 409
        assert orders("GET", TABLE, headers=headers).status == 200
        assert context.store.read_with_turn(T)[1] is None
