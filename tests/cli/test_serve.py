"""`bergline serve` and `bergline token` as programs."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bergline_server import BerglineServer
from click.testing import Result
from typer.testing import CliRunner

from bergline.catalog.sql.records import AuditEntry, records_of
from bergline.cli.main import app, main
from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake.lake import connect


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    with BerglineServer(tmp_path_factory.mktemp("served")) as started:
        yield started


def address(server: BerglineServer) -> tuple[str, int]:
    host, _, port = server.uri.removeprefix("http://").partition(":")
    return host, int(port)


def answer(server: BerglineServer, data: bytes, *, ends: bool = True) -> bytes:
    """What comes back for raw bytes, until the server closes; with an end, or with more that never comes."""
    with socket.create_connection(address(server), timeout=20) as connection:
        parts = []
        with contextlib.suppress(ConnectionError):  # a server that has heard enough may hang up
            connection.sendall(data)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                parts.append(part)
    return b"".join(parts)


def test_server_survives_what_is_no_request(server: BerglineServer) -> None:
    assert answer(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    many = b"GET /v1/config HTTP/1.1\r\n" + b"".join(b"x-%d: y\r\n" % n for n in range(20_000)) + b"\r\n"
    assert b"200 OK" not in answer(server, many)
    long = b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"
    assert b"200 OK" not in answer(server, long)
    half = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"
    assert b"200 OK" not in answer(server, half)
    lying = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n{"
    assert answer(server, lying).startswith(b"HTTP/1.1 413")
    tricks = b"GET /v1/namespaces/..%2f..%2fetc/../config HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    assert answer(server, tricks).startswith(b"HTTP/1.1 404")
    connection = http.client.HTTPConnection(*address(server), timeout=20)
    connection.request("GET", "/v1/namespaces")
    assert json.loads(connection.getresponse().read())["namespaces"] == []
    connection.close()


def test_program_ends_when_it_is_told_to(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from bergline.cli.entry import main; main()", "serve", "--port", "0"]
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    process = subprocess.Popen([*command, "--catalog", catalog], stderr=subprocess.PIPE, text=True)
    assert process.stderr
    assert process.stderr.readline() == f"no catalog at `{catalog}`: no such file; creating it\n"
    assert "serving `lake`" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode in {0, -signal.SIGTERM}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "0.0.0.0"], "without tokens"),  # noqa: S104
        (["--catalog", "memory:"], "SQLite or PostgreSQL"),
        (["--host", "256.1.1.1", "--anonymous"], "cannot listen"),
    ],
)
def test_what_cannot_be_served_is_said(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bergline", "serve", "--port", "0", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert told in capsys.readouterr().err


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    connect(catalog, create=True).close()

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["token", *arguments, "--catalog", catalog], catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    token = run("create", "ann", "--expires-in", "90d").strip()
    assert token.startswith("bl_")
    assert len(token) > 40
    listed = json.loads(run("list", "--json"))
    assert [t["name"] for t in listed] == ["ann"]
    assert token not in str(listed)
    with BerglineServer(tmp_path) as server:
        for header, status in (({"Authorization": f"Bearer {token}"}, 200), ({}, 401)):
            connection = http.client.HTTPConnection(*address(server), timeout=20)
            connection.request("GET", "/v1/config", headers=header)
            assert connection.getresponse().status == status
            connection.close()
    run("revoke", "ann")
    with pytest.raises(NotFoundError):
        run("revoke", "ann")
    with pytest.raises(InvalidInputError, match="90d"):
        run("create", "bob", "--expires-in", "soon")


def test_token_may_be_made_before_the_first_start(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/new/catalog.db"
    for command in (["token", "list"], ["token", "revoke", "ann"], ["audit", "list"]):
        with pytest.raises(NotFoundError, match=r"no catalog at .*: no such file"):
            CliRunner().invoke(app, [*command, "--catalog", catalog], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
    made = CliRunner().invoke(app, ["token", "create", "ann", "--catalog", catalog], catch_exceptions=False)
    assert f"no catalog at `{catalog}`: no such file; creating it\n" in made.stderr
    token = made.stdout.strip()
    with BerglineServer(tmp_path / "new") as server:
        assert status_of(server, "GET", "/v1/config") == 401
        assert status_of(server, "GET", "/v1/config", token=token) == 200


def test_server_stays_closed_without_its_last_token_until_it_is_told_otherwise(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    for command in ("create", "revoke"):
        CliRunner().invoke(app, ["token", command, "ann", "--catalog", catalog], catch_exceptions=False)
    with BerglineServer(tmp_path) as server:
        assert status_of(server, "GET", "/v1/config") == 401
        assert status_of(server, "GET", "/health") == 200
    assert "nobody can come in: the last token was revoked" in (tmp_path / "log.txt").read_text()
    with BerglineServer(tmp_path, "--anonymous") as server:
        assert status_of(server, "GET", "/v1/config") == 200
    with BerglineServer(tmp_path) as server:
        assert status_of(server, "GET", "/v1/config") == 401


def test_a_token_says_for_which_catalog_it_is(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    connect(catalog, create=True).close()

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--catalog", catalog], catch_exceptions=False)

    made = run("token", "create", "ann", "--name", "our sales")
    assert made.stdout.startswith("bl_")
    assert "`bergline serve --name 'our sales'`; servers of other catalogs" in made.stderr
    for arguments in (
        ("token", "create", "bob"),
        ("token", "list"),
        ("token", "revoke", "ann"),
        ("audit", "list"),
        ("audit", "prune", "--older-than", "1d"),
    ):
        with pytest.raises(NotFoundError, match=r"no catalog `lake` in .*, which has `our sales`") as no:
            run(*arguments)
        assert no.value.hints == ("name one with --name",)
    assert "ann" in run("token", "list", "--name", "our sales").stdout
    with connect(catalog, create=True) as lake:
        lake.create_namespace("db")
    assert "`bergline serve --name lake`" in run("token", "create", "bob").stderr
    assert "bob" in run("token", "list").stdout
    assert "ann" not in run("token", "list").stdout


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks at the memory of a process of Linux")  # noqa: PTH110
def test_memory_does_not_follow_what_is_sent(server: BerglineServer) -> None:
    def memory() -> int:
        return int(Path(f"/proc/{server._process.pid}/statm").read_text().split()[1]) * 4096

    before = memory()
    with socket.create_connection(address(server), timeout=20) as connection:
        try:
            connection.sendall(b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(200):
                connection.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
        except OSError:
            pass
    assert memory() - before < 150 * 1024 * 1024


def test_changes_are_listed_and_pruned(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with connect(catalog, create=True) as lake:
        records = records_of(lake.catalog)
        now_ms = time.time_ns() // 1_000_000
        hour = 3_600_000
        for age, who, resource in (
            (200 * 24 * hour, "ann", "table/db/orders"),
            (3 * hour, "bob", "table/db.inner/items"),
            (2 * hour, "ann", "view/db/orders"),
            (hour, "bob", "namespace/db"),
        ):
            with records.database.changing() as connection:
                entry = AuditEntry(now_ms - age, who, "commit_table", resource, "tester/1", "s3://b/m.json")
                records.add_audit(connection, entry)

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["audit", *arguments, "--catalog", catalog], catch_exceptions=False)
        return done.stdout

    def listed(*arguments: str) -> list[tuple[str, str]]:
        return [(row["who"], row["resource"]) for row in json.loads(run("list", "--json", *arguments))]

    assert [who for who, _ in listed()] == ["bob", "ann", "bob", "ann"]
    assert listed("--limit", "1") == [("bob", "namespace/db")]
    assert listed("--table", "db.orders") == [("ann", "view/db/orders"), ("ann", "table/db/orders")]
    assert listed("--table", "db.inner.items", "--who", "bob") == [("bob", "table/db.inner/items")]
    assert listed("--who", "ann", "--since", "1d") == [("ann", "view/db/orders")]
    assert len(listed("--since", "2020-01-01T00:00Z")) == 4
    assert "tester/1" in run("list")
    assert run("prune", "--older-than", "90d") == "1\n"
    assert len(listed()) == 3
    for wrong in (["list", "--since", "yesterday"], ["prune", "--older-than", "never"]):
        with pytest.raises(InvalidInputError):
            run(*wrong)


def test_limits_are_those_that_were_asked_for(tmp_path: Path) -> None:
    with BerglineServer(tmp_path, "--max-body-mib", "1", "--threads", "2", "--request-timeout", "60") as server:
        assert status_of(server, "POST", "/v1/namespaces", b" " * 2 * 1024 * 1024) == 413
    with BerglineServer(tmp_path, "--body-timeout", "1") as server:
        head = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{"
        told = answer(server, head, ends=False)
        assert told.startswith(b"HTTP/1.1 408") or not told, "nothing is said where the head was late already"
        assert server.is_running


def status_of(server: BerglineServer, method: str, path: str, body: bytes = b"", token: str | None = None) -> int:
    connection = http.client.HTTPConnection(*address(server), timeout=20)
    connection.request(method, path, body, headers={"Authorization": f"Bearer {token}"} if token else {})
    status = connection.getresponse().status
    connection.close()
    return status
