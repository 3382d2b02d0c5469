"""`bergline events`, on a server and on its database."""

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.processes.command_line import run_here
from support.servers.asgi_client import AsgiClient, set_property
from support.servers.server_on_socket import on_socket


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


def positions(text: str) -> list[int]:
    return [json.loads(line)["position"] for line in text.splitlines()]


@pytest.mark.parametrize("of", ["server", "database"])
def test_events_are_printed_from_a_server_and_from_its_database(server: str, tmp_path: Path, of: str) -> None:
    at = ("--catalog", server if of == "server" else f"sqlite:///{tmp_path}/catalog.db")
    assert positions(done(tmp_path, "events", "--json", *at)) == [1, 2, 3, 4]
    assert positions(done(tmp_path, "events", "--json", "--after", "2", *at)) == [3, 4]
    assert positions(done(tmp_path, "events", "--json", "--table", "db.orders", *at)) == [2, 3]
    both = ("--type", "table.commit", "--type", "namespace.*")
    assert positions(done(tmp_path, "events", "--json", *both, *at)) == [1, 3]
    ended = run_here("events", "--json", "--limit", "3", *at, cwd=tmp_path)
    assert (positions(ended.stdout), ended.stderr) == (
        [2, 3, 4],
        "there are older ones: --after 0 reads from there on\n",
    )
    assert positions(done(tmp_path, "events", "--json", "--limit", "1", "--table", "db.orders", *at)) == [3]
    assert run_here("events", "--limit", "1001", *at, cwd=tmp_path).returncode == 2
    ended = run_here("events", "--limit", "1", "--after", "0", *at, cwd=tmp_path)
    assert ended.stderr == "there are more: continue with --after 1\n"
    assert ended.stdout.split()[2:] == ["anonymous", "namespace.create", "namespace/db"]
