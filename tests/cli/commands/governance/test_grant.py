"""`bergline grant`, `revoke`, `grants`, `role` and `owner`."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bergline.cli.main import app
from bergline.errors import InvalidInputError
from bergline.lake.lake import connect


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    connect(uri, create=True).close()
    return uri


def run(catalog: str, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--catalog", catalog], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def values(catalog: str, *words: str) -> Any:
    return json.loads(run(catalog, *words, "--json"))


def test_grants_in_words(catalog: str) -> None:
    first = run(catalog, "grant", "administer", "on", "catalog", "to", "root")
    assert first == "granted administer on catalog to root\n"
    assert run(catalog, "role", "create", "etl", "ann") == "created role `etl`\n"
    run(catalog, "role", "add", "etl", "group:loaders", "bob")
    run(catalog, "role", "remove", "etl", "bob")
    assert values(catalog, "role", "list") == [{"role": "etl", "members": ["group:loaders", "ann"]}]
    granted = values(catalog, "grant", "read,write", "on", "table", "db.orders", "to", "role:etl")
    assert granted == {"granted": ["read on table db.orders to role:etl", "write on table db.orders to role:etl"]}
    run(catalog, "grant", "publish", "on", "table", "db.orders", "ref", "release/*", "to", "ann")
    assert values(catalog, "grants", "--to", "ann") == [
        {"privilege": "publish", "on": "table db.orders", "ref": "release/*", "to": "ann"}
    ]
    assert len(values(catalog, "grants", "--on", "table db.orders")) == 3
    revoked = run(catalog, "revoke", "write", "on", "table", "db.orders", "from", "role:etl")
    assert revoked == "revoked the grant write on table db.orders to role:etl\n"
    assert "role:etl  read" in run(catalog, "grants")
    run(catalog, "role", "drop", "etl", "--yes")
    assert [one["to"] for one in values(catalog, "grants")] == ["root", "ann"]


def test_owner_is_shown_and_changed(catalog: str) -> None:
    assert run(catalog, "owner", "table", "db.orders") == "table `db.orders` has no owner\n"
    assert run(catalog, "owner", "table", "db.orders", "group:team") == "table `db.orders` belongs to group:team\n"
    assert values(catalog, "owner", "table", "db.orders") == {"on": "table db.orders", "owner": "group:team"}


def test_words_that_are_no_grant_are_refused(catalog: str) -> None:
    with pytest.raises(InvalidInputError, match="expected `to`, found `for`"):
        run(catalog, "grant", "read", "on", "catalog", "for", "ann")
