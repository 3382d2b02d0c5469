"""Owners follow their tables."""

import json

import pytest

from bergline.governance.grants.grant import principal
from bergline.governance.grants.securable import parse_securable
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from support.servers.asgi_client import SCHEMA
from support.servers.granted_server import GrantedServer

TABLES = "/v1/namespaces/db/tables"
VIEW = {
    "name": "v",
    "schema": SCHEMA,
    "properties": {},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    },
}


def owners(granted: GrantedServer) -> dict[str, str]:
    return {str(of): str(owner) for of, owner in granted.direct.owners().items()}


def named(name: str) -> dict[str, object]:
    return {"namespace": ["db"], "name": name}


def test_whoever_makes_something_owns_it_and_may_do_everything_with_it(granted: GrantedServer) -> None:
    granted.grant("create", "namespace db", "ann")
    assert granted("ann", "POST", TABLES, {"name": "t", "schema": SCHEMA}).status == 200
    assert granted("ann", "POST", "/v1/namespaces/db/views", VIEW).status == 200
    assert granted("ann", "POST", "/v1/namespaces", {"namespace": ["db", "own"]}).status == 200
    mine = {"table db.t": "ann", "view db.v": "ann", "namespace db.own": "ann"}
    assert owners(granted) == {"namespace db": "root", "table db.orders": "root", **mine}
    assert granted("ann", "GET", f"{TABLES}/t").status == 200
    assert granted("ann", "GET", f"{TABLES}/orders").status == 403
    assert granted("ann", "DELETE", "/v1/namespaces/db/views/v").status == 204
    assert granted("ann", "DELETE", "/v1/namespaces/db%1Fown").status == 204
    assert granted("ann", "POST", f"{TABLES}/t/unregister").status == 200
    in_trash = {"view db.v": "ann"}
    assert owners(granted) == {"namespace db": "root", "table db.orders": "root", **in_trash}


def test_table_that_was_staged_belongs_to_who_commits_it(granted: GrantedServer) -> None:
    granted.grant("create", "namespace db", "ann")
    staged = granted("ann", "POST", TABLES, {"name": "t", "schema": SCHEMA, "stage-create": True}).json["metadata"]
    assert "table db.t" not in owners(granted)
    updates = [
        {"action": "assign-uuid", "uuid": staged["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": staged["location"]},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    assert granted("bob", "POST", f"{TABLES}/t", body).error == (404, "NoSuchTableException")
    assert granted("ann", "POST", f"{TABLES}/t", body).status == 200
    assert owners(granted)["table db.t"] == "ann"


def test_owner_and_grants_go_with_a_new_name(granted: GrantedServer) -> None:
    granted.grant("read", "table db.orders", "bob")
    body = {"source": named("orders"), "destination": named("sales")}
    assert granted("root", "POST", "/v1/tables/rename", body).status == 204
    assert owners(granted) == {"namespace db": "root", "table db.sales": "root"}
    assert granted("bob", "GET", f"{TABLES}/sales").status == 200
    assert granted("bob", "GET", f"{TABLES}/orders").status == 404
    assert granted("root", "POST", TABLES, {"name": "orders", "schema": SCHEMA}).status == 200
    assert granted("bob", "GET", f"{TABLES}/orders").status == 404


def test_owner_cannot_take_a_name_from_another(granted: GrantedServer) -> None:
    granted.direct.set_owner(parse_securable("table db.orders"), principal("ann"))
    body = {"source": named("orders"), "destination": named("sales")}
    assert granted("ann", "POST", "/v1/tables/rename", body).status == 403
    granted.grant("create", "namespace db", "ann")
    assert granted("ann", "POST", "/v1/tables/rename", body).status == 204
    assert granted("ann", "GET", f"{TABLES}/sales").status == 200


@pytest.fixture
def context(context: ServerContext) -> ServerContext:
    """With a trash."""
    context.settings = ServerSettings(
        name=context.settings.name, warehouse=context.settings.warehouse, drop_retention_s=3600
    )
    return context


def test_bin_shows_what_may_be_seen_and_gives_back_to_the_owner(granted: GrantedServer) -> None:
    granted.direct.set_owner(parse_securable("table db.orders"), principal("ann"))
    assert granted("ann", "DELETE", f"{TABLES}/orders").status == 204
    (mine,) = granted("ann", "GET", "/bergline/v1/dropped-tables").json["tables"]
    assert mine["metadata-location"]
    assert granted("bob", "GET", "/bergline/v1/dropped-tables").json["tables"] == []
    granted.grant("drop", "namespace db", "bob")
    (seen,) = granted("bob", "GET", "/bergline/v1/dropped-tables").json["tables"]
    assert seen["metadata-location"] == ""
    (shown,) = granted("bob", "GET", "/trash.json", headers={"host": "localhost:1"}).json["entries"]
    assert (shown["name"], shown["metadata_location"]) == ("db.orders", "")
    undrop = "/bergline/v1/namespaces/db/tables/orders/undrop"
    assert granted("bob", "POST", undrop, {"destination": named("mine")}).status == 403
    granted.grant("create", "namespace db", "bob")
    assert granted("bob", "POST", undrop, {"destination": named("mine")}).status == 403  # it could be read there
    granted.grant("read", "table db.orders", "bob")
    assert granted("bob", "POST", undrop, {"destination": named("mine")}).status == 200
    assert owners(granted)["table db.mine"] == "ann"
    assert granted("bob", "GET", f"{TABLES}/mine").status == 403


def test_directory_of_a_dropped_table_is_kept_from_new_ones(granted: GrantedServer) -> None:
    pointer = granted("root", "GET", f"{TABLES}/orders").json["metadata-location"]
    home = pointer.partition("/metadata/")[0]
    granted.grant("create", "namespace db", "bob")
    assert granted("root", "DELETE", f"{TABLES}/orders").status == 204
    for location in (home, f"{home}/data", home.replace("file:///", "file:/")):
        new = {"name": "new", "schema": SCHEMA, "location": location}
        assert granted("bob", "POST", TABLES, new).error == (403, "ForbiddenException")
    register = {"name": "new", "metadata-location": pointer}
    assert granted("bob", "POST", "/v1/namespaces/db/register", register).error == (403, "ForbiddenException")
    assert granted("bob", "POST", TABLES, {"name": "new", "schema": SCHEMA, "location": f"{home}2"}).status == 200


def test_table_that_may_not_be_read_does_not_go_where_it_may(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["own"]})
    granted.grant("administer", "namespace own", "bob")
    granted.grant("drop", "table db.orders", "bob")
    body = {"source": named("orders"), "destination": {"namespace": ["own"], "name": "orders"}}
    assert "the privilege `read`" in granted("bob", "POST", "/v1/tables/rename", body).message
    granted.grant("read", "table db.orders", "bob")
    assert granted("bob", "POST", "/v1/tables/rename", body).status == 204


def test_name_of_what_others_dropped_is_not_to_be_had(granted: GrantedServer) -> None:
    for who in ("ann", "bob"):
        granted.grant("create", "catalog", who)
    tables, views, undrop = "/v1/namespaces/a/tables", "/v1/namespaces/a/views", "/bergline/v1/namespaces/a/tables"
    assert granted("ann", "POST", "/v1/namespaces", {"namespace": ["a"]}).status == 200
    assert granted("ann", "POST", tables, {"name": "t", "schema": SCHEMA}).status == 200
    assert granted("ann", "POST", views, VIEW).status == 200
    assert granted("ann", "DELETE", f"{tables}/t").status == granted("ann", "DELETE", f"{views}/v").status == 204
    refused = granted("bob", "POST", tables, {"name": "t", "schema": SCHEMA})
    assert (refused.status, "the trash has something under that name" in refused.message) == (403, True)
    assert granted("bob", "POST", views, VIEW).status == 403
    assert granted("bob", "POST", tables, {"name": "u", "schema": SCHEMA}).status == 200
    to_t = {"namespace": ["a"], "name": "t"}
    renamed = {"source": {"namespace": ["a"], "name": "u"}, "destination": to_t}
    assert granted("bob", "POST", "/v1/tables/rename", renamed).status == 403
    assert granted("bob", "DELETE", f"{tables}/u").status == 204
    assert granted("bob", "POST", f"{undrop}/u/undrop", {"destination": to_t}).status == 403
    assert granted("ann", "DELETE", "/v1/namespaces/a").status == 204
    assert granted("bob", "POST", "/v1/namespaces", {"namespace": ["a"]}).status == 403
    assert granted("root", "POST", "/v1/namespaces", {"namespace": ["a"]}).status == 200
    assert granted("bob", "POST", f"{undrop}/t/undrop", {}).status == 403
    assert granted("ann", "POST", tables, {"name": "t", "schema": SCHEMA}).status == 200


@pytest.mark.parametrize("by_transaction", [False, True])
@pytest.mark.parametrize("plain", ["assert-create", "requirements", "type"])
def test_no_spelling_of_a_creation_takes_a_name_from_the_trash(
    granted: GrantedServer, plain: str, *, by_transaction: bool
) -> None:
    granted.grant("create", "namespace db", "bob")
    granted.grant("create", "namespace db", "ann")
    assert granted("ann", "POST", TABLES, {"name": "t", "schema": SCHEMA}).status == 200
    assert granted("ann", "DELETE", f"{TABLES}/t").status == 204
    staged = {"name": "t", "schema": SCHEMA, "stage-create": True}
    metadata = granted("bob", "POST", TABLES, staged).json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    change = {"identifier": named("t"), "requirements": [{"type": "assert-create"}], "updates": updates}
    path, body = ("/v1/transactions/commit", {"table-changes": [change]}) if by_transaction else (f"{TABLES}/t", change)
    text = json.dumps(body)
    for spelled in ("".join(f"\\u{ord(c):04x}" for c in plain), f"\\u{ord(plain[0]):04X}{plain[1:]}", plain):
        sent = text.replace(f'"{plain}"', f'"{spelled}"').encode()
        assert json.loads(sent) == body
        refused = granted("bob", "POST", path, sent)
        assert (refused.status, "the trash has something under that name" in refused.message) == (403, True)
    assert owners(granted)["table db.t"] == "ann"
