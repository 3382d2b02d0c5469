"""Credentials that `bergline serve` hands out for files on a real S3 server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

import bergline
from bergline.lake.lake import Lake
from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from bergline.server.opening import VendingConfig, open_server
from support.models.iam_policy import allows
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, bearer, set_property
from support.servers.bergline_server import BerglineServer
from support.servers.peers import duckdb_connection
from support.servers.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from support.servers.sts_server import StsServer

WISH = {"X-Iceberg-Access-Delegation": "remote-signing, vended-credentials"}
ORDERS = "/v1/namespaces/db/tables/orders"
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def served(tmp_path: Path, bucket: str, s3_server: S3Server) -> Iterator[ServerContext]:
    """A server that hands out its keys."""
    opened = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        properties=s3_server.properties,
        vend=VendingConfig(),
    )
    yield opened
    opened.catalog.close()


@pytest.fixture
def client(served: ServerContext) -> Iterator[AsgiClient]:
    with AsgiClient(served) as asking:
        asking.namespace("db")
        yield asking


def check_keys(answer: Any, prefix: str) -> None:
    (credential,) = answer["storage-credentials"]
    assert credential["prefix"] == prefix
    for config in (credential["config"], answer.get("config", credential["config"])):
        assert config["s3.access-key-id"] == ACCESS_KEY
        assert config["s3.secret-access-key"] == SECRET_KEY
        assert config["s3.region"] == config["client.region"] == "us-east-1"
        assert config["s3.endpoint"]
        assert "client.refresh-credentials-endpoint" not in config


def test_keys_come_with_tables_to_those_who_ask_alone(client: AsgiClient, bucket: str) -> None:
    prefix = f"{bucket}/warehouse/db/orders/"
    made = client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA}, headers=WISH)
    check_keys(made.json, prefix)
    assert "etag" not in made.headers
    staged = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    check_keys(client("POST", "/v1/namespaces/db/tables", staged, headers=WISH).json, f"{bucket}/warehouse/db/staged/")
    for _ in range(2):  # the second from memory
        loaded = client("GET", ORDERS, headers=WISH)
        check_keys(loaded.json, prefix)
        check_keys(client("GET", f"{ORDERS}/credentials").json, prefix)
        plain = client("GET", ORDERS)
        assert ACCESS_KEY not in plain.json["config"].values()
        assert SECRET_KEY not in plain.body.decode()
        assert "storage-credentials" not in plain.json
        assert {**loaded.json, "config": {}} == {
            **plain.json,
            "storage-credentials": loaded.json["storage-credentials"],
        }
    tag = loaded.headers["etag"]
    assert tag != plain.headers["etag"]
    assert client("GET", ORDERS, headers={**WISH, "If-None-Match": tag}).status == 304
    assert client("GET", ORDERS, headers={"If-None-Match": tag}).status == 200
    assert client("GET", ORDERS, headers={**WISH, "If-None-Match": plain.headers["etag"]}).status == 200
    location = loaded.json["metadata-location"]
    registered = {"name": "again", "metadata-location": location}
    check_keys(client("POST", "/v1/namespaces/db/register", registered, headers=WISH).json, prefix)
    assert SECRET_KEY not in client.commit(set_property("a", "b"), headers=WISH).body.decode()


def test_a_table_that_is_made_twice_by_its_key_comes_with_keys_again(client: AsgiClient, bucket: str) -> None:
    headers = {**WISH, "Idempotency-Key": "01234567-89ab-cdef-0123-456789abcdef"}
    for _ in range(2):
        made = client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA}, headers=headers)
        check_keys(made.json, f"{bucket}/warehouse/db/orders/")


def test_nothing_that_is_kept_or_said_has_the_keys(client: AsgiClient, served: ServerContext, tmp_path: Path) -> None:
    client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA}, headers=WISH)
    client("GET", ORDERS, headers=WISH)
    assert SECRET_KEY not in str(served.records.audit())
    assert SECRET_KEY.encode() not in (tmp_path / "catalog.db").read_bytes()
    for path in ("/v1/config", "/metrics", "/openapi.json"):
        assert SECRET_KEY not in client("GET", path).body.decode()


ROLE = "arn:aws:iam::123456789012:role/tables"


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[StsServer]:
    with StsServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.uri)
        yield server


@pytest.fixture
def lending(tmp_path: Path, bucket: str, s3_server: S3Server, sts: StsServer) -> Iterator[ServerContext]:
    """A server that lends keys of a role, for one table each; the whole bucket is allowed."""
    opened = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        places=[bucket],
        properties=s3_server.properties,
        vend=VendingConfig(ROLE),
    )
    yield opened
    opened.catalog.close()


@pytest.fixture
def borrow(lending: ServerContext) -> Iterator[AsgiClient]:
    with AsgiClient(lending) as asking:
        asking.namespace("db")
        yield asking


def create(client: AsgiClient, name: str, location: str | None = None, **properties: str) -> AsgiResponse:
    body: dict[str, Any] = {"name": name, "schema": SCHEMA, "properties": properties}
    return client("POST", "/v1/namespaces/db/tables", body | ({"location": location} if location else {}), headers=WISH)


def test_each_caller_gets_keys_of_their_own(lending: ServerContext, sts: StsServer) -> None:
    for name in ("ann", "bob"):
        lending.records.tokens.create(name, f"bl_{name}", 1, None)
    lending.authenticator = Authenticator(lending.records)
    url, keys = "/v1/namespaces/db/tables/orders", []
    with AsgiClient(lending) as client:
        ann, bob = (WISH | bearer(f"bl_{name}") for name in ("ann", "bob"))
        client("POST", "/v1/namespaces", {"namespace": ["db"]}, headers=ann)
        client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA}, headers=ann)
        for headers in (ann, bob, ann, bob):
            for path in (url, f"{url}/credentials"):
                vended = client("GET", path, headers=headers).json["storage-credentials"]
                keys.append(vended[0]["config"]["s3.access-key-id"])
    assert keys == ["ASIA1", "ASIA1", "ASIA2", "ASIA2"] * 2
    assert [name.rpartition("-")[0] for name in sts.sessions] == ["bergline-ann", "bergline-bob"]


def test_keys_of_a_role_open_the_directories_of_one_table(borrow: AsgiClient, bucket: str, sts: StsServer) -> None:
    made = create(borrow, "orders", **{"write.data.path": f"{bucket}/data/orders"})
    assert create(borrow, "items").status == 200
    arn = bucket.replace("s3://", "arn:aws:s3:::")
    assert made.json["storage-credentials"][0]["config"]["s3.access-key-id"] == "ASIA1"
    orders, items = sts.policies
    for key in ("warehouse/db/orders/metadata/x.json", "data/orders/f.parquet"):
        assert allows(orders, "s3:PutObject", f"{arn}/{key}")
        assert not allows(items, "s3:GetObject", f"{arn}/{key}")
    for key in ("warehouse/db/items/data/f", "data/items/f", "warehouse/db/f", "warehouse/x", "f"):
        assert not allows(orders, "s3:GetObject", f"{arn}/{key}")
    for prefix in ("", "warehouse/", "warehouse/db/", "warehouse/db/items/", "data/"):
        assert not allows(orders, "s3:ListBucket", arn, s3_prefix=prefix)
    assert allows(orders, "s3:ListBucket", arn, s3_prefix="data/orders/")
    for path in (ORDERS, f"{ORDERS}/credentials"):  # the same keys again
        assert borrow("GET", path, headers=WISH).json["storage-credentials"] == made.json["storage-credentials"]
    assert len(sts.policies) == 2


def test_tables_do_not_overlap_where_keys_are_for_one_of_them(borrow: AsgiClient, bucket: str, sts: StsServer) -> None:
    orders, data = f"{bucket}/warehouse/db/orders", f"{bucket}/data/orders"
    made = create(borrow, "orders", **{"write.data.path": data})
    assert create(borrow, "items").status == 200
    others = [orders, f"{orders}/", f"{orders}/inside", f"{bucket}/warehouse/db", data, f"{data}/x", f"{bucket}/data"]
    others.append(orders.replace("s3://", "s3a://"))
    for place in others:
        for response in (
            create(borrow, "new", place),
            create(borrow, "new", **{"write.data.path": place}),
            create(borrow, "new", **{"write.metadata.path": place}),
            borrow.commit({"action": "set-location", "location": place}, name="items"),
            borrow.commit(set_property("write.data.path", place), name="items"),
        ):
            assert response.error == (403, "ForbiddenException"), (place, response)
            assert "which overlaps the files of table `db." in response.message
    registered = {"name": "again", "metadata-location": made.json["metadata-location"]}
    assert borrow("POST", "/v1/namespaces/db/register", registered).status == 403
    assert {t["name"] for t in borrow("GET", "/v1/namespaces/db/tables").json["identifiers"]} == {"orders", "items"}
    assert borrow.commit(set_property("write.data.path", f"{data}/inside")).status == 200  # its own
    assert borrow.commit(set_property("write.data.path", f"{bucket}/data/items"), name="items").status == 200
    assert create(borrow, "beside", f"{orders}2").status == 200
    assert borrow("DELETE", ORDERS).status == 204
    assert create(borrow, "after", orders).status == 200
    assert len(sts.policies) == 4


@pytest.mark.parametrize("place", ["", "/", "/warehouse", "/warehouse/"])
def test_no_table_lies_where_all_others_do(borrow: AsgiClient, bucket: str, place: str) -> None:
    assert create(borrow, "orders").status == 200
    for response in (
        create(borrow, "new", f"{bucket}{place}"),
        create(borrow, "new", **{"write.data.path": f"{bucket}{place}"}),
        borrow.commit({"action": "set-location", "location": f"{bucket}{place}"}),
        borrow.commit(set_property("write.metadata.path", f"{bucket}{place}")),
    ):
        assert response.error == (403, "ForbiddenException"), response
        assert "expected a directory below the warehouse" in response.message


def test_tables_that_overlap_already_get_no_keys(
    borrow: AsgiClient, lending: ServerContext, bucket: str, sts: StsServer, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(lending.catalog, "lake")
    inner = f"{bucket}/warehouse/db/outer/inner"
    lake.create_table("db.outer", ROWS.schema)
    lake.create_table("db.inner", ROWS.schema, location=inner)
    lake.create_table("db.root", ROWS.schema, location=f"{bucket}/warehouse")
    for name, why in (("outer", "overlaps"), ("inner", "overlaps"), ("root", "all of it")):
        path = f"/v1/namespaces/db/tables/{name}"
        for _ in range(2):
            response = borrow("GET", path, headers=WISH)
            assert response.status == 200
            assert "storage-credentials" not in response.json
        assert why in borrow("GET", f"{path}/credentials").message
        assert caplog.text.count(f"no credentials for table `db.{name}`") == 1
    assert not sts.policies
    lake.drop_table("db.root")
    lake.drop_table("db.inner")
    assert borrow("GET", "/v1/namespaces/db/tables/outer", headers=WISH).json["storage-credentials"]


def duck(server: BerglineServer, warehouse: str = "lake") -> duckdb.DuckDBPyConnection:
    connection = duckdb_connection()
    options = f"TYPE iceberg, ENDPOINT '{server.uri}', AUTHORIZATION_TYPE 'none'"
    connection.execute(f"ATTACH '{warehouse}' AS ice ({options})")
    return connection


def test_clients_without_keys_of_their_own_write_and_read(
    tmp_path: Path, bucket: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    properties = [text for k, v in s3_server.properties.items() for text in ("--property", f"{k}={v}")]
    options = ["--warehouse", f"{bucket}/warehouse", "--vend-credentials", *properties]
    with BerglineServer(tmp_path, *options) as server:
        with bergline.connect(server.uri) as lake:
            lake.create_namespace("db")
            lake.create_table("db.ours", ROWS.schema).append(ROWS)
            peer = load_catalog("served", type="rest", uri=server.uri)
            peer.load_table("db.ours").append(ROWS)
            peer.create_table("db.theirs", ROWS.schema).append(ROWS)
            peer.close()
            duck(server).execute("INSERT INTO ice.db.ours VALUES (3)")
            assert len(lake.load_table("db.ours").scan().to_arrow()) == 5
            assert len(lake.load_table("db.theirs").scan().to_arrow()) == 2
            assert "0 may go" in str(lake.load_table("db.ours").plan_orphans())
            lake.branches.create("staging")
            at_branch = {"uri": server.uri, "warehouse": "lake@staging"}
            with bergline.connect(**at_branch) as staging:
                staging.load_table("db.ours").append(ROWS)
                peer = load_catalog("staging", type="rest", **at_branch)
                peer.load_table("db.ours").append(ROWS)
                peer.create_table("db.on_branch", ROWS.schema).append(ROWS)
                peer.close()
                duck(server, "lake@staging").execute("INSERT INTO ice.db.ours VALUES (3)")
                assert len(staging.load_table("db.ours").scan().to_arrow()) == 10
            assert len(lake.load_table("db.ours").scan().to_arrow()) == 5
            lake.branches.publish("staging")
            assert len(lake.load_table("db.ours").scan().to_arrow()) == 10
            assert len(lake.load_table("db.on_branch").scan().to_arrow()) == 2
        assert SECRET_KEY not in (tmp_path / "log.txt").read_text()
