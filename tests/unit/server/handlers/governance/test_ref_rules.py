"""The endpoints of rules of the catalog and its namespaces."""

from collections.abc import Iterator

import pytest

import bergline
from bergline.catalog.protection.table_rules import UnreadableRule
from bergline.catalog.sql.governance_layout import REF_RULES
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient, bearer
from support.servers.granted_server import GrantedServer
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

RULES, OF_DB = "/bergline/v1/rules", "/bergline/v1/namespaces/db/rules"


@pytest.fixture
def uri(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


def test_rules_are_set_listed_and_removed(client: AsgiClient, context: ServerContext) -> None:
    client.namespace("db")
    assert client("POST", RULES, {"pattern": "v*", "rule": "kind=tag; no-move"}).status == 204
    assert client("POST", OF_DB, {"pattern": "main", "rule": "only-publish; bypass=group:ops"}).status == 204
    found = client("GET", RULES).json["rules"]
    assert [(r["pattern"], r.get("namespace", []), r["rule"], r["principal"]) for r in found] == [
        ("v*", [], "kind=tag; no-move", "anonymous"),
        ("main", ["db"], "only-publish; bypass=group:ops", "anonymous"),
    ]
    assert client("GET", OF_DB).json["rules"] == found
    assert client("DELETE", RULES, query={"pattern": "v*"}).status == 204
    assert client("DELETE", RULES, query={"pattern": "v*"}).error == (404, "NotFoundException")
    rows = [(e.operation, e.resource) for e in context.records.audit()]
    assert rows[1:] == [
        ("set_ref_rule", "catalog"),
        ("change_ref_rule:v*", "catalog"),
        ("set_namespace_ref_rule", "namespace/db"),
        ("change_ref_rule:main", "namespace/db"),
        ("remove_ref_rule", "catalog"),
        ("change_ref_rule:v*", "catalog"),
    ]


def test_rules_of_hidden_namespaces_are_not_listed(granted: GrantedServer) -> None:
    for path in (RULES, OF_DB):
        assert granted("root", "POST", path, {"pattern": "main", "rule": "only-publish"}).status == 204

    def listed(who: str) -> list[list[str]]:
        return [rule.get("namespace", []) for rule in granted(who, "GET", RULES).json["rules"]]

    assert (listed("root"), listed("bob")) == ([[], ["db"]], [[]])
    granted.grant("list", "namespace db", "bob")
    assert listed("bob") == [[], ["db"]]


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        (RULES, {"pattern": "main", "rule": "no-dorp"}, (400, "IllegalArgumentException")),
        (RULES, {"pattern": "main", "rule": ""}, (400, "IllegalArgumentException")),
        (RULES, {"pattern": "main"}, (400, "BadRequestException")),
        ("/bergline/v1/namespaces/bd/rules", {"pattern": "main", "rule": "no-drop"}, (404, "NoSuchNamespaceException")),
    ],
)
def test_wrong_rules_are_refused(client: AsgiClient, path: str, body: object, error: tuple[int, str]) -> None:
    client.namespace("db")
    assert client("POST", path, body).error == error
    assert client("GET", RULES).json["rules"] == []
    assert client("DELETE", RULES).error == (400, "IllegalArgumentException")


def test_repeated_request_changes_a_rule_once(client: AsgiClient, context: ServerContext) -> None:
    key = {"idempotency-key": "0193a1b0-0000-7000-8000-000000000001"}
    for _ in range(2):
        assert client("POST", RULES, {"pattern": "main", "rule": "no-drop"}, headers=key).status == 204
    assert len(context.records.audit()) == 2


def test_rule_of_others_is_changed_by_those_whom_it_names(client: AsgiClient, context: ServerContext) -> None:
    for name in ("ann", "zoe"):
        context.records.tokens.create(name, f"bl_{name}", 0, None)
    context.authenticator = Authenticator(context.records)
    ann, zoe = bearer("bl_ann"), bearer("bl_zoe")
    body = {"pattern": "main", "rule": "no-drop; bypass=ann"}
    assert client("POST", RULES, body, headers=zoe).status == 204
    assert client("DELETE", RULES, query={"pattern": "main"}, headers=zoe).error == (403, "ForbiddenException")
    assert client("DELETE", RULES, query={"pattern": "main"}, headers=ann).status == 204


def test_client_sets_lists_and_removes_rules(uri: str, context: ServerContext) -> None:
    with bergline.connect(uri) as lake:
        lake.create_namespace("db")
        lake.rules.protect("main", writers=["ann"])
        lake.rules.protect("main", namespace="db", no_rollback=True)
        assert [(k.namespace, k.principal) for k in lake.rules.list("db")] == [
            ((), "anonymous"),
            (("db",), "anonymous"),
        ]
        with pytest.raises(InvalidInputError, match="in common"):
            lake.rules.protect("ma*", namespace="db", writers=["zoe"])
        with pytest.raises(NotFoundError, match="no rule `dev`"):
            lake.rules.unprotect("dev")
        with context.store.database.changing() as connection:
            connection.execute(REF_RULES.update().values(rule="from-the-future"))
        assert all(isinstance(kept.rule, UnreadableRule) for kept in lake.rules.list())
        lake.rules.unprotect("main")
        lake.rules.protect("main", namespace="db", no_drop=True)
        assert len(lake.rules.list()) == 1


def test_other_catalogs_say_that_they_keep_no_rules() -> None:
    with bergline.connect("memory:") as lake:
        with pytest.raises(UnsupportedError, match="keeps rules of its own"):
            lake.rules.list()
        with pytest.raises(UnsupportedError, match="keeps checks and approvals"):
            lake.reviews.checks("db.orders", 1)
