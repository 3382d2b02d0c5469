"""`bergline webhook`, on a server that sends."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.webhook_job import WebhookJob
from support.processes.command_line import run_here
from support.servers.asgi_client import AsgiClient, set_property
from support.servers.server_on_socket import on_socket
from support.servers.webhook_receiver import WebhookReceiver


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server with four events."""
    limits = ServerSettings(webhook_allow=("127.0.0.1",))
    opened = open_server(f"sqlite:///{tmp_path}/catalog.db", limits=limits)
    with AsgiClient(opened) as client:
        client.namespace("db")
        client.table()
        client.commit(set_property("a", "b"))
        client.table("others")
    yield opened
    opened.catalog.close()


@pytest.fixture
def server(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


def done(tmp_path: Path, *arguments: str) -> str:
    ended: CompletedProcess[str] = run_here(*arguments, cwd=tmp_path)
    assert ended.returncode == 0, ended
    return ended.stdout


def test_webhook_is_created_tested_replayed_and_deleted(server: str, context: ServerContext, tmp_path: Path) -> None:
    at = ("--catalog", server)
    with WebhookReceiver() as receiver:
        made = done(tmp_path, "webhook", "create", receiver.url, "--type", "table.*", "--table", "db.orders", *at)
        webhook_id, secret = made.splitlines()
        assert done(tmp_path, "webhook", "test", webhook_id, *at).startswith("status 200 after ")
        assert receiver.messages[0].is_signed_by(secret)
        assert done(tmp_path, "webhook", "replay", webhook_id, "--after", "2", *at) == "active, sent up to position 2\n"
        WebhookJob(context).run_once()
        assert receiver.messages[1].positions == [3]
        (attempt,) = json.loads(done(tmp_path, "webhook", "deliveries", webhook_id, "--json", *at))
        assert (attempt["first_position"], attempt["status"]) == (3, 200)
        assert "200" in done(tmp_path, "webhook", "deliveries", webhook_id, *at)
        assert done(tmp_path, "webhook", "pause", webhook_id, *at) == "paused, sent up to position 4\n"
        assert json.loads(done(tmp_path, "webhook", "resume", webhook_id, "--json", *at))["state"] == "active"
        (listed,) = json.loads(done(tmp_path, "webhook", "list", "--json", *at))
        assert (listed["webhook_id"], listed["types"], "secret" in listed) == (webhook_id, ["table.*"], False)
        assert webhook_id in done(tmp_path, "webhook", "list", *at)
        receiver.statuses = [500]
        failed = run_here("webhook", "test", webhook_id, *at, cwd=tmp_path)
        assert failed.returncode == 1
        assert "status 500" in failed.stderr
        assert done(tmp_path, "webhook", "delete", webhook_id, "--yes", *at) == ""
    refused = run_here("webhook", "create", "http://169.254.169.254/", *at, cwd=tmp_path)
    assert refused.returncode == 1
    assert "--webhook-allow" in refused.stderr
    missing = run_here("webhook", "delete", webhook_id, "--yes", *at, cwd=tmp_path)
    assert f"no webhook `{webhook_id}`" in missing.stderr
    local = run_here("webhook", "list", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert "give --catalog http://host:8181" in local.stderr


def test_secrets_are_encrypted_by_a_new_key(server: str, tmp_path: Path) -> None:
    with WebhookReceiver() as receiver:
        webhook_id = done(tmp_path, "webhook", "create", receiver.url, "--catalog", server).splitlines()[0]
    rotate = ("webhook", "rotate-secrets", "--catalog", f"sqlite:///{tmp_path}/catalog.db")
    without = run_here(*rotate, cwd=tmp_path)
    assert (without.returncode, "expected a key in BERGLINE_SECRETS_KEY" in without.stderr) == (2, True)
    keys = tmp_path / "keys"
    keys.write_text("A" * 43 + "=")
    assert done(tmp_path, *rotate, "--secrets-key-file", str(keys)) == "1 secrets were re-encrypted\n"
    keys.write_text("B" * 43 + "=\n" + "A" * 43 + "=")
    told = json.loads(done(tmp_path, *rotate, "--secrets-key-file", str(keys), "--json"))
    assert told == {"encrypted": [webhook_id], "lost": []}
    keys.write_text("A" * 43 + "=")
    lost = run_here(*rotate, "--secrets-key-file", str(keys), cwd=tmp_path)
    assert (lost.returncode, webhook_id in lost.stderr) == (1, True)
