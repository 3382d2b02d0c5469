"""The endpoints of branches of the lake."""

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.errors import AlreadyExistsError, NotFoundError, RefusedError
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient
from support.servers.granted_server import GrantedServer
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

BRANCHES = "/bergline/v1/lake-branches"
KEY = {"idempotency-key": "0193a1b0-0000-7000-8000-000000000001"}


@pytest.fixture
def uri(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


def test_branches_are_created_loaded_listed_and_dropped(client: AsgiClient, context: ServerContext) -> None:
    soon = time.time_ns() // 1_000_000 + 60_000
    made = client("POST", BRANCHES, {"name": "a/b", "tables": ["sales.*"], "expires-ms": soon})
    assert made.status == 200
    assert (made.json["owner"], made.json["tables"], made.json["expires-ms"]) == ("anonymous", ["sales.*"], soon)
    assert client("GET", f"{BRANCHES}/a%2Fb").json == {"branch": made.json}
    assert client("GET", BRANCHES).json["branches"] == [made.json]
    assert client("DELETE", f"{BRANCHES}/a%2Fb").status == 204
    assert client("GET", f"{BRANCHES}/a%2Fb").error == (404, "NotFoundException")
    assert client("DELETE", f"{BRANCHES}/a%2Fb").error == (404, "NotFoundException")
    rows = [(e.principal, e.operation, e.resource) for e in context.records.audit()]
    assert rows == [
        ("anonymous", "create_lake_branch", "lake-branch/a/b"),
        ("anonymous", "drop_lake_branch", "lake-branch/a/b"),
    ]
    told = [(e.type, e.subject, e.data["name"]) for e in Lake(context.catalog, "lake").events()]
    assert told == [("lake-branch.create", "lake-branch/a/b", "a/b"), ("lake-branch.drop", "lake-branch/a/b", "a/b")]


def test_repeated_request_creates_and_drops_once(client: AsgiClient, context: ServerContext) -> None:
    first, second = (client("POST", BRANCHES, {"name": "staging"}, headers=KEY) for _ in range(2))
    assert (first.status, second.json) == (200, first.json)
    other = {"idempotency-key": KEY["idempotency-key"][:-1] + "2"}
    for _ in range(2):
        assert client("DELETE", f"{BRANCHES}/staging", headers=other).status == 204
    assert len(context.records.audit()) == 2


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"name": "main"}, (400, "IllegalArgumentException")),
        ({"name": "staging", "tables": ["sales"]}, (400, "IllegalArgumentException")),
        ({"name": "staging", "expires-ms": 1}, (400, "IllegalArgumentException")),
        ({"tables": []}, (400, "BadRequestException")),
    ],
)
def test_wrong_branches_are_refused(client: AsgiClient, body: object, error: tuple[int, str]) -> None:
    assert client("POST", BRANCHES, body).error == error
    assert client("GET", BRANCHES).json["branches"] == []


def test_who_may_write_somewhere_creates_and_owners_and_administrators_drop(granted: GrantedServer) -> None:
    refused = granted("ann", "POST", BRANCHES, {"name": "staging"})
    assert (refused.status, "`ann` may write nowhere" in refused.message) == (403, True)
    granted.grant("write", "table db.orders", "ann", ref="dev/*")
    granted.grant("read", "catalog", "bob")
    assert granted("ann", "POST", BRANCHES, {"name": "staging"}).status == 200
    assert granted("ann", "POST", BRANCHES, {"name": "other"}).status == 200
    assert granted("bob", "POST", BRANCHES, {"name": "bobs"}).status == 403
    assert granted("bob", "GET", f"{BRANCHES}/staging").json["branch"]["owner"] == "ann"
    refused = granted("bob", "DELETE", f"{BRANCHES}/staging")
    assert (refused.status, "belongs to `ann`, not to `bob`" in refused.message) == (403, True)
    assert granted("ann", "DELETE", f"{BRANCHES}/staging").status == 204
    assert granted("root", "DELETE", f"{BRANCHES}/other").status == 204


def test_client_works_with_branches_of_the_server(uri: str) -> None:
    with bergline.connect(uri) as lake:
        lake.create_namespace("db")
        orders = lake.create_table("db.orders", pa.schema([("id", pa.int64())]))
        orders.append(pa.table({"id": [1]})).refs.create_tag("v1")
        made = lake.branches.create("a/b %", tables=["db.*"], expires="7d")
        assert (made.owner, made.tables) == ("anonymous", ("db.*",))
        assert lake.branches.list() == [made]
        assert lake.branches.get("a/b %") == made
        with pytest.raises(AlreadyExistsError, match="a branch `a/b %` already"):
            lake.branches.create("a/b %")
        with pytest.raises(AlreadyExistsError, match=r"it is a tag of `db\.orders`"):
            lake.branches.create("v1")
        with pytest.raises(NotFoundError, match="no branch `a` of the lake"):
            lake.branches.get("a")
        lake.at("a/b %").load_table("db.orders").append(pa.table({"id": [2, 3]}))
        (found,) = lake.branches.diff("a/b %")
        assert (found.table, found.ahead, found.behind, found.added_rows) == ("db.orders", 1, 0, 2)
        assert len(lake.branches.publish("a/b %").tables) == 1
        assert (lake.branches.list(), "a/b %" in lake.load_table("db.orders").refs) == ([], False)
        assert lake.load_table("db.orders").scan().to_arrow().num_rows == 3
        with pytest.raises(NotFoundError, match="no branch `a/b %` of the lake"):
            lake.branches.drop("a/b %")


def test_branch_of_another_stays_whole_when_its_drop_is_refused(granted: GrantedServer) -> None:
    for who in ("ann", "bob"):
        granted.grant("administer", "namespace db", who)
    assert granted("ann", "POST", BRANCHES, {"name": "staging"}).status == 200
    with on_socket(granted.context) as port:
        at = f"http://127.0.0.1:{port}"
        with bergline.connect(at, properties={"token": "bl_bob"}) as lake:
            orders = lake.create_table("db.items", pa.schema([("id", pa.int64())]))
            lake.at("staging").load_table("db.items").append(pa.table({"id": [1]}))
            for change in (lake.branches.drop, lake.branches.publish):
                with pytest.raises(RefusedError, match="belongs to `ann`, not to `bob`"):
                    change("staging")
            assert list(orders.refresh().refs) == ["staging"]
            assert len(lake.branches.publish("staging", keep_branch=True).tables) == 1
            assert set(orders.refresh().refs) == {"staging", "main"}
            assert [branch.name for branch in lake.branches.list()] == ["staging"]
