"""`bergline audit`."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bergline.catalog.sql.records import AuditEntry, records_of
from bergline.cli.main import app
from bergline.errors import InvalidInputError
from bergline.lake.lake import connect


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
    with pytest.raises(InvalidInputError, match="nothing was done"):
        run("prune", "--older-than", "90d")
    assert run("prune", "--older-than", "90d", "--yes") == "1\n"
    assert json.loads(run("prune", "--older-than", "90d", "--yes", "--json")) == {"deleted": 0}
    assert run("prune", "--older-than", "999999d", "--yes") == "0\n"
    assert len(listed()) == 3
    for wrong in (["list", "--since", "yesterday"], ["prune", "--older-than", "never"]):
        with pytest.raises(InvalidInputError):
            run(*wrong)
