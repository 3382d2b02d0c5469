"""`bergline serve` and `bergline token` as programs."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bergline.cli.main import app, main
from support.processes.command_line import run_here
from support.servers.bergline_server import BerglineServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    directory = tmp_path_factory.mktemp("served")
    with BerglineServer(directory, "--access-log", "json") as started:
        yield started
    lines = [line for line in (directory / "log.txt").read_text().splitlines() if line.startswith("{")]
    assert ("GET", "/v1/namespaces", 200) in {(a["method"], a["path"], a["status"]) for a in map(json.loads, lines)}


def answer(server: BerglineServer, data: bytes, *, ends: bool = True) -> bytes:
    """What comes back for raw bytes, until the server closes; with an end, or with more that never comes."""
    with socket.create_connection(server.address, timeout=20) as connection:
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
    connection = http.client.HTTPConnection(*server.address, timeout=20)
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--oidc-issuer", "https://id.example"], "both --oidc-issuer and --oidc-audience"),
        (["--oidc-audience", "lake"], "both --oidc-issuer and --oidc-audience"),
        (["--oidc-issuer", "https://id.example", "--oidc-audience", "a", "--anonymous"], "found both"),
        (["--oidc-issuer", "http://id.example", "--oidc-audience", "a"], "with https"),
        (["--oidc-issuer", "https://id.example", "--oidc-audience", "a", "--oidc-alias", "corp"], "each alias"),
    ],
)
def test_issuers_that_leave_something_open_are_refused(arguments: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "bergline.toml").write_text('[oidc.corp]\nissuer = "https://corp.example"\naudience = "lake"\n')
    done = run_here("serve", "--port", "0", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--tls-cert", "c"], "expected both --tls-cert and --tls-key"),
        (["--tls-key", "k"], "expected both --tls-cert and --tls-key"),
        (["--tls-client-ca", "a"], "expected both --tls-cert and --tls-key"),
        (["--tls-cert", "c", "--tls-key", "k"], "expected PEM files for --tls-cert and --tls-key"),
    ],
)
def test_tls_is_never_left_out_by_mistake(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = run_here("serve", "--port", "0", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


def test_no_audit_retention_is_not_said_by_zero(tmp_path: Path) -> None:
    done = run_here("serve", "--port", "0", "--audit-retention", "0d", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "longer than 0" in done.stderr


def test_server_stays_closed_without_its_last_token_until_it_is_told_otherwise(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    for command in ("create", "revoke"):
        CliRunner().invoke(app, ["token", command, "ann", "--catalog", catalog], catch_exceptions=False)
    with BerglineServer(tmp_path, "--anonymous") as server:
        assert server.status("GET", "/v1/config") == 200
    said = "nobody can come in: the last token was revoked"
    assert said not in (tmp_path / "log.txt").read_text()
    with BerglineServer(tmp_path) as server:  # it was told so for once
        assert server.status("GET", "/v1/config") == 401
        assert server.status("GET", "/health") == 200
    assert said in (tmp_path / "log.txt").read_text()


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks at the memory of a process of Linux")  # noqa: PTH110
def test_memory_does_not_follow_what_is_sent(server: BerglineServer) -> None:
    def memory() -> int:
        return int(Path(f"/proc/{server._process.pid}/statm").read_text().split()[1]) * 4096

    before = memory()
    with socket.create_connection(server.address, timeout=20) as connection:
        try:
            connection.sendall(b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(200):
                connection.sendall(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
        except OSError:
            pass
    assert memory() - before < 150 * 1024 * 1024


def test_limits_are_those_that_were_asked_for(tmp_path: Path) -> None:
    limits = ("--max-body-mib", "1", "--threads", "2", "--request-timeout", "60", "--body-timeout", "1")
    with BerglineServer(tmp_path, *limits) as server:
        assert server.status("POST", "/v1/namespaces", b" " * 2 * 1024 * 1024) == 413
        head = b"POST /v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{"
        told = answer(server, head, ends=False)
        assert told.startswith(b"HTTP/1.1 408") or not told, "nothing is said where the head was late already"
        assert server.is_running
