"""Grants, roles and owners over REST."""

from bergline.governance.grants.grant import principal
from bergline.governance.grants.securable import parse_securable
from support.servers.granted_server import GrantedServer

GRANTS, ROLES, OWNERS = "/bergline/v1/grants", "/bergline/v1/roles", "/bergline/v1/owners"
ORDERS = {"kind": "table", "namespace": ["db"], "name": "orders"}


def grant(privilege: str, to: str, **more: object) -> dict[str, object]:
    return {"grants": [{"privilege": privilege, "on": ORDERS, "to": to, **more}]}


def test_owner_grants_on_what_is_owned_and_sees_those_grants(granted: GrantedServer) -> None:
    assert granted("ann", "POST", GRANTS, grant("read", "bob")).error == (404, "NoSuchTableException")
    granted.direct.set_owner(parse_securable("table db.orders"), principal("ann"))
    assert granted("ann", "POST", GRANTS, grant("write", "bob", ref="release/*")).status == 204
    (listed,) = granted("ann", "GET", GRANTS).json["grants"]
    assert listed == {
        "privilege": "write",
        "on": ORDERS,
        "to": "bob",
        "ref": "release/*",
        "id": listed["id"],
    }
    assert granted("bob", "GET", GRANTS).json["grants"] == [listed]
    assert granted("bob", "DELETE", f"{GRANTS}/{listed['id']}").status == 404
    assert len(granted("root", "GET", GRANTS).json["grants"]) == 2
    assert granted("ann", "DELETE", f"{GRANTS}/{listed['id']}").status == 204
    assert granted("bob", "GET", GRANTS).json["grants"] == []
    assert granted("ann", "DELETE", f"{GRANTS}/x").status == 404
    on_catalog = {"grants": [{"privilege": "read", "on": {"kind": "catalog"}, "to": "ann"}]}
    assert granted("ann", "POST", GRANTS, on_catalog).error == (403, "ForbiddenException")
    assert [e.principal for e in granted.context.records.audit() if e.operation == "revoke"] == ["ann"]


def test_what_is_no_grant_is_a_bad_request(granted: GrantedServer) -> None:
    for body in (grant("raed", "bob"), grant("read", "bob", ref="main"), grant("read", "")):
        assert granted("root", "POST", GRANTS, body).status == 400
    wrong = {"grants": [{"privilege": "read", "on": {"kind": "schema"}, "to": "bob"}]}
    assert granted("root", "POST", GRANTS, wrong).status == 400
    assert granted("root", "POST", GRANTS, grant("read", "role:none")).status == 404


def test_last_administrator_stays(granted: GrantedServer) -> None:
    (only,) = granted("root", "GET", GRANTS).json["grants"]
    assert granted("root", "DELETE", f"{GRANTS}/{only['id']}").status == 403


def test_roles_are_for_administrators(granted: GrantedServer) -> None:
    assert granted("root", "POST", ROLES, {"name": "etl"}).status == 204
    assert granted("root", "POST", ROLES, {"name": "etl"}).status == 409
    assert granted("root", "POST", f"{ROLES}/etl/members", {"add": ["bob", "group:team"]}).status == 204
    assert granted("root", "GET", ROLES).json["roles"] == [{"name": "etl", "members": ["group:team", "bob"]}]
    assert granted("root", "POST", GRANTS, grant("read", "role:etl")).status == 204
    assert granted("bob", "GET", "/v1/namespaces/db/tables/orders").status == 200
    assert granted("bob", "GET", GRANTS).json["grants"][0]["to"] == "role:etl"
    assert granted("root", "POST", f"{ROLES}/etl/members", {"remove": ["bob"]}).status == 204
    assert granted("bob", "GET", "/v1/namespaces/db/tables/orders").status == 404
    assert granted("root", "DELETE", f"{ROLES}/etl").status == 204
    assert granted("root", "GET", ROLES).json["roles"] == []
    assert granted("bob", "GET", ROLES).status == 403


def test_owner_gives_a_table_away(granted: GrantedServer) -> None:
    body = {"on": ORDERS, "owner": "ann"}
    assert granted("root", "POST", OWNERS, body).status == 204
    assert body in granted("ann", "GET", OWNERS).json["owners"]
    assert granted("bob", "GET", OWNERS).json["owners"] == []
    assert granted("ann", "POST", OWNERS, {"on": ORDERS, "owner": "bob"}).status == 204
    assert granted("ann", "GET", "/v1/namespaces/db/tables/orders").status == 404


def test_names_of_roles_are_not_suggested(granted: GrantedServer) -> None:
    granted.direct.create_role("auditors")
    granted.grant("administer", "table db.orders", "bob")
    on = {"kind": "table", "namespace": ["db"], "name": "orders"}
    body = {"grants": [{"privilege": "read", "on": on, "to": "role:auditor"}]}
    refused = granted("bob", "POST", "/bergline/v1/grants", body)
    assert (refused.status, refused.message) == (404, "no role `auditor`")
