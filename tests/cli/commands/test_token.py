"""`bergline token`."""

import http.client
import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bergline.catalog.sql.records import records_of
from bergline.cli.main import app
from bergline.errors import InvalidInputError, NotFoundError
from bergline.lake.lake import connect
from support.servers.bergline_server import BerglineServer


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
            connection = http.client.HTTPConnection(*server.address, timeout=20)
            connection.request("GET", "/v1/config", headers=header)
            assert connection.getresponse().status == status
            connection.close()
    run("revoke", "ann")
    with pytest.raises(NotFoundError):
        run("revoke", "ann")
    with pytest.raises(InvalidInputError, match="90d"):
        run("create", "bob", "--expires-in", "soon")


def test_the_audit_log_has_what_became_of_tokens(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    connect(catalog, create=True).close()
    commands = (
        ["create", "ann"],
        ["rotate", "ann"],
        ["revoke", "ann"],
        ["revoke", "--jti", "17"],
        ["revoke", "--principal", "corp:ann"],
    )
    for command in commands:
        done = CliRunner().invoke(app, ["token", *command, "--catalog", catalog], catch_exceptions=False)
        assert done.exit_code == 0
    with pytest.raises(NotFoundError):
        CliRunner().invoke(app, ["token", "revoke", "bob", "--catalog", catalog], catch_exceptions=False)
    shown = CliRunner().invoke(app, ["audit", "list", "--json", "--catalog", catalog], catch_exceptions=False)
    found = {(row["operation"], row["resource"]) for row in json.loads(shown.stdout)}
    assert found == {
        ("token-create", "token/ann"),
        ("token-rotate", "token/ann"),
        ("token-revoke", "token/ann"),
        ("token-revoke", "jti/17"),
        ("token-revoke", "principal/corp:ann"),
    }


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
        assert server.status("GET", "/v1/config") == 401
        assert server.status("GET", "/v1/config", token=token) == 200


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
    made = run("token", "create", "eve", "--json")
    assert json.loads(made.stdout)["token"].startswith("bl_")
    assert json.loads(run("token", "revoke", "eve", "--json").stdout) == {"revoked": "eve"}
    assert "ann" not in run("token", "list").stdout


def test_secret_is_rotated_while_the_old_one_goes_on_working(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["token", *arguments, "--catalog", catalog], catch_exceptions=False)

    old = run("create", "ci-1", "--for", "ci", "--group", "etl", "--group", "dev").stdout.strip()
    rotated = run("rotate", "ci-1", "--overlap", "2h")
    new = rotated.stdout.strip()
    assert "older secrets of `ci-1` work until " in rotated.stderr
    assert len({old, new}) == 2
    with connect(catalog) as lake:
        found = [records_of(lake.catalog).tokens.find(token) for token in (old, new)]
    assert [token and token.principal for token in found] == ["ci", "ci"]
    last = json.loads(run("rotate", "ci-1", "--overlap", "0m", "--expires-in", "90d", "--json").stdout)
    assert last["expires"] is not None
    (listed,) = json.loads(run("list", "--json").stdout)
    assert (listed["name"], listed["principal"], listed["groups"]) == ("ci-1", "ci", ["dev", "etl"])
    assert listed["expires"] == last["expires"]
    assert listed["old_secret_until"] is not None
    shown = run("list").stdout
    assert "dev, etl" in shown
    assert not any(secret in shown for secret in (old, new, last["token"]))
    with pytest.raises(NotFoundError, match="no token `ci`"):
        run("rotate", "ci")
    with pytest.raises(InvalidInputError, match="duration"):
        run("rotate", "ci-1", "--overlap", "soon")


def test_tokens_of_issuers_are_revoked_by_id_and_principal(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    connect(catalog, create=True).close()

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["token", *arguments, "--catalog", catalog], catch_exceptions=False)
        return done.stdout

    run("create", "etl", "--for", "ann")
    assert json.loads(run("revoke", "--jti", "4711", "--json")) == {"revoked": "4711"}
    run("revoke", "--principal", "corp:ann", "--issued-before", "2026-01-31T12:00Z")
    run("revoke", "--principal", "ann")
    assert json.loads(run("list", "--json")) == []
    listed = json.loads(run("revoked", "--json"))
    assert [(one["kind"], one["name"], one["issued_before"]) for one in listed[1:]] == [
        ("principal", "corp:ann", "2026-01-31T12:00:00+00:00"),
        ("jti", "4711", None),
    ]
    assert listed[0]["name"] == "ann"
    assert listed[0]["issued_before"] == listed[0]["revoked"]
    for wrong in (
        [],
        ["etl", "--jti", "1"],
        ["--jti", "1", "--principal", "p"],
        ["--jti", "1", "--issued-before", "1d"],
    ):
        with pytest.raises(InvalidInputError, match="expected"):
            run("revoke", *wrong)
