"""The commands on a REST server: every one that looks works there, with a token that no command line shows."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bergline
from bergline.cli.main import app, main
from bergline.errors import AuthenticationError
from support.fixtures.rows import ORDERS, order_rows
from support.servers.bergline_server import BerglineServer

NAME = "sales"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sales")


@pytest.fixture(scope="module")
def token(directory: Path) -> str:
    """A token for a catalog that has a name of its own, made as the guide says."""
    catalog = f"sqlite:///{directory}/catalog.db"
    with bergline.connect(catalog, name=NAME, create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS).append(order_rows(1)).refs.create_tag("v1")
        broken = lake.create_table("db.broken", ORDERS)
        Path(broken.metadata_location.removeprefix("file://")).write_text("{")
    arguments = ["token", "create", "ann", "--name", NAME, "--catalog", catalog]
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout.strip()


@pytest.fixture(scope="module")
def server(directory: Path, token: str) -> Iterator[BerglineServer]:
    assert token
    with BerglineServer(directory, "--name", NAME) as started:
        yield started


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that fails says."""
    monkeypatch.setattr(sys, "argv", ["bergline", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["refs {}", "table inspect {} snapshots", "table inspect {} history", "explain-expiry {}"]
)
def test_every_command_that_looks_works_on_a_server(
    command: str, server: BerglineServer, directory: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERGLINE_TOKEN", token)
    found = [
        CliRunner()
        .invoke(app, [*command.format("db.orders").split(), "--json", *options], catch_exceptions=False)
        .stdout
        for options in (["--catalog", server.uri], ["--catalog", f"sqlite:///{directory}/catalog.db", "--name", NAME])
    ]
    assert json.loads(found[0]) == json.loads(found[1])
    assert json.loads(found[0])


def test_table_that_the_server_cannot_read_is_listed_beside_the_others(
    server: BerglineServer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERGLINE_TOKEN", token)
    done = CliRunner().invoke(app, ["table", "list", "--json", "--catalog", server.uri])
    assert done.exit_code == 1
    broken, orders = json.loads(done.stdout)
    assert (broken["table"], orders["table"], orders["rows"]) == ("db.broken", "db.orders", 1)
    assert broken["problem"] in done.stderr
    assert "error: cannot show table `db.broken`" in done.stderr


def test_token_of_the_command_line_counts_before_that_of_the_environment(
    server: BerglineServer,
    token: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refs = ("refs", "db.orders", "--catalog", server.uri)
    monkeypatch.delenv("BERGLINE_TOKEN", raising=False)
    assert "hint: give a token as property `token`" in said(monkeypatch, capsys, *refs)
    monkeypatch.setenv("BERGLINE_TOKEN", token)
    assert "hint: the token may be wrong, too old or revoked" in said(
        monkeypatch, capsys, *refs, "--property", "token=wrong"
    )


def test_what_only_the_database_has_is_not_asked_of_a_server(
    server: BerglineServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = said(monkeypatch, capsys, "token", "list", "--catalog", server.uri)
    assert "error: expected the database that the server serves, found the address of a server" in error
    assert "hint: give --catalog as `bergline serve` has it" in error


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("/iceberg", "hint: the address is the part before /v1"),
        ("", "hint: is the server running, and is the address right?"),
    ],
)
def test_address_that_leads_nowhere_is_said(
    place: str, told: str, server: BerglineServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"{server.uri}{place}" if place else "http://127.0.0.1:9"
    assert told in said(monkeypatch, capsys, "table", "list", "--catalog", address)


def test_token_is_taken_as_the_secret_of_a_client(server: BerglineServer, token: str) -> None:
    for credential in (f"ann:{token}", token):
        with bergline.connect(server.uri, properties={"credential": credential}) as lake:
            assert lake.list_namespaces() == ["db"]
    with pytest.raises(AuthenticationError, match="invalid_client"):
        bergline.connect(server.uri, properties={"credential": "ann:wrong"})


def test_maintenance_of_a_table_on_a_server(
    server: BerglineServer, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERGLINE_TOKEN", token)
    with bergline.connect(server.uri, properties={"token": token}) as lake:
        properties = {"bergline.maintain.compaction.min-input-files": "2"}
        table = lake.create_table("db.maintained", ORDERS, properties=properties)
        for number in range(3):
            table.append(order_rows(number))
        steps = [text for step in ("compaction", "manifests", "expiry") for text in ("--step", step)]
        arguments = ["maintain", "db.maintained", "--json", "--catalog", server.uri, *steps]
        found = [json.loads(CliRunner().invoke(app, arguments, catch_exceptions=False).stdout) for _ in range(2)]
        assert [[step["status"] for step in report["tables"][0]["steps"]] for report in found] == [
            ["done", *["nothing to do"] * 2],
            ["nothing to do"] * 3,
        ]
        assert len(table.refresh().scan().plan().files) == 1
