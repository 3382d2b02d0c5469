"""The console of a server with grants: pages show what the caller may see, actions do what the caller may do."""

import re
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import pyarrow as pa
import pytest

from bergline.console.pages.registry import PAGES
from bergline.lake.lake import Lake
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import SCHEMA, AsgiResponse
from support.servers.granted_server import GrantedServer

LOCAL = {"host": "localhost:8181"}


@pytest.fixture
def granted(context: ServerContext) -> Iterator[GrantedServer]:
    lake = Lake(context.catalog, "lake")
    for name in ("db.orders", "db.salaries", "other.secret"):
        lake.create_namespace(name.partition(".")[0], if_not_exists=True)
        lake.create_table(name, pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    server = GrantedServer(context, "ann", "bob")
    server.grant("read", "table db.orders", "ann")
    yield server
    server.client.application.close()


def page(server: GrantedServer, who: str, path: str, **query: str) -> AsgiResponse:
    return server(who, "GET", f"/{path}", query=query, headers=LOCAL)


def test_lake_shows_what_may_be_seen(granted: GrantedServer) -> None:
    seen = page(granted, "ann", "lake.json").json
    assert [table["name"] for table in seen["tables"]] == ["db.orders"]
    assert [one["name"] for one in seen["namespaces"]] == ["db"]
    assert (seen["problems"], seen["matching"]) == ([], 1)
    assert page(granted, "bob", "lake.json").json["tables"] == []
    assert len(page(granted, "root", "lake.json").json["tables"]) == 3
    for who in ("ann", "bob"):
        body = page(granted, who, "").body
        assert b"salaries" not in body
        assert b"secret" not in body


def test_pages_of_a_hidden_table_are_those_of_a_missing_one(granted: GrantedServer) -> None:
    for path in (path for path in PAGES if path.startswith("table")):
        query = {"id": "1"} if path == "table/snapshot" else {}
        hidden = page(granted, "ann", f"{path}.json", name="db.salaries", **query)
        missing = page(granted, "ann", f"{path}.json", name="db.salariez", **query)
        assert hidden.status == missing.status == (200 if path == "table/actions" else 404), path
        assert hidden.body.replace(b"salaries", b"salariez") == missing.body
        if not query:
            assert page(granted, "ann", f"{path}.json", name="db.orders").status == 200, path


def test_pages_of_the_whole_are_for_administrators(granted: GrantedServer) -> None:
    for path in ("audit.json", "access.json"):
        assert "expected the privilege `administer`" in page(granted, "ann", path).json["problem"]["message"]
        assert page(granted, "root", path).json["problem"] is None
    grants = page(granted, "root", "access.json", to="ann").json["grants"]
    assert grants == [{"to": "ann", "privilege": "read", "on": "table db.orders", "ref": None}]
    assert b"table db.orders" in page(granted, "root", "access").body
    granted.grant("administer", "table db.orders", "bob")
    assert page(granted, "bob", "audit.json", name="db.orders").json["problem"] is None
    assert page(granted, "bob", "audit.json", name="db.salaries").json["problem"]["message"] == "no table `db.salaries`"


def test_action_needs_the_privilege_for_what_it_does(granted: GrantedServer) -> None:
    path = "/table/actions/create-tag"

    def act(who: str) -> int:
        form = granted(who, "GET", path, query={"name": "db.orders"}, headers=LOCAL)
        headers = LOCAL | {"cookie": form.headers["set-cookie"].partition(";")[0]}
        answers = {"csrf": hidden(form, "csrf"), "name": "db.orders", "new": f"v-{who}"}
        review = granted(who, "POST", path, urlencode(answers).encode(), headers=headers)
        if review.status != 200:
            assert b"manage-refs" in review.body
            return review.status
        answers |= {"confirm": hidden(review, "confirm"), "moment": hidden(review, "moment")}
        return granted(who, "POST", path, urlencode(answers).encode(), headers=headers).status

    assert act("ann") == 403
    granted.grant("manage-refs", "table db.orders", "ann", "v-*")
    assert act("ann") == 200
    assert act("root") == 200
    assert granted("bob", "GET", path, query={"name": "db.orders"}, headers=LOCAL).status == 404


def hidden(response: AsgiResponse, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"'.encode(), response.body)
    assert found, response
    return found[1].decode()


def test_owner_of_a_new_table_sees_nothing_of_the_one_that_had_its_name(granted: GrantedServer) -> None:
    assert granted("root", "DELETE", "/v1/namespaces/db/tables/orders").status == 204
    time.sleep(0.002)  # what is audited has a time in milliseconds
    granted.grant("create", "namespace db", "bob")
    granted("bob", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    for path, of in (("audit.json", "entries"), ("events.json", "events")):
        shown = page(granted, "bob", path, name="db.orders").json
        assert [entry["who"] for entry in shown[of]] == ["bob"], path
        assert len(page(granted, "root", path, name="db.orders").json[of]) == 2


def test_rows_are_those_of_the_tables_own_files(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    salaries = lake.load_table("db.salaries")
    files = [planned.file for planned in salaries.scan().plan().files]
    orders = lake.load_table("db.orders")
    assert page(granted, "ann", "table/rows.json", name="db.orders").json["rows"] == [[1]]
    orders.append_files(files)  # as before there were grants
    told = page(granted, "ann", "table/rows.json", name="db.orders").json
    assert told["rows"] == []
    assert "expected files in the table's own directories" in told["problem"]["message"]
    assert page(granted, "root", "table/rows.json", name="db.orders").json["rows"] == [[1], [1]]


def test_caller_sees_no_more_at_a_ref_than_without(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    for name in ("db.orders", "db.salaries"):
        lake.load_table(name).append(pa.table({"id": [2]}), branch="staging")
    lake.load_table("db.salaries").refs.create_branch("raises")
    assert len(page(granted, "ann", "branch.staging/table/rows.json", name="db.orders").json["rows"]) == 2
    assert [one["name"] for one in page(granted, "ann", "branch.staging/lake.json").json["tables"]] == ["db.orders"]
    for path in PAGES:
        for who in ("ann", "bob"):
            query = {"id": "1"} if path == "table/snapshot" else {}
            seen, missing = (
                page(granted, who, f"time.2030-01-01T00~3A00~3A00Z/{path}", name=name, **query)
                for name in ("db.salaries", "db.salariez")
            )
            assert seen.status == missing.status, path
            if path.startswith("table"):  # others show how long ago things were
                assert visible(seen.body).replace(b"salaries", b"salariez") == visible(missing.body), path
            assert b"secret" not in seen.body
    for path in ("audit.json", "access.json", "branch.staging/audit.json", "branch.staging/access.json"):
        assert "expected the privilege `administer`" in page(granted, "ann", path).json["problem"]["message"]
    hidden_ref, no_ref = (page(granted, "ann", "at", at=name) for name in ("raises", "raizes"))
    assert hidden_ref.status == no_ref.status == 404
    assert visible(hidden_ref.body).replace(b"raises", b"raizes") == visible(no_ref.body)
    assert page(granted, "root", "at", at="raises").status == 303
    assert page(granted, "bob", "branch.staging/").status == 404


def test_ref_is_found_where_tables_may_be_listed_alone(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    lake.load_table("other.secret").refs.create_branch("staging")
    granted.grant("list", "catalog", "ann")
    granted.grant("read", "table other.secret", "ann")
    assert page(granted, "ann", "branch.staging/lake.json").status == 200


def test_action_at_a_branch_needs_the_privilege_for_that_branch(granted: GrantedServer) -> None:
    lake = Lake(granted.context.catalog, "lake")
    orders = lake.load_table("db.orders")
    orders.refs.create_branch("staging")
    orders.append(pa.table({"id": [2]}), branch="dev")
    path = "/branch.staging/table/actions/fast-forward"
    form = granted("ann", "GET", path, query={"name": "db.orders"}, headers=LOCAL)
    headers = LOCAL | {"cookie": form.headers["set-cookie"].partition(";")[0]}
    answers = {"csrf": hidden(form, "csrf"), "name": "db.orders", "branch": "main", "to": "dev"}

    def send() -> AsgiResponse:
        return granted("ann", "POST", path, urlencode(answers).encode(), headers=headers)

    assert send().status == 403
    granted.grant("manage-refs,write", "table db.orders", "ann", "staging")
    review = send()
    assert review.status == 200, review
    answers |= {"confirm": hidden(review, "confirm"), "moment": hidden(review, "moment")}
    assert send().status == 200
    refs = orders.refresh().refs
    assert refs["staging"].snapshot_id == refs["dev"].snapshot_id != refs["main"].snapshot_id


def visible(body: bytes) -> bytes:
    """A page without what is new in each of them."""
    return re.sub(rb'name="csrf" value="[^"]*"', b"", body)
