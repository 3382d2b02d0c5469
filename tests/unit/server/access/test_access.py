"""Grants in a server's memory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError, RefusedError
from bergline.governance.grants.grant import Grant, make_grants, principal
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import Securable, SecurableKind, parse_securable
from bergline.governance.grants.store import SqlGrants
from bergline.server.access.access import FRESH_S, Access
from bergline.server.context.context import ServerContext
from bergline.server.credentials.vending import StaticVending
from bergline.server.opening import open_server
from support.fixtures.many_tables import fill, plans, watched
from support.servers.asgi_client import SCHEMA
from support.servers.granted_server import GrantedServer

ORDERS = "/v1/namespaces/db/tables/orders"
TABLE = parse_securable("table db.orders")
NONE: frozenset[str] = frozenset()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def direct(context: ServerContext) -> SqlGrants:
    return SqlGrants(context.records.database, context.records.catalog_name)


def test_everything_is_allowed_until_the_first_grant(context: ServerContext, direct: SqlGrants, clock: Clock) -> None:
    access = Access(direct, clock)
    assert access.may("ann", NONE, Privilege.DROP, TABLE)
    assert not access.is_active
    direct.grant(make_grants("administer", "catalog", "root"))
    clock.now += FRESH_S
    assert not access.may("ann", NONE, Privilege.LIST, TABLE)
    assert access.is_active


def test_what_was_granted_is_allowed_at_once_and_what_was_revoked_refused_soon(direct: SqlGrants, clock: Clock) -> None:
    access = Access(direct, clock)
    direct.grant(make_grants("administer", "catalog", "root"))
    assert not access.may("ann", NONE, Privilege.READ, TABLE)
    direct.grant(make_grants("read", "table db.orders", "ann"))
    assert not access.allows_at_once("ann", NONE, Privilege.READ, TABLE)  # from memory alone
    assert access.may("ann", NONE, Privilege.READ, TABLE)
    direct.revoke(make_grants("read", "table db.orders", "ann"))
    assert access.allows_at_once("ann", NONE, Privilege.READ, TABLE)
    clock.now += FRESH_S
    assert not access.allows_at_once("ann", NONE, Privilege.READ, TABLE)
    assert not access.may("ann", NONE, Privilege.READ, TABLE)
    assert FRESH_S < 5


def test_owners_alone_are_read_when_only_they_changed(direct: SqlGrants, clock: Clock) -> None:
    access = Access(direct, clock)
    direct.grant(make_grants("administer", "catalog", "root"))
    before = access.refresh()
    direct.set_owner(TABLE, principal("ann"))
    assert access.may("ann", NONE, Privilege.DROP, TABLE)
    assert access.rules() is before
    direct.grant(make_grants("list", "catalog", "ann"))
    assert access.refresh() is not before


def test_check_raises_what_a_caller_is_told(direct: SqlGrants) -> None:
    access = Access(direct)
    direct.grant([*make_grants("administer", "catalog", "root"), *make_grants("list", "table db.orders", "ann")])
    with pytest.raises(RefusedError, match="expected the privilege `write` on table") as refused:
        access.check("ann", NONE, Privilege.WRITE, TABLE)
    assert refused.value.hints == ("an owner of table `db.orders` or an administrator of the catalog can grant it",)
    with pytest.raises(NotFoundError, match="no table"):
        access.check("bob", NONE, Privilege.WRITE, TABLE)


def test_cached_load_is_refused_too(granted: GrantedServer) -> None:
    granted.grant("read", "table db.orders", "ann")
    for _ in range(3):
        assert granted("ann", "GET", ORDERS).status == 200
        assert granted("bob", "GET", ORDERS).error == (404, "NoSuchTableException")
    tag = granted("ann", "GET", ORDERS).headers["etag"]
    assert granted("bob", "GET", ORDERS, headers={"if-none-match": tag}).status == 404
    assert granted("bob", "GET", ORDERS, headers={"if-none-match": "*"}).status == 404


def test_names_that_may_not_be_seen_are_not_suggested(granted: GrantedServer) -> None:
    granted.grant("list", "namespace db", "ann")
    granted.grant("create", "namespace db.sub", "bob")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db", "sub"]})
    near = "Table does not exist: db.order; did you mean `db.orders`?"
    assert granted("ann", "GET", "/v1/namespaces/db/tables/order").message == near
    assert granted("bob", "GET", "/v1/namespaces/db/tables/order").message == "Table does not exist: db.order"
    missing = granted("bob", "GET", "/v1/namespaces/db%1Fsub/tables/orders").message
    assert missing == "Table does not exist: db.sub.orders"


def test_pages_of_a_list_have_only_what_may_be_seen(granted: GrantedServer) -> None:
    for name in ("a", "b", "c", "d", "e"):
        granted("root", "POST", "/v1/namespaces/db/tables", {"name": name, "schema": SCHEMA})
        granted("root", "POST", "/v1/namespaces", {"namespace": [name]})
    for name in ("b", "d", "e"):
        granted.grant("list", f"table db.{name}", "ann")
        granted.grant("list", f"namespace {name}", "ann")
    tables, token = [], ""
    while True:
        query = {"pageSize": "2", "pageToken": token}
        page = granted("ann", "GET", "/v1/namespaces/db/tables", query=query).json
        tables.append([one["name"] for one in page["identifiers"]])
        token = page["next-page-token"]
        if token is None:
            break
    assert tables == [["b", "d"], ["e"]]
    first = granted("ann", "GET", "/v1/namespaces", query={"pageSize": "3"}).json
    assert first["namespaces"] == [["b"], ["d"], ["db"]]
    then = granted("ann", "GET", "/v1/namespaces", query={"pageSize": "3", "pageToken": first["next-page-token"]}).json
    assert (then["namespaces"], then["next-page-token"]) == ([["e"]], None)


def names_in(granted: GrantedServer, who: str, size: int, kind: str = "tables") -> Iterator[list[str]]:
    """The names in `big`, page by page."""
    token = ""
    while token is not None:
        query = {"pageSize": str(size), "pageToken": token}
        page = granted(who, "GET", f"/v1/namespaces/big/{kind}", query=query).json
        yield [one["name"] for one in page["identifiers"]]
        token = page["next-page-token"]


def test_names_that_may_be_seen_are_looked_up_and_no_others(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["big"]})
    fill(granted.context, most=20_000)
    views = next(names_in(granted, "root", 3, "views"))
    for name in ("t000003", "t010000", "t019999", "gone", views[0]):
        granted.grant("read", f"table big.{name}", "ann")
    granted.grant("list", f"view big.{views[2]}", "ann")
    granted.direct.set_owner(parse_securable("table big.t015000"), principal("ann"))
    database = granted.context.store.database
    with watched(database) as work:
        assert list(names_in(granted, "ann", 2)) == [["t000003", "t010000"], ["t015000", "t019999"]]
        assert list(names_in(granted, "ann", 10, "views")) == [[views[2]]]
        whole = granted("ann", "GET", "/v1/namespaces/big/tables").json["identifiers"]
        assert len(whole) == 4
        assert granted("bob", "GET", "/v1/namespaces/big/tables", query={"pageSize": "5"}).status == 404
    assert work.thousands <= 5
    assert not [line for line in plans(database, work) if line.startswith("SCAN iceberg")]


def test_who_sees_most_names_reads_no_more_than_a_page(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["big"]})
    fill(granted.context, most=20_000)
    tables = [Securable(SecurableKind.TABLE, ("big",), f"t{number:06}") for number in range(1, 3000, 2)]
    granted.direct.grant([Grant(principal("ann"), Privilege.READ, one) for one in tables])
    pages_of = names_in(granted, "ann", 100)
    next(pages_of)
    with watched(granted.context.store.database) as work:
        assert len(next(pages_of)) == 100
    assert work.thousands <= 30
    names = [name for page in names_in(granted, "ann", 700) for name in page]
    of_views = {name for page in names_in(granted, "root", 1000, "views") for name in page}
    assert names == [one.name for one in tables if one.name not in of_views]


def test_pages_stay_complete_when_grants_change_between_them(granted: GrantedServer) -> None:
    granted("root", "POST", "/v1/namespaces", {"namespace": ["big"]})
    for name in ("a", "b", "c", "d", "e", "f"):
        granted("root", "POST", "/v1/namespaces/big/tables", {"name": name, "schema": SCHEMA})
    for name in ("a", "c", "e"):
        granted.grant("list", f"table big.{name}", "ann")
    by_page = names_in(granted, "ann", 1)
    assert next(by_page) == ["a"]
    granted.grant("list", "namespace big", "ann")
    assert [next(by_page), next(by_page)] == [["b"], ["c"]]
    granted.revoke("list", "namespace big", "ann")
    granted("root", "DELETE", "/v1/namespaces/big/tables/c")
    granted.grant("list", "table big.f", "ann")
    assert list(by_page) == [["e"], ["f"]]


def pages(granted: GrantedServer, who: str, size: int, parent: str | None = None) -> list[list[str]]:
    """The names of namespaces, page by page."""
    found, token = [], ""
    while token is not None:
        query = {"pageSize": str(size), "pageToken": token} | ({"parent": parent} if parent else {})
        page = granted(who, "GET", "/v1/namespaces", query=query).json
        found.append([levels[-1] for levels in page["namespaces"]])
        token = page["next-page-token"]
    return found


def test_namespaces_that_may_be_seen_are_looked_up_and_no_others(granted: GrantedServer) -> None:
    store = granted.context.store
    rows = ({"catalog": store.catalog_name, "name": f"n{number:05}"} for number in range(20_000))
    insert = "INSERT INTO iceberg_namespace_properties VALUES (:catalog, :name, 'exists', 'true')"
    with store.database.changing() as connection:
        connection.execute(sa.text(insert), list(rows))
    assert store.create(TableName(("deep", "down"), "t"), "s3://b/t/metadata/1.metadata.json")
    granted.grant("list", "namespace n00007", "ann")
    granted.grant("read", "table deep.down.t", "ann")
    granted.grant("list", "namespace gone", "ann")
    granted.direct.set_owner(parse_securable("namespace n19999"), principal("ann"))
    granted.direct.set_owner(parse_securable("table n00008.x.t"), principal("ann"))
    pages(granted, "ann", 10)
    with watched(store.database) as work:
        assert pages(granted, "ann", 2) == [["deep", "n00007"], ["n00008", "n19999"]]
        assert granted("ann", "GET", "/v1/namespaces").json["namespaces"] == [
            ["deep"],
            ["n00007"],
            ["n00008"],
            ["n19999"],
        ]
        assert pages(granted, "ann", 2, parent="deep") == [["down"]]
        assert granted("ann", "GET", "/v1/namespaces", query={"parent": "n00001"}).status == 404
        assert granted("root", "GET", "/v1/namespaces", query={"pageSize": "5"}).json["namespaces"][0] == ["db"]
    assert work.thousands <= 5
    assert not [line for line in plans(store.database, work) if line.startswith("SCAN iceberg")]


def test_who_may_list_a_namespace_sees_all_below_it(granted: GrantedServer) -> None:
    for name in ("a", "b", "c"):
        granted("root", "POST", "/v1/namespaces", {"namespace": ["db", name]})
    granted.grant("list", "namespace db", "ann")
    granted.grant("list", "namespace db.b", "bob")
    assert pages(granted, "ann", 2, parent="db") == [["a", "b"], ["c"]]
    assert pages(granted, "bob", 2, parent="db") == [["b"]]
    assert pages(granted, "bob", 2) == [["db"]]


def test_repeated_request_is_refused_once_the_privilege_is_gone(granted: GrantedServer) -> None:
    granted.grant("write", "table db.orders", "ann")
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    key = {"idempotency-key": "01930000-0000-7000-8000-000000000000"}
    assert granted("ann", "POST", ORDERS, body, headers=key).status == 200
    assert granted("ann", "POST", ORDERS, body, headers=key).status == 200
    granted.revoke("write", "table db.orders", "ann")
    granted.context.access.refresh()
    assert granted("ann", "POST", ORDERS, body, headers=key).status == 404


def test_another_server_of_the_catalog_knows_the_same(granted: GrantedServer, tmp_path: Path) -> None:
    other = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    try:
        assert not other.access.may("ann", NONE, Privilege.READ, TABLE)
        granted.grant("read", "table db.orders", "ann")
        assert other.access.may("ann", NONE, Privilege.READ, TABLE)
    finally:
        other.catalog.close()


@pytest.mark.parametrize("vends", [True, False])
def test_table_in_the_way_is_not_named(granted: GrantedServer, vends: bool) -> None:
    context = granted.context
    if vends:
        context.credentials.vending = StaticVending({"s3.access-key-id": "k", "s3.secret-access-key": "s"})
        context.credentials.vending.is_for_one_table = True  # as those that assume a role are
    context.store.create(TableName(("db",), "secret"), "s3://bucket/a/metadata/1.metadata.json")
    with pytest.raises(RefusedError, match="found one with files of another table") as refused:
        context.claims.check_apart(TableName(("db",), "mine"), ["s3://bucket/a"])
    assert "secret" not in f"{refused.value} {refused.value.hints}"


def test_near_names_are_those_that_the_caller_sees(granted: GrantedServer) -> None:
    for name in ("order_items", "order_notes"):
        granted("root", "POST", "/v1/namespaces/db/tables", {"name": name, "schema": SCHEMA})
    granted.grant("list", "table db.order_items", "ann")
    for asked in ("order_item", "order_notes"):  # one that does not exist, and one that is not seen
        message = granted("ann", "GET", f"/v1/namespaces/db/tables/{asked}").message
        assert message == f"Table does not exist: db.{asked}; did you mean `db.order_items`?"
    granted.grant("list", "table db.else", "bob")
    assert granted("bob", "GET", "/v1/namespaces/db/tables/order_item").message == "Table does not exist: db.order_item"
    assert granted("ann", "HEAD", "/v1/namespaces/db/tables/order_item").status == 404
