"""What the audit of requests keeps: who read, got keys or was refused, and how often."""

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from bergline.catalog.rest.protocol.endpoints import LOAD_TABLE
from bergline.errors import InvalidInputError, UnavailableError
from bergline.governance.audit.store import AuditedRequest, AuditKind, SqlAuditedRequests
from bergline.server.access import request_audit
from bergline.server.access.request_audit import OTHERS, RequestAudit, folded
from bergline.server.context.context import ServerContext
from bergline.server.credentials.vending import StaticVending
from bergline.server.http.request import Request
from support.servers.asgi_client import SCHEMA, TOKEN, AsgiClient, bearer, set_branch, snapshot
from support.servers.granted_server import GrantedServer

ORDERS = "/v1/namespaces/db/tables/orders"
Line = tuple[str, str, str, str, int]


def store_of(context: ServerContext) -> SqlAuditedRequests:
    return SqlAuditedRequests(context.records.database, context.records.catalog_name)


def written(context: ServerContext, *, skipping: str = "root") -> list[Line]:
    context.request_audit.write(is_last=True)
    kinds = set(AuditKind) - {AuditKind.CHANGE, AuditKind.CONFLICT}
    lines = store_of(context).lines(kinds=kinds)
    return [(x.kind, x.principal, x.operation, x.resource, x.count) for x in lines if x.principal != skipping]


def asked(principal: str = "ann", table: str = "orders") -> Request:
    return Request(LOAD_TABLE, {"namespace": "db", "table": table}, {}, {}, b"", "\x1f", principal, address="192.0.2.1")


def test_reads_denials_and_what_is_hidden_are_told_apart(granted: GrantedServer) -> None:
    granted.grant("read", "table db.orders", "ann")
    granted.grant("list", "table db.orders", "bob")
    assert granted("ann", "GET", ORDERS).status == 200
    assert granted("ann", "POST", f"{ORDERS}/plan", {}).status == 200
    assert granted("ann", "DELETE", ORDERS).status == 403
    assert granted("bob", "GET", ORDERS).status == 403
    assert granted("bob", "GET", "/v1/namespaces/db/tables/secret").status == 404
    assert granted("bob", "GET", "/v1/namespaces/other/views/secret").status == 404
    assert granted("bob", "POST", "/v1/namespaces/other/tables", {"name": "t", "schema": SCHEMA}).status == 404
    assert granted("bob", "GET", "/v1/namespaces/db/views").status == 200
    assert granted("ann", "GET", "/v1/config").status == 200
    assert written(granted.context) == [
        ("read", "ann", "load_table", "table/db/orders", 1),
        ("read", "ann", "plan_table_scan", "table/db/orders", 1),
        ("denied", "ann", "drop_table", "table/db/orders", 1),
        ("denied", "bob", "load_table", "table/db/orders", 1),
        ("denied", "bob", "load_table", "table/db/secret", 1),
        ("denied", "bob", "load_view", "view/other/secret", 1),
        ("denied", "bob", "create_table", "namespace/other", 1),
        ("read", "bob", "list_views", "namespace/db", 1),
    ]


def test_denied_commits_are_audited(granted: GrantedServer) -> None:
    granted.grant("read", "table db.orders", "ann")
    update = {"action": "set-properties", "updates": {"a": "b"}}
    key = {"Idempotency-Key": "00000000-0000-4000-8000-000000000001"}
    assert granted.commit("ann", update).status == 403
    assert granted.commit("bob", update).status == 404
    body = {"requirements": [], "updates": [update]}
    assert granted("bob", "POST", ORDERS, body, headers=key).status == 404
    assert granted("bob", "DELETE", ORDERS, headers=key).status == 404
    assert sorted(written(granted.context)) == [
        ("denied", "ann", "commit_table", "table/db/orders", 1),
        ("denied", "bob", "commit_table", "table/db/orders", 1),
        ("denied", "bob", "commit_table", "table/db/orders", 1),
        ("denied", "bob", "drop_table", "table/db/orders", 1),
    ]


def test_denials_for_other_reasons_are_counted_apart(granted: GrantedServer) -> None:
    granted.grant("write", "table db.orders", "ann", "load/*")
    for number in (1, 1, 2):
        main, tag = set_branch("main", 1), {**set_branch("v1", 1), "type": "tag"}
        assert granted.commit("ann", snapshot(1, 1), main if number == 1 else tag).status == 403
    granted.context.request_audit.write(is_last=True)
    found = [
        (x.count, "ref `main`" in (x.detail or "")) for x in store_of(granted.context).lines() if x.kind == "denied"
    ]
    assert sorted(found) == [(1, False), (1, True), (1, True)]


def test_hidden_pull_requests_are_denials(granted: GrantedServer) -> None:
    assert granted.commit("root", snapshot(1, 1), set_branch("main", 1), set_branch("work", 1)).status == 200
    opened = granted("root", "POST", "/bergline/v1/pull-requests", {"branch": "work", "title": "t"})
    assert opened.status == 200, opened
    for number in (1, 2):  # one that is hidden, and one that is not there
        assert granted("bob", "GET", f"/bergline/v1/pull-requests/{number}").status == 404
    assert written(granted.context) == [("denied", "bob", "load_pull_request", "pull-request/1", 1)]


def test_branch_of_the_lake_that_is_not_dropped_is_named(granted: GrantedServer) -> None:
    assert granted("root", "POST", "/bergline/v1/lake-branches", {"name": "a/b"}).status == 200
    assert granted("bob", "DELETE", "/bergline/v1/lake-branches/a%2Fb").status == 403
    assert written(granted.context) == [("denied", "bob", "drop_lake_branch", "lake-branch/a/b", 1)]


def test_missing_table_is_no_denial(client: AsgiClient) -> None:
    client.namespace("db")
    assert client("GET", ORDERS).status == 404
    assert written(client.application.context) == []


def test_failed_logins_are_counted_whatever_they_send(guarded: ServerContext) -> None:
    with AsgiClient(guarded) as client:
        assert client("GET", ORDERS, headers=bearer("bl_wrong")).status == 401
        assert client("POST", "/v1/namespaces", {}, headers=bearer("bl_old")).status == 419
        assert client("GET", "/v1/config").status == 401
        form = b"grant_type=client_credentials&client_secret=bl_guess"
        assert client("POST", "/v1/oauth/tokens", form).status == 401
        assert client("GET", "/lake.json", headers=bearer("bl_guess")).status == 401
        assert client("GET", "/", headers={"Cookie": "bergline-token-default=bl_guess"}).status == 303
        assert client("GET", "/").status == 303  # a browser that is shown where to sign in
        assert client("GET", "/v1/config", headers=bearer(TOKEN)).status == 200
    lines = written(guarded)
    assert {line[:4] for line in lines} == {("failed-login", "", "authenticate", "")}
    assert sum(line[4] for line in lines) == 6
    assert "bl_guess" not in str(list(store_of(guarded).lines()))


def test_pages_of_the_console_are_reads(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()
    assert client("GET", "/table", query={"name": "db.orders"}).status == 200
    assert client("GET", "/static/console.css").status in {200, 404}
    assert written(client.application.context) == [("read", "anonymous", "console /table", "table/db/orders", 1)]


def test_vended_credentials_are_audited(context: ServerContext, client: AsgiClient) -> None:
    client.namespace("db")
    client.table()
    wish = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    keys = {"s3.access-key-id": "k", "s3.secret-access-key": "very-secret"}
    context.credentials.vending = StaticVending(keys)
    assert client("GET", f"{ORDERS}/credentials", headers=wish).json == {"storage-credentials": []}
    context.loads = type(context.loads)({})
    context.loads.directories(context.catalog.pointer(asked().table), lambda: ("s3://b/t",))
    for path in (f"{ORDERS}/credentials", ORDERS, ORDERS):
        assert client("GET", path, headers=wish).json["storage-credentials"]
    assert client("GET", ORDERS).status == 200
    assert sorted(line for line in written(context) if line[0] == "credentials") == [
        ("credentials", "anonymous", "load_credentials", "table/db/orders", 1),
        ("credentials", "anonymous", "load_table", "table/db/orders", 1),
        ("credentials", "anonymous", "load_table", "table/db/orders", 1),
    ]
    assert "very-secret" not in str(list(store_of(context).lines()))


def test_first_is_written_at_once_and_the_rest_at_the_end_of_the_minute(context: ServerContext) -> None:
    now = [1_000_000]
    audit = RequestAudit(store_of(context), clock_ms=lambda: now[0])
    audit.write()

    def lines() -> list[tuple[str, int, str | None]]:
        audit.write()
        return [(x.time[17:], x.count, x.until and x.until[17:]) for x in store_of(context).lines()]

    for _ in range(1000):
        audit.note(AuditKind.READ, asked())
        now[0] += 10
    assert lines() == [("40.000Z", 1, None)]
    now[0] += 60_000
    assert lines() == [("40.000Z", 1, None), ("40.010Z", 999, "49.990Z")]
    audit.note(AuditKind.READ, asked())
    assert lines()[2:] == [("50.000Z", 1, None)]
    now[0] += 60_000
    assert len(lines()) == 3


def test_nothing_is_lost_in_number(context: ServerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_audit, "_MOST_KEYS", 10)
    monkeypatch.setattr(request_audit, "_MOST_WAITING", 5)
    for number in range(100):
        context.request_audit.note(AuditKind.DENIED, asked(f"caller-{number}"))
    context.request_audit.note(AuditKind.READ, asked())
    real = SqlAuditedRequests.add

    def fail(*_: Any) -> None:
        raise UnavailableError("locked")

    sink = context.request_audit._sinks[0]
    monkeypatch.setattr(sink, "_write", fail)
    context.request_audit.write()
    assert len(sink._waiting) <= 10
    monkeypatch.setattr(sink, "_write", lambda rows: real(store_of(context), rows))
    lines = written(context)
    assert sum(line[4] for line in lines if line[0] == "denied") == 100
    assert sum(line[4] for line in lines if line[0] == "read") == 1
    assert {line[3] for line in lines} == {OTHERS, "table/db/orders"}


def test_folded_rows_keep_number_and_time() -> None:
    rows = [AuditedRequest(at, kind, "a", "b", "c", "d", count=2) for kind in AuditKind for at in (7, 5)]
    found = folded([*rows, AuditedRequest(1, AuditKind.READ, "", "", "", "", count=5, until_ms=9)])
    assert {(row.kind, row.at_ms, row.until_ms, row.count) for row in found} == {
        *((kind, 5, 7, 4) for kind in set(AuditKind) - {AuditKind.READ}),
        (AuditKind.READ, 1, 9, 9),
    }


def test_lines_go_to_a_file_that_only_the_server_reads(context: ServerContext, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = RequestAudit(store_of(context), file=str(path))
    audit.start()
    audit.note(AuditKind.SIGNATURE, asked("a\0b\nc"), "PUT")
    audit.note(AuditKind.SIGNATURE, asked("a\0b\nc"), "PUT")
    audit.write()
    path.rename(tmp_path / "audit.jsonl.1")  # as logrotate does
    audit.stop()
    old, new = ((tmp_path / name).read_text().splitlines() for name in ("audit.jsonl.1", "audit.jsonl"))
    first, counted = json.loads(old[0]), json.loads(new[-1])
    assert (first["principal"], first["detail"], first["resource"]) == ("a\ufffdb\nc", "PUT", "table/db/orders")
    assert (first["kind"], first["address"], "count" in first) == ("signature", "192.0.2.1", False)
    assert sum(json.loads(line).get("count", 1) for line in (*old, *new)) == 2
    assert counted["principal"] == first["principal"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(list(store_of(context).lines())) == len([*old, *new])


def test_no_text_holds_up_the_others(context: ServerContext, tmp_path: Path) -> None:
    audit = RequestAudit(store_of(context), file=str(tmp_path / "audit.jsonl"))
    audit.note(AuditKind.READ, asked("a\ud800\0" + "x" * 1000, "t" * 5000), "\udfff")
    audit.note(AuditKind.READ, asked())
    audit.write()
    (found, _) = store_of(context).lines()
    assert (found.principal[:3], len(found.principal), len(found.resource)) == ("a?\ufffd", 255, 1000)
    assert len((tmp_path / "audit.jsonl").read_text().splitlines()) == 2


def test_file_that_cannot_be_written_is_said_at_the_start(context: ServerContext, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot write the audit log .*: No such file"):
        RequestAudit(store_of(context), file=str(tmp_path / "missing/audit.jsonl")).start()


def test_file_that_fails_does_not_stop_the_database(context: ServerContext, caplog: pytest.LogCaptureFixture) -> None:
    audit = RequestAudit(store_of(context), file=os.devnull + "/x")
    audit.note(AuditKind.READ, asked())
    audit.write()
    audit.write()
    assert caplog.text.count("cannot write the audit of requests to its file") == 1
    assert len(list(store_of(context).lines())) == 1


def test_reads_can_be_left_out(context: ServerContext) -> None:
    context.request_audit = RequestAudit(store_of(context), with_reads=False)
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        assert client("GET", ORDERS).status == 200
        assert client("GET", "/").status == 200
    assert written(context) == []


def test_old_rows_are_deleted(context: ServerContext) -> None:
    now = time.time_ns() // 1_000_000
    for age_s in (0, 50, 200, 300):
        store_of(context).add([AuditedRequest(now - 1000 * age_s, AuditKind.READ, "ann", "", "load_table", "t")])
    RequestAudit(store_of(context)).prune()
    assert len(list(store_of(context).lines())) == 4
    RequestAudit(store_of(context), retention_s=100).prune()
    assert len(list(store_of(context).lines())) == 2
