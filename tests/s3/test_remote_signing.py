"""Requests to a real S3 server that `bergline serve` signs for clients without keys."""

import base64
import hashlib
import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pyarrow as pa
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import SignError
from pyiceberg.io.fsspec import S3V4RestSigner

from bergline.catalog.identifiers import TableName
from bergline.governance.grants.file_actions import FileActions
from bergline.lake.lake import Lake
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import VendingConfig, open_server
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, set_property
from support.servers.granted_server import GrantedServer
from support.servers.s3_server import REGION, SECRET_KEY, S3Server
from support.servers.server_on_socket import on_socket
from support.servers.sts_server import StsServer

WISH = {"X-Iceberg-Access-Delegation": "remote-signing"}
BOTH = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}
ORDERS = "/v1/namespaces/db/tables/orders"
ROWS = pa.table({"id": [1, 2]})


class Everybody:
    """Everybody may do the same."""

    def __init__(self, actions: FileActions) -> None:
        self._actions = actions

    def actions(self, principal: str, groups: frozenset[str], table: TableName) -> FileActions:
        del principal, groups, table
        return self._actions

    actions_certainly = actions


def opened(tmp_path: Path, bucket: str, s3_server: S3Server, *, vends: bool = False) -> ServerContext:
    return open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        places=[bucket],
        properties=s3_server.properties,
        vend=VendingConfig() if vends else None,
        remote_signing=True,
    )


class SigningFor:
    """Asks for signatures as one of some callers, on a table whose metadata file is known."""

    def __init__(self, granted: GrantedServer, endpoint: str, metadata: str) -> None:
        self.granted = granted
        self.bucket, _, self.metadata_key = metadata.partition("/")
        self.home = f"{endpoint}/{self.bucket}"
        self.metadata = f"{endpoint}/{metadata}"

    def __call__(self, who: str, method: str, uri: str, body: str | None = None, **given: str) -> AsgiResponse:
        headers = {name: [value] for name, value in given.items()}
        wish = {"region": REGION, "uri": uri, "method": method, "headers": headers}
        return self.granted(who, "POST", f"{ORDERS}/sign", wish | ({} if body is None else {"body": body}))


@pytest.fixture
def served(tmp_path: Path, bucket: str, s3_server: S3Server) -> Iterator[ServerContext]:
    """A server that signs."""
    context = opened(tmp_path, bucket, s3_server)
    yield context
    context.catalog.close()


@pytest.fixture
def client(served: ServerContext) -> Iterator[AsgiClient]:
    with AsgiClient(served) as asking:
        asking.namespace("db")
        yield asking


def signer_config(response: AsgiResponse) -> dict[str, str]:
    """The settings in a response, which has no keys."""
    assert response.status == 200, response
    assert "storage-credentials" not in response.json
    assert not any("key" in name or "token" in name for name in response.json["config"])
    assert SECRET_KEY not in response.body.decode()
    config: dict[str, str] = response.json["config"]
    return config


def sign(client: AsgiClient, method: str, uri: str, path: str = f"{ORDERS}/sign", **more: Any) -> AsgiResponse:
    body = {"region": REGION, "uri": uri, "method": method, "headers": more.pop("given", {})}
    return client("POST", path, body | {k: v for k, v in more.items() if k == "body"}, query=more.get("query"))


def send(signed: AsgiResponse, method: str, body: bytes = b"", without: str = "", **headers: str) -> tuple[int, bytes]:
    """Send a signed request to S3 as it is, or without one of its headers."""
    assert signed.status == 200, signed
    parts = urlsplit(signed.json["uri"])
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    given = {name: values[0] for name, values in signed.json["headers"].items() if name != without}
    connection.request(method, parts._replace(scheme="", netloc="").geturl(), body, given | headers)
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def test_settings_of_the_signer_come_to_those_who_ask(client: AsgiClient, s3_server: S3Server) -> None:
    made = client("POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA}, headers=WISH)
    for _ in range(2):  # the second from memory
        loaded = client("GET", ORDERS, headers=WISH)
        config = signer_config(loaded)
        assert config == signer_config(made)
        assert config["s3.remote-signing-enabled"] == "true"
        assert config["s3.signer"] == "S3V4RestSigner"
        assert config["s3.signer.endpoint"] == config["signer.endpoint"] == "v1/namespaces/db/tables/orders/sign"
        assert config["s3.endpoint"] == s3_server.endpoint
        assert config["client.region"] == REGION
        plain = client("GET", ORDERS)
        assert "s3.signer" not in plain.json["config"]
        assert plain.headers["etag"] != loaded.headers["etag"]
        assert client("GET", ORDERS, headers={**WISH, "If-None-Match": loaded.headers["etag"]}).status == 304
    assert "s3.signer" not in client("GET", ORDERS, headers={"X-Iceberg-Access-Delegation": "x"}).json["config"]
    assert client("GET", f"{ORDERS}/credentials").json == {"storage-credentials": []}
    listed = client("GET", "/v1/config").json["endpoints"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign" in listed


def test_signed_requests_write_read_list_and_delete(client: AsgiClient, s3_server: S3Server, bucket: str) -> None:
    client.table()
    home = f"{s3_server.endpoint}/{bucket.removeprefix('s3://')}"
    uri = f"{home}/warehouse/db/orders/data/p%3D%C3%A9%20%252F/f.parquet"
    put = sign(client, "PUT", uri)
    assert put.headers["cache-control"] == "no-cache"
    for added in ("x-amz-copy-source", "x-amz-acl", "x-amz-tagging"):  # S3 takes no header of its own unsigned
        assert b"HeadersNotSigned" in send(put, "PUT", b"", **{added: "x/y"})[1]
    assert send(put, "PUT", b"0123456789")[0] == 200
    get = sign(client, "GET", uri, given={"Range": ["bytes=0-3"]})
    assert get.headers["cache-control"] == "private"
    assert send(get, "GET", Range="bytes=2-4") == (206, b"234")  # as Java does, which keeps the signature
    assert send(get, "GET") == (200, b"0123456789")
    assert send(get, "DELETE")[0] == 403
    listed = sign(client, "GET", f"{home}?list-type=2&prefix=warehouse/db/orders/data/&delimiter=%2F")
    assert b"<Prefix>warehouse/db/orders/data/p=" in send(listed, "GET")[1]
    body = (
        '<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object>'
        "<Key>warehouse/db/orders/data/p=é %2F/f.parquet</Key></Object></Delete>"
    )
    for wanted, sent, status in ((body, body.replace("orders", "others"), 400), (body, body, 200)):
        digest = base64.b64encode(hashlib.md5(sent.encode(), usedforsecurity=False).digest()).decode()
        deletion = sign(client, "POST", f"{home}?delete", body=wanted, given={"Content-MD5": [digest]})
        assert send(deletion, "POST", sent.encode(), **{"Content-MD5": digest})[0] == status
    assert send(sign(client, "HEAD", uri), "HEAD")[0] == 404


def test_signatures_stay_in_the_table(client: AsgiClient, s3_server: S3Server, bucket: str) -> None:
    client.table()
    client.table("items")
    home = f"{s3_server.endpoint}/{bucket.removeprefix('s3://')}"
    for uri in (
        f"{home}/warehouse/db/items/metadata/x",
        f"{home}/warehouse/db/orders/../items/x",
        f"{home}?list-type=2&prefix=",
        f"{s3_server.endpoint}/other/warehouse/db/orders/x",
        "http://127.0.0.1:1/x/warehouse/db/orders/x",
    ):
        assert sign(client, "GET", uri).error == (403, "ForbiddenException"), uri
    inside = f"{home}/warehouse/db/orders/x"
    assert sign(client, "GET", inside, "/v1/namespaces/db/tables/none/sign").error == (404, "NoSuchTableException")
    assert sign(client, "GET", inside, "/v1/namespaces/db/tables/items/sign").status == 403
    assert client("POST", f"{ORDERS}/sign", {"uri": inside}).status == 400
    moved = set_property("write.data.path", f"{bucket}/warehouse/db/items/data")
    assert client.commit(moved).error == (403, "ForbiddenException")
    assert client.commit(set_property("write.data.path", f"{bucket}/own")).status == 200
    assert sign(client, "PUT", f"{home}/own/x").status == 200


def test_tables_that_overlap_get_no_signatures(
    client: AsgiClient, served: ServerContext, s3_server: S3Server, bucket: str
) -> None:
    lake = Lake(served.catalog, "lake")
    lake.create_table("db.outer", ROWS.schema)
    lake.create_table("db.inner", ROWS.schema, location=f"{bucket}/warehouse/db/outer/inner")
    for name in ("outer", "inner"):
        path = f"/v1/namespaces/db/tables/{name}"
        assert "s3.signer" not in client("GET", path, headers=WISH).json["config"]
        uri = f"{s3_server.endpoint}/{bucket.removeprefix('s3://')}/warehouse/db/outer/inner/x"
        assert "overlaps the files" in sign(client, "GET", uri, f"{path}/sign").message


def test_files_of_dropped_tables_are_nobody_elses(tmp_path: Path, bucket: str, s3_server: S3Server) -> None:
    context = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        properties=s3_server.properties,
        limits=ServerSettings(drop_retention_s=60),
        remote_signing=True,
    )
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        assert client("DELETE", ORDERS).status == 204
        for location in (
            f"{bucket}/warehouse/db/orders",
            f"{bucket}/warehouse/db/orders/data",
            f"{bucket}/warehouse/db",
        ):
            body = {"name": "new", "schema": SCHEMA, "location": location, "stage-create": True}
            refused = client("POST", "/v1/namespaces/db/tables", body, headers=WISH)
            assert refused.error == (403, "ForbiddenException")
            assert "table `db.orders`, which was dropped and may come back" in refused.message
        client.table("beside")
        restored = client("POST", "/bergline/v1/namespaces/db/tables/orders/undrop", {}, headers=WISH)
        assert signer_config(restored)["s3.signer"]
    context.catalog.close()


def test_readers_get_signatures_to_read(client: AsgiClient, served: ServerContext, s3_server: S3Server) -> None:
    location = client.table().json["metadata-location"].removeprefix("s3://")
    served.credentials.file_access = Everybody(FileActions.READ)
    assert send(sign(client, "GET", f"{s3_server.endpoint}/{location}"), "GET")[0] == 200
    for method in ("PUT", "DELETE"):
        refused = sign(client, method, f"{s3_server.endpoint}/{location}".replace(".metadata.json", ".avro"))
        assert refused.error == (403, "ForbiddenException")
        assert "you may read the files of this table, not write" in refused.message


def test_readers_get_signatures_in_place_of_keys_that_cannot_be_limited(
    tmp_path: Path, bucket: str, s3_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    context = opened(tmp_path, bucket, s3_server, vends=True)
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        assert client("GET", ORDERS, headers=BOTH).json["storage-credentials"]
        context.credentials.file_access = Everybody(FileActions.READ)
        for _ in range(2):
            assert signer_config(client("GET", ORDERS, headers=BOTH))["s3.signer"]
            keys_alone = client("GET", ORDERS, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
            assert keys_alone.json["config"] == {}
            assert SECRET_KEY not in keys_alone.body.decode()
        assert caplog.text.count("no credentials for table `db.orders`: cannot hand out the server's own keys") == 1
        assert client("GET", f"{ORDERS}/credentials").error == (403, "ForbiddenException")
    context.catalog.close()


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with StsServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.uri)
        yield


@pytest.mark.usefixtures("sts")
def test_who_may_not_replace_files_gets_signatures_in_place_of_keys_of_a_role(
    tmp_path: Path, bucket: str, s3_server: S3Server
) -> None:
    context = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        properties=s3_server.properties,
        vend=VendingConfig("arn:aws:iam::123456789012:role/tables"),
        remote_signing=True,
    )
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        keys_alone = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        for actions in FileActions:
            context.credentials.file_access = Everybody(actions)
            for _ in range(2):
                assert client("GET", ORDERS, headers=keys_alone).json["storage-credentials"]
                loaded = client("GET", ORDERS, headers=BOTH)
                if actions is FileActions.WRITE:
                    assert signer_config(loaded)["s3.signer"]
                else:
                    assert loaded.json["storage-credentials"]
    context.catalog.close()


def test_signatures_are_there_where_the_keys_are_for_another_store(
    tmp_path: Path, bucket: str, s3_server: S3Server
) -> None:
    context = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        properties=s3_server.properties,
        vend=VendingConfig(downscopes_gcs=True),
        remote_signing=True,
    )
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        for _ in range(2):
            assert signer_config(client("GET", ORDERS, headers=BOTH))["s3.signer"]
    context.catalog.close()


def test_files_of_a_staged_table_are_signed_for_before_it_exists(
    client: AsgiClient, s3_server: S3Server, bucket: str
) -> None:
    staged = {"name": "new", "schema": SCHEMA, "stage-create": True, "location": f"{bucket}/elsewhere/new"}
    made = client("POST", "/v1/namespaces/db/tables", staged, headers=WISH)
    path, _, query = signer_config(made)["signer.endpoint"].partition("?staged=")
    uri = f"{s3_server.endpoint}/{bucket.removeprefix('s3://')}/elsewhere/new/data/f"
    assert send(sign(client, "PUT", uri, f"/{path}", query={"staged": query}), "PUT", b"x")[0] == 200
    outside = uri.replace("elsewhere/new", "elsewhere/other")
    assert sign(client, "PUT", outside, f"/{path}", query={"staged": query}).status == 403
    for wrong in ({}, {"staged": ""}, {"staged": "0" * 32}):
        assert sign(client, "PUT", uri, f"/{path}", query=wrong).error == (404, "NoSuchTableException")
    assert sign(client, "PUT", uri, f"{ORDERS}/sign", query={"staged": query}).status == 404
    client.table("new")  # somebody else was first, elsewhere
    assert sign(client, "PUT", uri, f"/{path}", query={"staged": query}).status == 403


def test_who_may_create_tables_gets_no_signatures_for_those_of_others(
    served: ServerContext, s3_server: S3Server
) -> None:
    granted = GrantedServer(served, "ann")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    made = granted("root", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    uri = f"{s3_server.endpoint}/{made.json['metadata-location'].removeprefix('s3://')}"
    body = {"region": REGION, "uri": uri, "method": "GET", "headers": {}}
    granted.grant("create", "namespace db", "ann")
    assert granted("ann", "POST", f"{ORDERS}/sign", body, query={"staged": "0"}).status == 403
    granted.grant("read", "table db.orders", "ann")
    assert granted("ann", "POST", f"{ORDERS}/sign", body, query={"staged": "0"}).status == 200
    granted.client.application.close()


def multi_delete(*keys: str) -> str:
    objects = "".join(f"<Object><Key>{key}</Key></Object>" for key in keys)
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{objects}</Delete>'


@pytest.fixture
def asking_etl(served: ServerContext, s3_server: S3Server) -> Iterator[SigningFor]:
    """Signatures for `etl`, who writes to some branches, and `root`, who may do everything."""
    granted = GrantedServer(served, "etl")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    made = granted("root", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    granted.grant("read", "table db.orders", "etl")
    granted.grant("write", "table db.orders", "etl", "load/*")
    yield SigningFor(granted, s3_server.endpoint, made.json["metadata-location"].removeprefix("s3://"))
    granted.client.application.close()


def test_nobody_gets_a_signature_that_changes_a_metadata_file(asking_etl: SigningFor) -> None:
    ask, uri, key = asking_etl, asking_etl.metadata, asking_etl.metadata_key
    before = send(ask("etl", "GET", uri), "GET")
    for who in ("etl", "root"):
        for method, address, body in (
            ("PUT", uri, None),
            ("DELETE", uri, None),
            ("POST", f"{uri}?uploads", None),
            ("PUT", f"{uri}?partNumber=1&uploadId=u", None),
            ("POST", f"{uri}?uploadId=u", None),
            ("POST", f"{ask.home}?delete", multi_delete("warehouse/db/orders/data/f.parquet", key)),
            ("PUT", uri.replace("metadata.json", "%6Detadata.json"), None),
        ):
            refused = ask(who, method, address, body)
            assert refused.error == (403, "ForbiddenException"), (who, method, address)
            assert "the server alone writes" in refused.message
        source = f"{ask.bucket}/warehouse/db/orders/data/f.parquet"
        assert ask(who, "PUT", uri, **{"x-amz-copy-source": source}).error == (403, "ForbiddenException")
    assert send(ask("etl", "GET", uri), "GET") == before


def test_who_writes_to_some_branches_changes_no_file_that_is_there(asking_etl: SigningFor) -> None:
    ask, data = asking_etl, f"{asking_etl.home}/warehouse/db/orders/data/f.parquet"
    put = ask("etl", "PUT", data)
    assert put.json["headers"]["if-none-match"] == ["*"]
    assert send(put, "PUT", b"first")[0] == 200
    assert send(put, "PUT", b"other")[0] == 412
    assert send(put, "PUT", b"other", without="if-none-match")[0] == 403
    for method, address, body in (
        ("DELETE", data, None),
        ("POST", f"{ask.home}?delete", multi_delete("warehouse/db/orders/data/f.parquet")),
    ):
        assert "you may not delete files" in ask("etl", method, address, body).message
    assert send_in_parts(ask, "etl", data, b"other") == 412
    assert send(ask("etl", "GET", data), "GET")[1] == b"first"
    assert send_in_parts(ask, "etl", f"{data}2", b"other") == 200
    ask.granted.grant("drop", "table db.orders", "etl")
    ask.granted.context.access.refresh()
    put = ask("etl", "PUT", data)
    assert "if-none-match" not in put.json["headers"]
    assert send(put, "PUT", b"other")[0] == 200
    assert send(ask("etl", "DELETE", data), "DELETE")[0] == 204


def send_in_parts(ask: SigningFor, who: str, uri: str, data: bytes) -> int:
    """The status with which an upload of one part ends."""
    upload = send(ask(who, "POST", f"{uri}?uploads"), "POST")[1].decode()
    number = upload.partition("<UploadId>")[2].partition("</UploadId>")[0]
    assert send(ask(who, "PUT", f"{uri}?partNumber=1&uploadId={number}"), "PUT", data)[0] == 200
    tag = hashlib.md5(data, usedforsecurity=False).hexdigest()
    part = f"<Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part>"
    parts = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>".encode()
    return send(ask(who, "POST", f"{uri}?uploadId={number}"), "POST", parts)[0]


def test_keys_of_staged_tables_are_not_recorded(tmp_path: Path, bucket: str, s3_server: S3Server) -> None:
    context = opened(tmp_path, bucket, s3_server, vends=True)
    headers = {**BOTH, "Idempotency-Key": "01234567-89ab-cdef-0123-456789abcdef"}
    with AsgiClient(context) as client:
        client.namespace("db")
        body = {"name": "staged", "schema": SCHEMA, "stage-create": True}
        for _ in range(2):
            made = client("POST", "/v1/namespaces/db/tables", body, headers=headers)
            assert made.json["storage-credentials"]
    context.catalog.close()
    for file in tmp_path.glob("catalog.db*"):
        assert SECRET_KEY.encode() not in file.read_bytes()


def test_servers_that_do_not_sign_say_so(tmp_path: Path, s3_server: S3Server, bucket: str) -> None:
    context = open_server(
        f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{bucket}/warehouse", properties=s3_server.properties
    )
    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        assert client("GET", ORDERS, headers=WISH).json["config"] == {}
        refused = sign(client, "GET", "http://x/y")
        assert refused.error == (406, "UnsupportedOperationException")
        assert "--remote-signing" in refused.message
    context.catalog.close()


def test_signer_of_pyiceberg_writes_reads_and_deletes(
    served: ServerContext, s3_server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with on_socket(served) as port:
        uri = f"http://127.0.0.1:{port}"
        catalog = load_catalog(
            "signed", type="rest", uri=uri, **{"header.X-Iceberg-Access-Delegation": "remote-signing"}
        )
        catalog.create_namespace("db")
        response = catalog._session.post(  # create_table would open a file with s3fs
            f"{uri}/v1/namespaces/db/tables", json={"name": "orders", "schema": SCHEMA}
        )
        config = response.json()["config"] | {"uri": uri}
        s3 = boto3.client(
            "s3",
            endpoint_url=config["s3.endpoint"],
            region_name=config["s3.region"],
            config=Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )
        s3.meta.events.register_last("before-sign.s3", S3V4RestSigner(config))
        place, key = {"Bucket": bucket.removeprefix("s3://")}, "warehouse/db/orders/data/p=1/é+ %.parquet"
        served.credentials.file_access = Everybody(FileActions.WRITE)
        s3.put_object(**place, Key=key, Body=b"hello")
        with pytest.raises(ClientError, match="PreconditionFailed"):
            s3.put_object(**place, Key=key, Body=b"other")
        assert s3.get_object(**place, Key=key, Range="bytes=1-2")["Body"].read() == b"el"
        upload = s3.create_multipart_upload(**place, Key=f"{key}2")["UploadId"]
        part = s3.upload_part(**place, Key=f"{key}2", UploadId=upload, PartNumber=1, Body=b"x" * 100)
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        s3.complete_multipart_upload(**place, Key=f"{key}2", UploadId=upload, MultipartUpload=parts)
        found = s3.list_objects_v2(**place, Prefix="warehouse/db/orders/data/")
        assert [o["Key"] for o in found["Contents"]] == [key, f"{key}2"]
        with pytest.raises(SignError, match="403"):
            s3.delete_object(**place, Key=key)
        served.credentials.file_access = Everybody(FileActions.DELETE)
        s3.delete_object(**place, Key=key)
        for refused in (
            lambda: s3.get_object(**place, Key="warehouse/db/items/f"),
            lambda: s3.list_objects_v2(**place),
            lambda: s3.put_object(**place, Key=f"{key}3", ACL="public-read"),
            lambda: s3.get_bucket_policy(**place),
            lambda: s3.delete_objects(**place, Delete={"Objects": [{"Key": f"{key}2"}]}),  # PyIceberg sends no body
        ):
            with pytest.raises(SignError, match=r"Failed to sign request 40[03]"):
                refused()
        catalog.close()
