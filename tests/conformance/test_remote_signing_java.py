"""Java's S3FileIO without keys: `bergline serve` signs its requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.catalog.identifiers import TableName
from bergline.governance.grants.file_actions import FileActions
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.servers.asgi_client import SCHEMA
from support.servers.granted_server import GrantedServer
from support.servers.named_files import Stage, file_of
from support.servers.peers import OfficialError, OfficialRuntime
from support.servers.s3_server import S3Server
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.official


class Everybody:
    """Everybody may do the same."""

    def __init__(self, actions: FileActions) -> None:
        self._actions = actions

    def actions(self, principal: str, groups: frozenset[str], table: TableName) -> FileActions:
        del principal, groups, table
        return self._actions

    actions_certainly = actions


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


@pytest.fixture
def java(official_aws: OfficialRuntime) -> OfficialRuntime:
    """The official runtime with S3FileIO, and without keys."""
    return official_aws


def options(port: int) -> dict[str, str]:
    return {
        "type": "rest",
        "uri": f"http://127.0.0.1:{port}",
        "header.X-Iceberg-Access-Delegation": "remote-signing",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "http-client.type": "urlconnection",
        "cache-enabled": "false",
        "token": "bl_ann",  # in every test: Java's signer keeps the way to authenticate of the first table in a process
    }


def test_java_writes_reads_and_expires_without_keys(
    served: ServerContext, s3_server: S3Server, java: OfficialRuntime
) -> None:
    with on_socket(served) as port:
        java.open_catalog("signed", options(port))
        java.sql("CREATE NAMESPACE db")
        java.sql("CREATE TABLE db.orders USING iceberg PARTITIONED BY (region) AS SELECT 1L AS id, 'a/b é' AS region")
        java.sql("INSERT OVERWRITE db.orders VALUES (2, 'us')")
        before = set(s3_server.objects.rglob("*.*"))
        java.sql("CALL signed.system.expire_snapshots(table => 'db.orders', older_than => TIMESTAMP '2100-01-01')")
        gone = {path.suffix for path in before - set(s3_server.objects.rglob("*.*"))}
        assert gone == {".parquet", ".avro"}
        # Java sends the header that is added to its writes
        served.credentials.file_access = Everybody(FileActions.WRITE)
        java.sql("INSERT INTO db.orders VALUES (3, 'eu')")
        java.sql("DELETE FROM db.orders WHERE id = 3")
        before = set(s3_server.objects.rglob("*.parquet"))
        java.sql("CALL signed.system.expire_snapshots(table => 'db.orders', older_than => TIMESTAMP '2100-01-01')")
        assert set(s3_server.objects.rglob("*.parquet")) == before
        served.credentials.file_access = Everybody(FileActions.READ)
        assert java.sql("SELECT id, region FROM db.orders") == [(2, "us")]
        with pytest.raises(OfficialError, match="you may read the files of this table, not write"):
            java.sql("INSERT INTO db.orders VALUES (4, 'eu')")


ADD_FILE = """
from py4j.protocol import Py4JJavaError
iceberg = jvm.org.apache.iceberg
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "mine.t")
builder = iceberg.DataFiles.builder(table.spec()).withPath(path).withFormat("parquet")
try:
    table.newAppend().appendFile(builder.withFileSizeInBytes(size).withRecordCount(1).build()).commit()
except Py4JJavaError as error:
    result = str(error.java_exception.getMessage())
"""


def test_java_names_reads_and_deletes_no_files_of_others(
    served: ServerContext, s3_server: S3Server, java: OfficialRuntime
) -> None:
    granted = GrantedServer(served, "ann")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    granted("root", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    stage = Stage(granted)
    file, home = file_of(stage.theirs), s3_server.objects / stage.theirs.location.removeprefix("s3://")
    named, before = {"path": file.file_path, "size": file.file_size_in_bytes}, set(home.rglob("*"))
    with on_socket(served) as port:
        java.open_catalog("ann", options(port))
        assert "expected files in the directories of table `mine.t`" in java.python(ADD_FILE, **named)
        with pytest.raises(OfficialError, match="Forbidden"):
            java.sql(f"CALL ann.system.register_table('mine.r', '{stage.theirs.metadata_location}')")
        sweep = f"location => '{stage.theirs.location}', older_than => TIMESTAMP '2020-01-01', prefix_listing => true"
        with pytest.raises(OfficialError, match="expected a file of this table"):
            java.sql(f"CALL ann.system.remove_orphan_files(table => 'mine.t', {sweep})")
        granted.grant("read", "table db.orders", "ann")
        assert java.python(ADD_FILE, **named) is None
        with pytest.raises(OfficialError, match="expected a file of this table"):
            java.sql("SELECT * FROM mine.t")  # named, and not signed for as a file of hers
        java.sql("DELETE FROM mine.t")
        java.sql("CALL ann.system.expire_snapshots(table => 'mine.t', older_than => TIMESTAMP '2100-01-01')")
        with pytest.raises(OfficialError, match="NoSuchTableException"):
            java.sql("DROP TABLE mine.t PURGE")  # Java drops it, then asks for signatures to delete files one by one
    assert set(home.rglob("*")) == before
    assert stage.theirs.refresh().scan().to_arrow().num_rows == 1
    granted.client.application.close()
