"""The endpoints of webhooks; what they send is in `test_webhook_job`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient
from support.servers.webhook_receiver import WebhookReceiver

HOOKS = "/bergline/v1/webhooks"


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server that may call this machine."""
    limits = ServerSettings(webhook_allow=("127.0.0.1",))
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=limits)
    yield opened
    opened.catalog.close()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with WebhookReceiver() as running:
        yield running


def test_secret_is_shown_once(client: AsgiClient, context: ServerContext) -> None:
    client.namespace("db")
    body = {"url": "http://127.0.0.1:9/a", "types": ["org.bergline.ref.*"], "subjects": ["table/db/*"]}
    created = client("POST", HOOKS, body)
    secret, webhook = created.json["secret"], created.json["webhook"]
    assert secret.startswith("whsec_")
    assert webhook.pop("created-ms") > 0
    webhook_id = webhook.pop("webhook-id")
    assert webhook == {
        "url": "http://127.0.0.1:9/a",
        "state": "active",
        "position": 1,
        "principal": "anonymous",
        "types": ["ref.*"],
        "subjects": ["table/db/*"],
    }
    one = f"{HOOKS}/{webhook_id}"
    others = [
        client("GET", HOOKS),
        client("POST", f"{one}/pause"),
        client("POST", f"{one}/resume"),
        client("POST", f"{one}/replay", {"after": 0}),
        client("POST", f"{one}/test"),
        client("GET", f"{one}/deliveries"),
    ]
    assert all(response.status == 200 for response in others)
    assert not any(secret[6:].encode() in response.body for response in others)
    audited = [(entry.operation, entry.resource) for entry in context.records.audit()[1:]]
    names = ("create_webhook", "pause_webhook", "resume_webhook", "replay_webhook")
    assert audited == [(name, f"webhook/{webhook_id}") for name in names]
    assert client("DELETE", one).status == 204
    assert client("GET", HOOKS).json == {"webhooks": []}


def test_test_delivery_is_signed_and_leaves_the_cursor(client: AsgiClient, receiver: WebhookReceiver) -> None:
    created = client("POST", HOOKS, {"url": receiver.url}).json
    sent = client("POST", f"{HOOKS}/{created['webhook']['webhook-id']}/test").json
    assert (sent["status"], sent["events"], "error" in sent) == (200, 1, False)
    (message,) = receiver.messages
    assert message.is_signed_by(created["secret"])
    assert [event["type"] for event in message.events] == ["org.bergline.webhook.test"]
    receiver.statuses = [503]
    failed = client("POST", f"{HOOKS}/{created['webhook']['webhook-id']}/test").json
    assert failed["error"] == "the receiver responded with status 503"
    assert client("GET", HOOKS).json["webhooks"] == [created["webhook"]]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.2/", (403, "ForbiddenException")),
        ("http://169.254.169.254/latest/meta-data/", (403, "ForbiddenException")),
        ("http://[::ffff:10.0.0.1]/", (403, "ForbiddenException")),
        ("http://0.0.0.0/", (403, "ForbiddenException")),
        ("ftp://127.0.0.1/", (400, "IllegalArgumentException")),
        ("http://user:secret@127.0.0.1/", (400, "IllegalArgumentException")),
    ],
)
def test_url_that_will_not_be_called_is_refused(client: AsgiClient, url: str, error: tuple[int, str]) -> None:
    response = client("POST", HOOKS, {"url": url})
    assert response.error == error
    assert "secret" not in response.message
    assert client("GET", HOOKS).json == {"webhooks": []}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": 5},
        {"url": "http://127.0.0.1/", "types": ["*a"]},
        {"url": "http://127.0.0.1/", "subjects": [""]},
        {"url": "http://127.0.0.1/", "types": [f"t{n}" for n in range(101)]},
        {"url": "http://127.0.0.1/", "after": 1},
        {"url": "http://127.0.0.1/", "after": -1},
    ],
)
def test_wrong_webhook_is_refused(client: AsgiClient, body: object) -> None:
    assert client("POST", HOOKS, body).status == 400
    assert client("GET", HOOKS).json == {"webhooks": []}


@pytest.mark.parametrize("what", ["pause", "resume", "replay", "test"])
def test_missing_webhook_is_not_found(client: AsgiClient, what: str) -> None:
    for webhook_id in ("wh_none", "a%00b"):
        assert client("POST", f"{HOOKS}/{webhook_id}/{what}", {"after": 0}).error == (404, "NotFoundException")
    assert client("DELETE", f"{HOOKS}/wh_none").error == (404, "NotFoundException")
    assert client("GET", f"{HOOKS}/wh_none/deliveries").error == (404, "NotFoundException")
