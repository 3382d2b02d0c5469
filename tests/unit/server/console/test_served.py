"""The console of a server: the API's tokens, the API's audit log, the API's order of commits."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

import msgspec
import pyarrow as pa
import pytest

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import AuthenticationError, ConflictError, ProtectedRefError, RefusedError
from bergline.governance.events.model import EventFilter
from bergline.governance.grants.grant import principal
from bergline.governance.grants.securable import parse_securable
from bergline.lake.lake import Lake
from bergline.server.console.served import ServedLake
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import SCHEMA, TOKEN, AsgiClient, AsgiResponse, bearer
from support.servers.granted_server import GrantedServer

LOCAL = {"host": "localhost:8181"}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["db"],
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
}


@pytest.fixture
def served(context: ServerContext) -> ServerContext:
    lake = Lake(context.catalog, "lake")
    lake.create_namespace("db")
    lake.create_table("db.orders", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    return context


def hidden(page: AsgiResponse, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"'.encode(), page.body)
    assert found, page
    return found[1].decode()


def test_action_is_in_the_audit_log_with_who_did_it(served: ServerContext) -> None:
    with AsgiClient(served) as client:
        path = "/table/actions/create-tag"
        form = client("GET", path, query={"name": "db.orders"}, headers=LOCAL)
        headers = LOCAL | {"cookie": form.headers["set-cookie"].partition(";")[0]}
        answers = {"csrf": hidden(form, "csrf"), "name": "db.orders", "new": "v1"}
        review = client("POST", path, urlencode(answers).encode(), headers=headers)
        assert review.status == 200
        assert served.records.audit() == []
        answers |= {"confirm": hidden(review, "confirm"), "moment": hidden(review, "moment")}
        assert client("POST", path, urlencode(answers).encode(), headers=headers).status == 200
    (entry,) = served.records.audit()
    assert (entry.principal, entry.operation, entry.resource) == ("anonymous", "commit_table", "table/db/orders")
    assert entry.agent == "bergline console: create-tag"
    assert entry.metadata_location == served.catalog.pointer(Lake(served.catalog, "x").load_table("db.orders").name)


def test_what_comes_back_from_the_trash_is_in_the_audit_log(served: ServerContext) -> None:
    lake = Lake(served.catalog, "lake")
    name = lake.load_table("db.orders").name
    with served.store.database.changing() as connection:
        kept = DroppedTable(name, served.catalog.pointer(name), 1, 2, "ann", purges_files=False)
        served.store.table_trash.add(connection, kept)
    lake.drop_table(name)
    ServedLake(served).change("bob", "undrop-table", name, lambda: lake.undrop_table(name))
    (entry,) = served.records.audit()
    assert (entry.principal, entry.operation, entry.resource) == ("bob", "undrop_table", "table/db/orders")


@pytest.mark.parametrize("kind", ["table", "view"])
def test_what_comes_back_under_another_name_is_recorded_as_by_the_api(granted: GrantedServer, kind: str) -> None:
    context = granted.context
    context.settings = msgspec.structs.replace(context.settings, drop_retention_s=3600)
    made = {"name": "x", "schema": SCHEMA} | ({} if kind == "table" else {"properties": {}, "view-version": VERSION})
    granted("root", "POST", f"/v1/namespaces/db/{kind}s", made)
    granted.direct.set_owner(parse_securable(f"{kind} db.x"), principal("ann"))
    host, old, lake = ServedLake(context), TableName(("db",), "x"), Lake(context.catalog, "lake")
    undrop = lake.undrop_table if kind == "table" else lake.undrop_view

    def recorded(new: str, act: Callable[[], object]) -> tuple[object, ...]:
        """What the audit log, the events and the owners say of it."""
        assert granted("root", "DELETE", f"/v1/namespaces/db/{kind}s/x").status == 204
        act()
        (entry,) = context.records.newest_audit(1)
        (event,) = context.events.latest(1, EventFilter()).events
        owner = granted.direct.owners()[parse_securable(f"{kind} db.{new}")]
        rename = {"source": {"namespace": ["db"], "name": new}, "destination": {"namespace": ["db"], "name": "x"}}
        assert granted("root", "POST", f"/v1/{kind}s/rename", rename).status == 204
        texts = entry.operation, entry.resource, event.type, event.subject, event.data[kind], str(owner)
        return tuple(text.replace(new, "NEW") for text in texts)

    api = {"destination": {"namespace": ["db"], "name": "one"}}
    by_api = recorded("one", lambda: granted("root", "POST", f"/bergline/v1/namespaces/db/{kind}s/x/undrop", api))
    new = TableName(("db",), "two")
    by_console = recorded("two", lambda: host.change("root", f"undrop-{kind}", old, lambda: undrop(old, new)))
    assert by_api == (f"undrop_{kind}", f"{kind}/db/NEW", f"{kind}.undrop", f"{kind}/db/NEW", "db.NEW", "ann")
    assert by_console == by_api


def test_api_and_console_share_the_address(served: ServerContext) -> None:
    with AsgiClient(served) as client:
        assert client("GET", "/v1/namespaces").json["namespaces"] == [["db"]]
        assert client("GET", "/health").status == 200
        assert b"db.orders" in client("GET", "/", headers=LOCAL).body
        assert [t["name"] for t in client("GET", "/lake.json", headers=LOCAL).json["tables"]] == ["db.orders"]
        assert client("GET", "/nothing").error == (404, "NotFoundException")
        page = client("GET", "/nothing", headers=LOCAL | {"accept": "text/html"})
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert client("GET", "/x/v1/config", headers=LOCAL | {"accept": "text/html"}).json["error"]["code"] == 404
        assert client("GET", "/table/rows", query={"name": "db.orders"}, headers=LOCAL).status == 200
        assert b'operation="console"' in client("GET", "/metrics").body


def test_console_forbids_what_the_api_forbids(served: ServerContext, guarded: ServerContext) -> None:
    with AsgiClient(guarded) as client:
        query = {"name": "db.orders"}
        assert client("GET", "/table/rows", query=query, headers=LOCAL).status == 303
        assert client("GET", "/table/rows.json", query=query, headers=LOCAL).status == 401
        assert client("GET", "/table/rows.json", query=query, headers=LOCAL | bearer("bl_old")).status == 401
        assert client("GET", "/table/rows.json", query=query, headers=LOCAL | bearer(TOKEN)).status == 200


def test_expired_token_is_no_token(guarded: ServerContext) -> None:
    host = ServedLake(guarded)
    assert host.needs_token
    assert host.caller(TOKEN, "").name == "ann"
    for wrong in (None, "bl_old", "bl_other"):
        with pytest.raises(AuthenticationError):
            host.caller(wrong, "")


def test_open_server_answers_no_page_of_another_site_and_no_rebound_name(served: ServerContext) -> None:
    with AsgiClient(served) as client:
        for headers in ({"host": "evil.example"}, LOCAL | {"origin": "http://evil.example"}):
            assert client("GET", "/audit", headers=headers).status == 403
    with pytest.raises(RefusedError):
        ServedLake(served).check_origin({"host": "evil.example"})
    ServedLake(served, any_host=True).check_origin({"host": "lake.example"})


def test_lost_conflict_is_recorded_and_the_lock_is_free_again(served: ServerContext) -> None:
    host = ServedLake(served)
    name = host.lake.load_table("db.orders").name

    def lose() -> None:
        raise ConflictError("`main` moved")

    for _ in range(2):
        with pytest.raises(ConflictError):
            host.change("ann", "merge", name, lose)
    assert served.records.audit() == []
    found = served.records.newest_audit(9, conflicts=True)
    assert [(e.principal, e.conflict) for e in found] == [("ann", "`main` moved")] * 2


def test_conflict_that_a_client_of_the_api_loses_is_recorded(served: ServerContext) -> None:
    with AsgiClient(served) as client:
        wrong = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7}]
        update = {"action": "set-properties", "updates": {"a": "b"}}
        agent = {"user-agent": "Trino/480"}
        assert client.commit(update, requirements=wrong, headers=agent).status == 409
        key = {"Idempotency-Key": "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"}
        for _ in range(2):  # the second time is the same request
            assert client.commit(update, requirements=wrong, headers=agent | key).status == 409
        found = served.records.newest_audit(9, conflicts=True)
        assert [(e.resource, e.agent) for e in found] == [("table/db/orders", "Trino/480")] * 2
        assert all(e.conflict and "main" in e.conflict for e in found)


def test_rules_about_refs_know_who_acts_in_the_console(served: ServerContext) -> None:
    lake = Lake(served.catalog, "lake")
    orders = lake.load_table("db.orders")
    orders.refs.create_branch("dev")
    orders.refs.protect("dev", no_drop=True, bypass=["ann"])
    host = ServedLake(served)
    with pytest.raises(ProtectedRefError, match="`dev`"):
        host.change("bob", "drop-branch", orders.name, lambda: lake.load_table("db.orders").refs.drop_branch("dev"))
    host.change("ann", "drop-branch", orders.name, lambda: lake.load_table("db.orders").refs.drop_branch("dev"))
    operations = [(entry.principal, entry.operation) for entry in served.records.audit()]
    assert operations == [("ann", "commit_table"), ("ann", "bypass_ref_rule:dev")]


def test_review_says_what_a_rule_forbids_before_anything_is_confirmed(served: ServerContext) -> None:
    orders = Lake(served.catalog, "lake").load_table("db.orders")
    orders.refs.create_branch("dev")
    orders.refs.protect("dev", no_drop=True)
    with AsgiClient(served) as client:
        path = "/table/actions/drop-ref"
        form = client("GET", path, query={"name": "db.orders"}, headers=LOCAL)
        headers = LOCAL | {"cookie": form.headers["set-cookie"].partition(";")[0]}
        answers = {"csrf": hidden(form, "csrf"), "name": "db.orders", "ref": "dev"}
        review = client("POST", path, urlencode(answers).encode(), headers=headers)
    assert review.status == 403
    assert b"is protected by the rule" in review.body
    assert b'name="confirm"' not in review.body


def test_pull_request_is_changed_with_audit_rows_of_what_moved(served: ServerContext) -> None:
    host = ServedLake(served)
    lake = host.lake
    lake.branch("work", ["db.orders"])
    lake.load_table("db.orders").append(pa.table({"id": [2]}), branch="work")
    lake.pull_requests.open("work")
    request = lake.pull_requests.get(1)
    host.change_pull_request("ann", "comment", 1, lambda: request.comment("fine"))
    host.change_pull_request("ann", "publish", 1, request.publish)
    *_, published = served.events.latest(9, EventFilter(types=("pull-request.*",))).events
    shown = {"number": 1, "title": "Publish work", "state": "published", "branch": "work", "target": "main"}
    assert (published.type, published.data) == ("pull-request.publish", shown | {"tables": ["db.orders"]})
    with pytest.raises(ConflictError):
        host.change_pull_request("ann", "close", 1, request.close)
    rows = [
        (e.principal, e.operation, e.resource, e.conflict is None)
        for e in served.records.newest_audit(9, conflicts=True)
    ]
    assert rows[::-1] == [
        ("ann", "comment_pull_request", "pull-request/1", True),
        ("ann", "publish_pull_request", "table/db/orders", True),
        ("ann", "close_pull_request", "pull-request/1", False),
    ]
