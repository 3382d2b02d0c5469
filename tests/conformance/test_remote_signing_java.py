"""Java's S3FileIO without keys: `bergline serve` signs its requests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from peers import OfficialError, OfficialRuntime, needs_java
from s3_server import S3Server
from server_on_socket import on_socket

from bergline.catalog.identifiers import TableName
from bergline.server.handlers.context import ServerContext
from bergline.server.opening import open_server

pytestmark = pytest.mark.official

SDK = [
    f"software.amazon.awssdk:{module}:2.44.4"
    for module in ("glue", "s3", "sts", "kms", "dynamodb", "url-connection-client")
]


class NobodyWrites:
    """The access of readers."""

    def may_write(self, principal: str, groups: frozenset[str], table: TableName) -> bool:
        del principal, groups, table
        return False


@pytest.fixture
def served(tmp_path: Path, bucket: str, s3_server: S3Server) -> Iterator[ServerContext]:
    context = open_server(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=f"{bucket}/warehouse",
        properties=s3_server.properties,
        remote_signing=True,
    )
    yield context
    context.catalog.close()


def test_java_writes_reads_and_expires_without_keys(
    served: ServerContext, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_java()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with OfficialRuntime(tmp_path / "log.txt", *SDK) as java, on_socket(served) as port:
        options = {
            "type": "rest",
            "uri": f"http://127.0.0.1:{port}",
            "header.X-Iceberg-Access-Delegation": "remote-signing",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "http-client.type": "urlconnection",
            "cache-enabled": "false",
        }
        java.open_catalog("signed", options)
        java.sql("CREATE NAMESPACE db")
        java.sql("CREATE TABLE db.orders USING iceberg PARTITIONED BY (region) AS SELECT 1L AS id, 'a/b é' AS region")
        java.sql("INSERT OVERWRITE db.orders VALUES (2, 'us')")
        before = set(s3_server.objects.rglob("*.*"))
        java.sql("CALL signed.system.expire_snapshots(table => 'db.orders', older_than => TIMESTAMP '2100-01-01')")
        gone = {path.suffix for path in before - set(s3_server.objects.rglob("*.*"))}
        assert gone == {".parquet", ".avro"}
        served.file_access = NobodyWrites()
        assert java.sql("SELECT id, region FROM db.orders") == [(2, "us")]
        with pytest.raises(OfficialError, match="you may read the files of this table, not write"):
            java.sql("INSERT INTO db.orders VALUES (4, 'eu')")
