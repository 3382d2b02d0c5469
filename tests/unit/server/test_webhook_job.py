"""Events sent to webhooks."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.governance_layout import EVENTS, WEBHOOKS
from bergline.governance.webhooks.secret_keys import SecretKeys
from bergline.governance.webhooks.store import SqlWebhooks, WebhookState
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.webhook_job import WebhookJob
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient, set_property
from support.servers.webhook_receiver import WebhookReceiver

HOOKS = "/bergline/v1/webhooks"
LOCAL = ServerSettings(webhook_allow=("127.0.0.1",), event_retention_s=3600)
HOUR_MS = 3_600_000


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server that may call this machine."""
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=LOCAL)
    yield opened
    opened.catalog.close()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


class Clock:
    """A clock that goes on by itself, and that can be set forward."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def job(context: ServerContext, clock: Clock) -> WebhookJob:
    return WebhookJob(context, clock)


def create(client: AsgiClient, receiver: WebhookReceiver, **more: Any) -> tuple[str, str]:
    """A new webhook; its id and secret."""
    response = client("POST", HOOKS, {"url": receiver.url, "after": 0, **more})
    assert response.status == 200, response
    return response.json["webhook"]["webhook-id"], response.json["secret"]


def state(context: ServerContext, webhook_id: str) -> tuple[str, int, int]:
    found = context.webhooks.find(webhook_id)
    return found.state, found.position, found.failures


def test_events_are_sent_signed_and_in_order(
    client: AsgiClient, context: ServerContext, job: WebhookJob, receiver: WebhookReceiver
) -> None:
    webhook_id, secret = create(client, receiver)
    assert not job.run_once()
    client.namespace("db")
    client.table()
    assert job.run_once()
    (message,) = receiver.messages
    assert message.is_signed_by(secret)
    assert [(e["type"], e["subject"]) for e in message.events] == [
        ("org.bergline.namespace.create", "namespace/db"),
        ("org.bergline.table.create", "table/db/orders"),
    ]
    assert message.headers["webhook-id"] == f"{webhook_id}-1-2"
    assert not job.run_once()
    client.commit(set_property("a", "b"))
    assert job.run_once()
    assert receiver.positions == [1, 2, 3]
    assert state(context, webhook_id) == ("active", 3, 0)
    first, second = client("GET", f"{HOOKS}/{webhook_id}/deliveries").json["deliveries"]
    assert (first["first-position"], first["status"]) == (3, 200)
    assert (second["events"], "error" in second) == (2, False)


def test_webhook_whose_key_is_lost_says_so_and_others_go_on(
    client: AsgiClient, context: ServerContext, job: WebhookJob, receiver: WebhookReceiver
) -> None:
    records = context.records
    context.webhooks = SqlWebhooks(records.database, records.catalog_name, SecretKeys(["A" * 43 + "="]))
    lost, _ = create(client, receiver)
    context.webhooks = SqlWebhooks(records.database, records.catalog_name, SecretKeys(["B" * 43 + "="]))
    kept, secret = create(client, receiver)
    client.namespace("db")
    assert job.run_once()
    assert job.run_once()
    (message,) = receiver.messages
    assert message.is_signed_by(secret)
    assert state(context, kept) == ("active", 1, 0)
    assert state(context, lost) == ("active", 0, 1)
    assert "cannot be decrypted: expected the key" in (context.webhooks.find(lost).last_error or "")
    told = client("POST", f"{HOOKS}/{lost}/test").json
    assert "cannot be decrypted" in told["error"]


def test_only_wanted_events_are_sent(
    client: AsgiClient, context: ServerContext, job: WebhookJob, receiver: WebhookReceiver
) -> None:
    types = ["org.bergline.table.create", "table.drop"]
    webhook_id, _ = create(client, receiver, types=types, subjects=["table/db/o*"])
    client.namespace("db")
    for name in ("orders", "customers", "others"):
        client.table(name)
    client("DELETE", "/v1/namespaces/db/tables/orders")
    client("DELETE", "/v1/namespaces/db/tables/customers")
    assert job.run_once()
    assert receiver.positions == [2, 4, 5]
    assert state(context, webhook_id) == ("active", 6, 0)
    assert not job.run_once()


def test_many_events_go_in_several_messages(
    client: AsgiClient, context: ServerContext, job: WebhookJob, receiver: WebhookReceiver
) -> None:
    create(client, receiver)
    client.namespace("db")
    client.table()
    with context.records.database.changing() as connection:
        rows = [dict(row._mapping) for row in connection.execute(sa.select(EVENTS))]
        for row in rows:
            del row["id"], row["position"]
        connection.execute(sa.insert(EVENTS), rows * 124 + [rows[0] | {"data": '{"a": "%s"}' % ("x" * 2_000_000)}])
    job.run_once()
    assert receiver.positions == list(range(1, 252))
    assert [len(message.events) for message in receiver.messages] == [100, 100, 50, 1]


@pytest.mark.parametrize("status", [500, 429, 302])
def test_what_was_not_taken_is_sent_again_after_a_while(
    client: AsgiClient, context: ServerContext, job: WebhookJob, clock: Clock, receiver: WebhookReceiver, status: int
) -> None:
    webhook_id, _ = create(client, receiver)
    client.namespace("db")
    receiver.statuses = [status, status]
    assert job.run_once()
    assert not job.run_once()
    assert state(context, webhook_id) == ("active", 0, 1)
    clock.ahead_ms += 10_000
    assert job.run_once()
    clock.ahead_ms += 20_000
    client.table()
    assert job.run_once()
    assert receiver.positions == [1, 1, 1, 2]
    assert state(context, webhook_id) == ("active", 2, 0)


def test_receiver_that_says_it_is_gone_gets_no_more(
    client: AsgiClient, context: ServerContext, job: WebhookJob, receiver: WebhookReceiver
) -> None:
    webhook_id, _ = create(client, receiver)
    client.namespace("db")
    receiver.statuses = [410]
    job.run_once()
    assert state(context, webhook_id) == ("disabled", 0, 1)
    resumed = client("POST", f"{HOOKS}/{webhook_id}/resume")
    assert resumed.json["state"] == "active"
    assert job.run_once()
    assert state(context, webhook_id) == ("active", 1, 0)


@pytest.mark.long
def test_server_that_dies_between_delivery_and_cursor_sends_again(
    client: AsgiClient, context: ServerContext, job: WebhookJob, clock: Clock, receiver: WebhookReceiver, tmp_path: Path
) -> None:
    webhook_id, _ = create(client, receiver)
    client.namespace("db")
    receiver.stalled = threading.Event()
    program = f"""
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.webhook_job import WebhookJob
limits = ServerSettings(webhook_allow=("127.0.0.1",))
WebhookJob(open_server("sqlite:///{tmp_path}/lake/catalog.db", limits=limits)).run_once()
"""
    dying = subprocess.Popen([sys.executable, "-c", program])
    assert receiver.waits_for(1)
    dying.kill()
    dying.wait()
    receiver.stalled.set()
    assert state(context, webhook_id) == ("active", 0, 0)
    assert not job.run_once()  # its claim still holds
    clock.ahead_ms += 60_001
    assert job.run_once()
    assert receiver.positions == [1, 1]
    assert receiver.messages[0].headers["webhook-id"] == receiver.messages[1].headers["webhook-id"]
    assert state(context, webhook_id) == ("active", 1, 0)


def test_slow_server_that_lost_its_claim_does_not_move_the_cursor(
    client: AsgiClient, context: ServerContext, receiver: WebhookReceiver
) -> None:
    """It sent its message late: the receiver sees it twice, and nothing is left out."""
    webhook_id, _ = create(client, receiver)
    client.namespace("db")
    slow, late = WebhookJob(context), Clock()
    late.ahead_ms = 60_001
    receiver.stalled = threading.Event()
    thread = threading.Thread(target=slow.run_once)
    thread.start()
    assert receiver.waits_for(1)
    other = threading.Thread(target=WebhookJob(context, late).run_once)
    other.start()
    assert receiver.waits_for(2)
    receiver.stalled.set()
    thread.join()
    other.join()
    assert receiver.positions == [1, 1]
    assert state(context, webhook_id) == ("active", 1, 0)


@pytest.mark.parametrize("on", ["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def test_two_servers_share_the_work_and_send_everything_once_and_in_order(
    receiver: WebhookReceiver, tmp_path: Path, request: pytest.FixtureRequest, on: str
) -> None:
    uri = new_catalog_uri(tmp_path / "both/catalog.db") if on == "sqlite" else request.getfixturevalue("postgres")

    def opened() -> ServerContext:
        return open_server(uri, warehouse=f"file://{tmp_path}/both", name=f"two-{tmp_path.name}", limits=LOCAL)

    context = opened()
    with AsgiClient(context) as client, WebhookReceiver() as another:
        create(client, receiver)
        create(client, another)
        client.namespace("db")
        client.table()
        second = opened()
        other_client = AsgiClient(second)
        jobs, done = [WebhookJob(context), WebhookJob(second)], threading.Event()

        def work(job: WebhookJob) -> None:
            while True:
                is_last = done.is_set()
                if not job.run_once() and is_last:
                    return

        workers = [threading.Thread(target=work, args=(job,)) for job in jobs for _ in range(2)]
        writers = [
            threading.Thread(target=lambda to=to: [to.commit(set_property("a", str(i))) for i in range(10)])
            for to in (client, other_client)
        ]
        for thread in (*workers, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        for thread in workers:
            thread.join()
        other_client.application.close()
        second.catalog.close()
        assert receiver.positions == another.positions == list(range(1, 23))
    mine = sa.and_(EVENTS.c.catalog_name == context.records.catalog_name, EVENTS.c.type == "table.commit")
    query = sa.select(EVENTS.c.data).where(mine).order_by(EVENTS.c.position)
    with context.records.database.reading() as connection:
        sent = [msgspec.json.decode(data)["metadata-location"] for data in connection.execute(query).scalars()]
    log = context.catalog.load_table(TableName(("db",), "orders"))
    line = [*[entry.metadata_file for entry in log.metadata.metadata_log][1:], log.metadata_location]
    context.catalog.close()
    assert sent == line


def test_replay_sends_again_and_pause_sends_nothing(
    client: AsgiClient, context: ServerContext, job: WebhookJob, receiver: WebhookReceiver
) -> None:
    webhook_id, _ = create(client, receiver)
    client.namespace("db")
    client.table()
    job.run_once()
    assert client("POST", f"{HOOKS}/{webhook_id}/replay", {"after": 1}).json["position"] == 1
    job.run_once()
    assert receiver.positions == [1, 2, 2]
    assert client("POST", f"{HOOKS}/{webhook_id}/replay", {"after": 3}).error == (400, "IllegalArgumentException")
    assert client("POST", f"{HOOKS}/{webhook_id}/pause").json["state"] == "paused"
    client.commit(set_property("a", "b"))
    assert not job.run_once()
    client("POST", f"{HOOKS}/{webhook_id}/resume")
    assert job.run_once()
    assert receiver.positions == [1, 2, 2, 3]


def test_webhook_behind_what_is_kept_goes_on_and_says_so(
    client: AsgiClient, context: ServerContext, job: WebhookJob, clock: Clock, receiver: WebhookReceiver
) -> None:
    webhook_id, _ = create(client, receiver)
    client("POST", f"{HOOKS}/{webhook_id}/pause")
    client.namespace("db")
    clock.ahead_ms = HOUR_MS - 60_000
    assert job.prune_once() == 0
    clock.ahead_ms = HOUR_MS + 1000
    assert job.prune_once() == 1
    client.table()
    client("POST", f"{HOOKS}/{webhook_id}/resume")
    job.run_once()
    assert receiver.positions == [2]
    missed = "the events from position 1 to 1 were not sent: their time is over"
    assert [attempt.error for attempt in context.webhooks.deliveries(webhook_id)] == [None, missed]


def test_threads_send_by_themselves_until_they_are_stopped(
    client: AsgiClient, context: ServerContext, receiver: WebhookReceiver
) -> None:
    create(client, receiver)
    client.namespace("db")
    job = WebhookJob(context)
    job.start()
    try:
        assert receiver.waits_for(1)
    finally:
        job.stop()
    assert receiver.positions == [1]
    assert context.webhooks.all()[0].state is WebhookState.ACTIVE
    with context.records.database.reading() as connection:
        assert connection.execute(sa.select(WEBHOOKS.c.claimed_until_ms)).scalar_one() == 0


def test_audit_log_is_kept_for_its_time(
    client: AsgiClient, context: ServerContext, job: WebhookJob, clock: Clock
) -> None:
    client.namespace("db")
    clock.ahead_ms = 30 * HOUR_MS
    while job.prune_once():
        pass
    assert len(context.records.audit()) == 1
    context.settings = msgspec.structs.replace(context.settings, audit_retention_s=24 * 3600)
    assert job.prune_once() == 1
    assert context.records.audit() == []
    assert job.prune_once() == 0
