"""The whole lake at a ref: the warehouse `lake@staging`, and requests behind the prefix that it gives."""

from pathlib import Path
from typing import Any

import pytest

from bergline.catalog.rest.protocol.branch_tables import BRANCH_TABLES
from bergline.format.metadata.refs import CREATED_ON
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import SCHEMA, AsgiClient, set_property, snapshot

STAGING = "/v1/branch.staging/namespaces/db/tables"


def head(name: str, snapshot_id: int) -> dict[str, Any]:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": snapshot_id}


def at(name: str, snapshot_id: int | None) -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id}


@pytest.fixture
def lake(client: AsgiClient) -> AsgiClient:
    """`db.orders` with a snapshot on `main`, where the branch `staging` and the tag `v1` are too."""
    client.namespace("db")
    client.table()
    tag = head("v1", 1) | {"type": "tag"}
    assert client.commit(snapshot(1, 1), head("main", 1), head("staging", 1), tag).status == 200
    assert client("POST", "/bergline/v1/lake-branches", {"name": "staging"}).status == 200
    return client


def commit(client: AsgiClient, *updates: Any, requires: list[Any] | None = None, prefix: str = "branch.staging") -> Any:
    body = {"requirements": requires or [], "updates": list(updates)}
    return client("POST", f"/v1/{prefix}/namespaces/db/tables/orders", body)


@pytest.mark.parametrize(
    ("warehouse", "prefix"),
    [
        ("lake@staging", "branch.staging"),
        ("@staging", "branch.staging"),
        ("lake@v1", "tag.v1"),
        ("lake@2026-11-01T00:00:00Z", "time.2026-11-01T00~3A00~3A00.000Z"),
        ("lake@main", None),
        ("lake", None),
    ],
)
def test_warehouse_with_a_ref_gives_a_prefix(lake: AsgiClient, warehouse: str, prefix: str | None) -> None:
    assert lake("GET", "/v1/config", query={"warehouse": warehouse}).json["overrides"].get("prefix") == prefix


def test_ref_that_is_nowhere_is_not_found(lake: AsgiClient) -> None:
    answer = lake("GET", "/v1/config", query={"warehouse": "lake@stagin"})
    assert answer.status == 404
    assert "no branch or tag `stagin` of the lake" in answer.message
    assert "did you mean `staging`" in answer.message


def test_commit_to_main_lands_on_the_branch(lake: AsgiClient) -> None:
    answer = commit(lake, snapshot(2, 2, 1), head("main", 2), requires=[at("main", 1)])
    assert answer.status == 200
    refs = answer.json["metadata"]["refs"]
    assert {name: ref["snapshot-id"] for name, ref in refs.items()} == {
        "main": 2,
        "staging": 2,
        "v1": 1,
        "lake_main": 1,
    }
    assert lake("GET", STAGING + "/orders").json["metadata"]["current-snapshot-id"] == 2
    real = lake("GET", "/v1/namespaces/db/tables/orders").json["metadata"]
    assert (real["current-snapshot-id"], real["refs"]["staging"]["snapshot-id"]) == (1, 2)


def test_stale_commit_is_a_conflict_and_changes_nothing(lake: AsgiClient) -> None:
    assert commit(lake, snapshot(2, 2, 1), head("main", 2), requires=[at("main", 1)]).status == 200
    late = commit(lake, snapshot(3, 3, 1), head("main", 3), requires=[at("main", 1)])
    assert late.error == (409, "CommitFailedException")


def test_loads_are_told_apart_by_their_tags(lake: AsgiClient) -> None:
    here, there = lake("GET", STAGING + "/orders"), lake("GET", "/v1/namespaces/db/tables/orders")
    assert here.headers["etag"] != there.headers["etag"]
    assert lake("GET", STAGING + "/orders", headers={"if-none-match": here.headers["etag"]}).status == 304
    assert lake("GET", STAGING + "/orders", headers={"if-none-match": there.headers["etag"]}).status == 200


def test_answer_to_a_repeated_request_is_that_of_the_ref(lake: AsgiClient) -> None:
    key = {"idempotency-key": "0191d1f0-0000-7000-8000-000000000001"}
    body = {"requirements": [at("main", 1)], "updates": [snapshot(2, 2, 1), head("main", 2)]}
    first = lake("POST", STAGING + "/orders", body, headers=key)
    again = lake("POST", STAGING + "/orders", body, headers=key)
    assert first.json["metadata"]["refs"] == again.json["metadata"]["refs"]
    elsewhere = lake("POST", "/v1/namespaces/db/tables/orders", body, headers=key)
    assert elsewhere.status == 422


@pytest.mark.parametrize("prefix", ["tag.v1", "time.2100-01-01T00~3A00Z"])
def test_commit_where_nothing_can_be_written_is_refused(lake: AsgiClient, prefix: str) -> None:
    answer = commit(lake, snapshot(2, 2, 1), head("main", 2), prefix=prefix)
    assert answer.status == 403
    assert "where nothing can be written" in answer.message


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "namespaces/db/tables/orders", None),
        (
            "POST",
            "tables/rename",
            {"source": {"namespace": ["db"], "name": "orders"}, "destination": {"namespace": ["db"], "name": "o"}},
        ),
        ("DELETE", "namespaces/db", None),
        ("POST", "namespaces/db/register", {"name": "o", "metadata-location": "file:///x"}),
    ],
)
def test_what_is_the_same_at_all_refs_is_refused(lake: AsgiClient, method: str, path: str, body: Any) -> None:
    answer = lake(method, f"/v1/branch.staging/{path}", body)
    assert answer.status == 403
    assert "of the lake: names and views that are on `main` are the same at all refs" in answer.message
    assert lake("HEAD", "/v1/namespaces/db/tables/orders").status == 204


def test_table_that_is_created_at_a_branch_is_on_it_alone(lake: AsgiClient, context: ServerContext) -> None:
    assert lake("POST", STAGING, {"name": "new", "schema": SCHEMA}).status == 200
    names = [{"namespace": ["db"], "name": name} for name in ("new", "orders")]
    assert lake("GET", STAGING).json["identifiers"] in (names, names[::-1])
    assert lake("GET", "/v1/namespaces/db/tables").json["identifiers"] == names[1:]
    assert lake("GET", "/v1/namespaces/db/tables", query={BRANCH_TABLES: "true"}).json["identifiers"] == names[:1]
    first = lake("GET", STAGING, query={"pageSize": "1", "pageToken": ""}).json
    rest = lake("GET", STAGING, query={"pageSize": "1", "pageToken": first["next-page-token"]}).json
    assert [*first["identifiers"], *rest["identifiers"]] == names
    for _ in range(2):  # from a file and from the cache
        assert lake("GET", "/v1/namespaces/db/tables/new", headers={BRANCH_TABLES: "true"}).status == 200
        elsewhere = lake("GET", "/v1/namespaces/db/tables/new")
        assert elsewhere.error == (404, "NoSuchTableException")
    assert lake("GET", "/v1/branch.other/namespaces/db/tables/new").status == 404
    assert lake("DELETE", STAGING + "/new").status == 204
    assert lake("GET", STAGING).json["identifiers"] == names[1:]


def test_table_that_is_created_with_its_rows_is_on_the_branch(lake: AsgiClient) -> None:
    staged = lake("POST", STAGING, {"name": "new", "schema": SCHEMA, "stage-create": True}).json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "set-location", "location": staged["location"]},
        {"action": "add-schema", "schema": staged["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": staged["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        snapshot(7, 1),
        head("main", 7),
    ]
    made = lake("POST", STAGING + "/new", {"requirements": [{"type": "assert-create"}], "updates": updates})
    assert made.json["metadata"]["current-snapshot-id"] == 7, made
    real = lake("GET", "/v1/namespaces/db/tables/new", headers={BRANCH_TABLES: "true"}).json["metadata"]
    assert (real.get("current-snapshot-id"), list(real["refs"])) in ((None, ["staging"]), (-1, ["staging"]))


def test_answer_to_a_repeated_create_is_that_of_the_ref(lake: AsgiClient) -> None:
    key = {"idempotency-key": "0191d1f0-0000-7000-8000-000000000002"}
    first = lake("POST", STAGING, {"name": "new", "schema": SCHEMA}, headers=key)
    again = lake("POST", STAGING, {"name": "new", "schema": SCHEMA}, headers=key)
    assert (first.status, again.status) == (200, 200)
    assert first.json["metadata"]["table-uuid"] == again.json["metadata"]["table-uuid"]


def test_transaction_lands_on_the_branch(lake: AsgiClient) -> None:
    change = {
        "identifier": {"namespace": ["db"], "name": "orders"},
        "requirements": [at("main", 1)],
        "updates": [snapshot(2, 2, 1), head("main", 2), set_property("a", "b")],
    }
    assert lake("POST", "/v1/branch.staging/transactions/commit", {"table-changes": [change]}).status == 204
    refs = lake("GET", "/v1/namespaces/db/tables/orders").json["metadata"]["refs"]
    assert (refs["main"]["snapshot-id"], refs["staging"]["snapshot-id"]) == (1, 2)


@pytest.mark.parametrize("segment", ["branch%2Estaging", "branch.stagin%67"])
def test_prefix_that_a_client_has_encoded_is_understood(lake: AsgiClient, segment: str) -> None:
    assert lake("GET", f"/v1/{segment}/namespaces/db/tables/orders").status in (200, 404)
    assert lake("GET", "/v1/branch.a~2Fb/namespaces/db/tables/orders").status == 200  # as on `main`


def test_own_endpoints_are_there_behind_the_prefix(lake: AsgiClient) -> None:
    assert lake("GET", "/bergline/v1/branch.staging/rules").status == 200


def names(client: AsgiClient, path: str = "/v1/namespaces/db/tables") -> list[str]:
    return sorted(one["name"] for one in client("GET", path).json["identifiers"])


def creation(staged: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
    """The commit that creates a staged table."""
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "set-location", "location": staged["location"]},
        {"action": "add-schema", "schema": staged["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": staged["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        *more,
    ]
    return {"requirements": [{"type": "assert-create"}], "updates": updates}


def test_transaction_that_creates_a_table_creates_it_on_the_branch_alone(lake: AsgiClient) -> None:
    staged = lake("POST", STAGING, {"name": "new", "schema": SCHEMA, "stage-create": True}).json["metadata"]
    change = creation(staged, snapshot(7, 1), head("main", 7)) | {"identifier": {"namespace": ["db"], "name": "new"}}
    assert (
        lake("POST", "/v1/branch.staging/transactions/commit", {"table-changes": [change, orders_property()]}).status
        == 204
    )
    assert (names(lake), names(lake, STAGING)) == (["orders"], ["new", "orders"])


def orders_property() -> dict[str, Any]:
    return {
        "identifier": {"namespace": ["db"], "name": "orders"},
        "requirements": [],
        "updates": [set_property("a", "b")],
    }


def test_table_of_a_branch_comes_back_on_it_alone(tmp_path: Path) -> None:
    opened = open_server(new_catalog_uri(tmp_path / "kept/catalog.db"), limits=ServerSettings(drop_retention_s=86_400))
    with AsgiClient(opened) as client:
        client.namespace("db")
        assert client("POST", "/bergline/v1/lake-branches", {"name": "staging"}).status == 200
        assert client("POST", STAGING, {"name": "new", "schema": SCHEMA}).status == 200
        assert client("DELETE", STAGING + "/new").status == 204
        assert client("POST", "/bergline/v1/namespaces/db/tables/new/undrop", {}).status == 200
        assert (names(client), names(client, STAGING)) == ([], ["new"])
    opened.catalog.close()


@pytest.mark.parametrize(
    ("update", "status"),
    [
        ({"action": "remove-properties", "removals": [CREATED_ON]}, 200),  # as a table that is replaced may
        ({"action": "set-properties", "updates": {CREATED_ON: "other"}}, 400),
    ],
)
def test_no_client_changes_where_a_table_was_created(lake: AsgiClient, update: dict[str, Any], status: int) -> None:
    assert lake("POST", STAGING, {"name": "new", "schema": SCHEMA}).status == 200
    for table in ("new", "orders"):
        assert lake("POST", f"{STAGING}/{table}", {"requirements": [], "updates": [update]}).status == status
    assert (names(lake), names(lake, STAGING)) == (["orders"], ["new", "orders"])
    assert lake("GET", STAGING + "/new").json["metadata"]["properties"][CREATED_ON] == "staging"
    assert lake("GET", "/v1/namespaces/db/tables/orders").status == 200


def test_table_that_is_created_with_a_main_is_on_main(lake: AsgiClient) -> None:
    tables = "/v1/namespaces/db/tables"
    staged = lake("POST", tables, {"name": "new", "schema": SCHEMA, "stage-create": True}).json["metadata"]
    body = creation(staged, set_property(CREATED_ON, "staging"), snapshot(7, 1), head("main", 7))
    assert lake("POST", tables + "/new", body).status == 200
    assert names(lake) == ["new", "orders"]
    assert lake("GET", tables + "/new").status == 200


def test_table_of_a_branch_is_not_dropped_or_renamed_by_clients_on_main(lake: AsgiClient) -> None:
    assert lake("POST", STAGING, {"name": "new", "schema": SCHEMA}).status == 200
    names_both = [{"namespace": ["db"], "name": name} for name in ("new", "newer")]
    rename = dict(zip(("source", "destination"), names_both, strict=True))
    assert lake("HEAD", "/v1/namespaces/db/tables/new").status == 404
    assert lake("DELETE", "/v1/namespaces/db/tables/new").error == (404, "NoSuchTableException")
    assert lake("POST", "/v1/tables/rename", rename).error == (404, "NoSuchTableException")
    assert (names(lake, STAGING), lake("HEAD", STAGING + "/new").status) == (["new", "orders"], 204)
    assert lake("DELETE", "/v1/namespaces/db/tables/new", headers={BRANCH_TABLES: "true"}).status == 204
