"""Protected refs on a server: every endpoint that moves one, every client by its token."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError

import bergline
from bergline.errors import InvalidInputError, ProtectedRefError, RefusedError
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from support.fixtures.rows import ORDERS, order_rows
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, bearer, set_branch, set_property, snapshot
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

TABLE = "/v1/namespaces/db/tables/orders"
RULE = "bergline.ref-rules.main"
NAME = {"namespace": ["db"], "name": "orders"}
UPDATES = [snapshot(4, 4, 2), set_branch("main", 4)]


@pytest.fixture
def older(client: AsgiClient) -> str:
    """`main` at 2 with a rule, `dev` at 3 on top of it; the metadata file of when `main` was at 1."""
    client.namespace("db")
    client.table()
    client.commit(snapshot(1, 1), set_branch("main", 1))
    location: str = client("GET", TABLE).json["metadata-location"]
    client.commit(snapshot(2, 2, 1), set_branch("main", 2))
    client.commit(snapshot(3, 3, 2), set_branch("dev", 3))
    assert client.commit(set_property(RULE, "only-publish; fast-forward-only")).status == 200
    return location


def register_over(client: AsgiClient, location: str) -> AsgiResponse:
    body = {"name": "orders", "metadata-location": location, "overwrite": True}
    return client("POST", "/v1/namespaces/db/register", body)


def replace(client: AsgiClient) -> AsgiResponse:
    """What Java sends for CREATE OR REPLACE TABLE AS."""
    removed = {"action": "remove-snapshot-ref", "ref-name": "main"}
    schema = {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2}
    return client.commit(schema, removed, snapshot(4, 4), set_branch("main", 4))


def change_two(client: AsgiClient) -> AsgiResponse:
    client.table("items")
    items = {
        "identifier": {"namespace": ["db"], "name": "items"},
        "requirements": [],
        "updates": [set_property("a", "b")],
    }
    orders = {"identifier": NAME, "requirements": [], "updates": UPDATES}
    return client("POST", "/v1/transactions/commit", {"table-changes": [items, orders]})


REMOVED = {"action": "remove-snapshot-ref", "ref-name": "dev"}
TAGGED = {"action": "set-snapshot-ref", "ref-name": "dev", "type": "tag", "snapshot-id": 1}


def add_anew(client: AsgiClient) -> AsgiResponse:
    """Another snapshot under the id of an ancestor of `main` and `dev`."""
    forged = snapshot(1, 4)
    forged["snapshot"]["manifest-list"] = "file:///nowhere/forged.avro"
    return client.commit({"action": "remove-snapshots", "snapshot-ids": [1]}, forged)


def change_twice(client: AsgiClient) -> AsgiResponse:
    changes = [{"identifier": NAME, "requirements": [], "updates": [update]} for update in (REMOVED, TAGGED)]
    return client("POST", "/v1/transactions/commit", {"table-changes": changes})


def rename(client: AsgiClient) -> AsgiResponse:
    destination = {"namespace": ["db"], "name": "other"}
    return client("POST", "/v1/tables/rename", {"source": NAME, "destination": destination})


WAYS: dict[str, Any] = {
    "commit": lambda client, _: client.commit(*UPDATES),
    "commit that claims a source": lambda client, _: client.commit(_claiming(1), set_branch("main", 4)),
    "commit that lifts the rule": lambda client, _: client.commit(
        {"action": "remove-properties", "removals": [RULE]}, *UPDATES
    ),
    "commit that makes its own branch": lambda client, _: client.commit(*UPDATES, set_branch("new", 4)),
    "rollback": lambda client, _: client.commit(set_branch("main", 1)),
    "removal": lambda client, _: client.commit({"action": "remove-snapshot-ref", "ref-name": "main"}),
    "ancestor anew": lambda client, _: add_anew(client),
    "replace": lambda client, _: replace(client),
    "transaction": lambda client, _: change_two(client),
    "rename": lambda client, _: rename(client),
    "drop": lambda client, _: client("DELETE", TABLE),
    "register over": register_over,
}  # fmt: skip


def _claiming(source: int) -> dict[str, Any]:
    claimed = snapshot(4, 4, 2)
    claimed["snapshot"]["summary"]["source-snapshot-id"] = str(source)
    return claimed


@pytest.mark.parametrize("way", WAYS)
def test_every_way_is_forbidden_and_changes_nothing(client: AsgiClient, older: str, way: str) -> None:
    before = client("GET", TABLE).json
    response: AsgiResponse = WAYS[way](client, older)
    assert response.error == (403, "ForbiddenException")
    assert response.message.startswith("branch `main` of table `db.orders` is protected by the rule `main`: it ")
    assert "; " in response.message, "what to do instead"
    assert client("GET", TABLE).json == before
    if way == "transaction":
        assert "a" not in client("GET", "/v1/namespaces/db/tables/items").json["metadata"]["properties"]


@pytest.mark.parametrize("rule", ["only-publish", "no-rollback", "no-drop", "no-expiry", "no-rollback; kind=branch"])
@pytest.mark.parametrize("path", ["/bergline/v1/rules", "/bergline/v1/namespaces/db/rules", None])
@pytest.mark.usefixtures("older")
def test_protected_branch_is_no_tag_after_any_commit(client: AsgiClient, rule: str, path: str | None) -> None:
    assert client.commit({"action": "remove-properties", "removals": [RULE]}).status == 200
    if path is None:
        assert client.commit(set_property("bergline.ref-rules.d*", rule)).status == 200
    else:
        assert client("POST", path, {"pattern": "d*", "rule": rule}).status == 204
    before = client("GET", TABLE).json
    refused = client.commit(REMOVED, TAGGED)
    assert refused.error == (403, "ForbiddenException")
    assert "found it dropped, and a tag created under its name" in refused.message
    assert client.commit(TAGGED).status == 409
    assert change_twice(client).status >= 400
    if rule != "no-drop":
        assert add_anew(client).error == (403, "ForbiddenException")
    assert client("GET", TABLE).json == before


@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"commit that lifts the rule"}))
def test_every_way_is_forbidden_by_a_rule_of_the_catalog(
    client: AsgiClient, context: ServerContext, older: str, way: str
) -> None:
    assert client.commit({"action": "remove-properties", "removals": [RULE]}).status == 200
    body = {"pattern": "ma*", "rule": "only-publish; fast-forward-only"}
    assert client("POST", "/bergline/v1/rules", body).status == 204
    before = client("GET", TABLE).json
    response: AsgiResponse = WAYS[way](client, older)
    assert response.error == (403, "ForbiddenException")
    assert response.message.startswith(
        "branch `main` of table `db.orders` is protected by the rule `ma*` of the catalog: it "
    )
    assert client("GET", TABLE).json == before
    assert client.commit(set_branch("main", 3)).status == 200, "publishing"
    assert client("DELETE", "/bergline/v1/rules", query={"pattern": "ma*"}).status == 204
    assert client("DELETE", TABLE).status == 204
    assert [e.operation for e in context.records.audit()][-3:] == [
        "remove_ref_rule", "change_ref_rule:ma*", "drop_table",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "updates",
    [
        [set_branch("main", 3)],
        [set_branch("main", 3), {"action": "remove-snapshot-ref", "ref-name": "dev"}],
        [snapshot(4, 4, 2), set_branch("dev", 4)],
        [set_property("a", "b")],
    ],
)
@pytest.mark.usefixtures("older")
def test_publishing_and_everything_else_is_allowed(client: AsgiClient, updates: list[Any]) -> None:
    assert client.commit(*updates).status == 200


@pytest.mark.usefixtures("older")
def test_table_whose_rule_was_removed_is_dropped(client: AsgiClient, context: ServerContext) -> None:
    assert client.commit({"action": "remove-properties", "removals": [RULE]}).status == 200
    assert [e.operation for e in context.records.audit()][-2:] == ["commit_table", "change_ref_rule:main"]
    assert client("DELETE", TABLE).status == 204


def test_wrong_rules_are_bad_requests(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()
    assert client.commit(set_property(RULE, "no-dorp")).error == (400, "IllegalArgumentException")
    body = {"name": "items", "schema": SCHEMA, "properties": {RULE: "no-dorp"}}
    assert client("POST", "/v1/namespaces/db/tables", body).error == (400, "IllegalArgumentException")


@pytest.fixture
def tokens(context: ServerContext, client: AsgiClient) -> dict[str, dict[str, str]]:
    """A table whose `main` etl writes and ann bypasses, and the headers of each."""
    client.namespace("db")
    client.table()
    client.commit(set_property(RULE, "writers=etl; bypass=ann"))
    for name in ("etl", "ann", "zoe"):
        context.records.tokens.create(name, f"bl_{name}", 0, None)
    context.authenticator = Authenticator(context.records)
    return {name: bearer(f"bl_{name}") for name in ("etl", "ann", "zoe")}


def test_writers_are_those_of_the_tokens(client: AsgiClient, tokens: dict[str, dict[str, str]]) -> None:
    assert client.commit(snapshot(1, 1), set_branch("main", 1), headers=tokens["etl"]).status == 200
    refused = client.commit(snapshot(2, 2, 1), set_branch("main", 2), headers=tokens["zoe"])
    assert refused.error == (403, "ForbiddenException")
    assert "it is changed only by `etl`, not by `zoe`" in refused.message
    assert client("DELETE", TABLE, headers=tokens["zoe"]).status == 403
    assert client("DELETE", TABLE, headers=tokens["etl"]).status == 204


def test_bypass_leaves_a_row_of_its_own(
    client: AsgiClient, context: ServerContext, tokens: dict[str, dict[str, str]]
) -> None:
    assert client.commit(snapshot(1, 1), set_branch("main", 1), headers=tokens["ann"]).status == 200
    rows = [(e.principal, e.operation, e.resource) for e in context.records.audit()]
    assert rows[-2:] == [("ann", "commit_table", "table/db/orders"), ("ann", "bypass_ref_rule:main", "table/db/orders")]


def test_rule_is_changed_only_by_who_may_bypass_it(client: AsgiClient, tokens: dict[str, dict[str, str]]) -> None:
    removal = {"action": "remove-properties", "removals": [RULE]}
    refused = client.commit(removal, headers=tokens["etl"])
    assert refused.error == (403, "ForbiddenException")
    assert "changed only by those who may bypass it, `ann`, not by `etl`" in refused.message
    assert client.commit(removal, headers=tokens["ann"]).status == 200


@pytest.fixture
def uri(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def peer(uri: str) -> Iterator[Catalog]:
    opened = load_catalog("lake", type="rest", uri=uri)
    yield opened
    opened.close()


def test_pyiceberg_is_refused_with_the_sentence_and_publishes_the_right_way(uri: str, peer: Catalog) -> None:
    peer.create_namespace("db")
    table = peer.create_table("db.orders", ORDERS)
    table.append(order_rows(1))
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_branch(head.snapshot_id, "dev").commit()
    with table.transaction() as transaction:
        transaction.set_properties({RULE: "only-publish; fast-forward-only"})
    sentence = r"branch `main` of table `db\.orders` is protected by the rule `main`: it .*; "
    with pytest.raises(ForbiddenError, match=f"{sentence}write to another branch, then publish it into `main`"):
        table.append(order_rows(2))
    for change in (
        lambda: peer.drop_table("db.orders"),
        lambda: peer.purge_table("db.orders"),
        lambda: peer.rename_table("db.orders", "db.other"),
        lambda: peer.load_table("db.orders").overwrite(order_rows(9)),
    ):
        with pytest.raises(ForbiddenError, match=sentence):
            change()
    table.append(order_rows(3), branch="dev")
    with bergline.connect(uri) as lake:
        lake.publish("dev")
    assert peer.load_table("db.orders").scan().to_arrow()["id"].to_pylist() == [3, 1]


def test_pyiceberg_obeys_rules_of_a_namespace_checks_and_approvals(uri: str, peer: Catalog) -> None:
    peer.create_namespace("db")
    table = peer.create_table("db.orders", ORDERS)
    table.append(order_rows(1))
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_branch(head.snapshot_id, "dev").commit()
    table.append(order_rows(2), branch="dev")
    with bergline.connect(uri) as lake:
        lake.rules.protect("main", namespace="db", only_publish=True, checks=["nulls"])
        with pytest.raises(ForbiddenError, match="by the rule `main` of namespace `db`: it moves only by publishing"):
            table.append(order_rows(3))
        with pytest.raises(RefusedError, match="moves only to a snapshot on which `nulls` passed"):
            lake.publish("dev")
        reviewed = lake.load_table("db.orders").refs["dev"].snapshot_id
        lake.reviews.report_check("db.orders", reviewed, "nulls", passed=False)
        with pytest.raises(RefusedError, match="`nulls` passed"):
            lake.publish("dev")
        lake.reviews.report_check("db.orders", reviewed, "nulls")
        lake.publish("dev")
    assert peer.load_table("db.orders").scan().to_arrow()["id"].to_pylist() == [2, 1]


def test_forged_source_does_not_get_past_only_publish(uri: str, peer: Catalog) -> None:
    peer.create_namespace("db")
    table = peer.create_table("db.orders", ORDERS)
    table.append(order_rows(1))
    head = table.current_snapshot()
    assert head is not None
    for name in ("dev", "other"):
        table.manage_snapshots().create_branch(head.snapshot_id, name).commit()
    table.append(order_rows(2), branch="dev")
    table.append(order_rows(3), branch="other")
    with table.transaction() as transaction:
        transaction.set_properties({RULE: "only-publish"})
    claimed = {"source-snapshot-id": str(table.refs()["dev"].snapshot_id)}
    sentence = "moves only by publishing or merging another branch, file by file"
    for forge in (
        lambda: table.append(order_rows(9), snapshot_properties=claimed),
        lambda: table.delete("id = 1", snapshot_properties=claimed),
        lambda: table.overwrite(order_rows(9), snapshot_properties=claimed),
    ):
        with pytest.raises(ForbiddenError, match=sentence):
            forge()
        table.refresh()
    with bergline.connect(uri) as lake:
        lake.publish("dev")
        own = lake.load_table("db.orders")
        own.delete("id = 2", branch="dev")
        own.refs.merge("other", into="main")
        own.refs.merge("dev", into="main", squash=True)
        own.append(order_rows(4), branch="other").append(order_rows(5), branch="other").delete("id = 4", branch="other")
        own.refs.merge("other", into="main", squash=True)
        own.append(order_rows(6), wap_id="w")
        own.refs.publish("w")
        own.append(order_rows(7), branch="dev")
        own.refs.cherry_pick("dev")
    assert sorted(peer.load_table("db.orders").scan().to_arrow()["id"].to_pylist()) == [1, 3, 5, 6, 7]


def test_berglines_client_honours_rules_before_it_asks(uri: str) -> None:
    with bergline.connect(uri) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS)
        table.append(order_rows(1))
        table.refs.protect("main", only_publish=True)
        for change in (
            lambda: table.append(order_rows(2)),
            lambda: lake.drop_table("db.orders"),
            lambda: lake.rename_table("db.orders", "db.other"),
            lambda: lake.unregister_table("db.orders"),
        ):
            with pytest.raises(ProtectedRefError):
                change()
        with pytest.raises(InvalidInputError, match="no-dorp"):
            lake.create_table("db.items", ORDERS, properties={RULE: "no-dorp"})
        table.refs.protect("main", writers=["etl"])
        with pytest.raises(RefusedError, match="only by `etl`, not by `anonymous`"):  # the server knows who asks
            table.append(order_rows(2))
        assert table.refresh().scan().to_arrow().num_rows == 1
