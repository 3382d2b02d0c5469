"""`bergline audit`."""

import getpass
import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bergline.catalog.sql.records import AuditEntry, records_of
from bergline.cli.main import app
from bergline.errors import InvalidInputError
from bergline.lake.lake import connect
from support.servers.bergline_server import BerglineServer


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


def test_requests_are_exported_with_changes_and_nothing_is_lost_when_the_server_is_told_to_end(tmp_path: Path) -> None:
    catalog, log = f"sqlite:///{tmp_path}/catalog.db", tmp_path / "audit.jsonl"
    connect(catalog, create=True).close()

    def run(*arguments: str) -> str:
        return CliRunner().invoke(app, [*arguments, "--catalog", catalog], catch_exceptions=False).stdout

    def exported(*arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run("audit", "export", *arguments).splitlines()]

    token = run("token", "create", "ann").strip()
    with BerglineServer(tmp_path, "--audit-log", str(log), "--trusted-proxy", "10.0.0.0/8") as server:
        assert server.status("POST", "/v1/namespaces", b'{"namespace": ["db"]}', token) == 200
        for _ in range(5):
            assert server.status("GET", "/v1/namespaces/db", token=token) == 200
        for _ in range(3):
            connection = http.client.HTTPConnection(*server.address, timeout=20)
            connection.request("GET", "/v1/config", headers={"X-Forwarded-For": "192.0.2.7"})
            assert connection.getresponse().status == 401
            connection.close()
        server.terminate()
    lines = exported()
    times = [line["time"] for line in lines]
    assert times == sorted(times)
    assert [(x["kind"], x["principal"], x["operation"], x["resource"]) for x in lines if x["kind"] == "change"] == [
        ("change", getpass.getuser(), "token-create", "token/ann"),
        ("change", "ann", "create_namespace", "namespace/db"),
    ]
    reads = exported("--kind", "read")
    assert {(x["principal"], x["resource"], x["address"]) for x in reads} == {("ann", "namespace/db", "127.0.0.1")}
    assert sum(x.get("count", 1) for x in reads) == 5
    failed = exported("--kind", "failed-login", "--since", "1h")
    assert {(x["address"], x.get("detail")) for x in failed} == {("127.0.0.1", "no token")}
    assert sum(x.get("count", 1) for x in failed) == 3
    assert exported("--until", "2020-01-01") == exported("--kind", "conflict") == []
    in_file = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted(map(str, in_file)) == sorted(str(x) for x in lines if x["kind"] != "change")


def test_address_is_what_a_trusted_proxy_says(tmp_path: Path) -> None:
    with BerglineServer(tmp_path, "--audit-log", str(tmp_path / "log"), "--trusted-proxy", "127.0.0.1") as server:
        connection = http.client.HTTPConnection(*server.address, timeout=20)
        connection.request("GET", "/v1/namespaces", headers={"X-Forwarded-For": "198.51.100.1, 192.0.2.7"})
        assert connection.getresponse().status == 200
        connection.close()
        server.terminate()
    assert [json.loads(line)["address"] for line in (tmp_path / "log").read_text().splitlines()] == ["192.0.2.7"]
