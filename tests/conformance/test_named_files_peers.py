"""PyIceberg, with the token of a caller, names files and directories of tables that are hidden or readable."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.servers.asgi_client import SCHEMA
from support.servers.granted_server import GrantedServer
from support.servers.named_files import FUTURE, Stage, file_of
from support.servers.server_on_socket import on_socket

COLUMNS = Schema(NestedField(1, "id", LongType(), required=False))
VIEW = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": ["db"],
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Beside the two tables, hidden from `ann`: a view `db.v`, and `db.gone`, which is in the trash."""
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", limits=ServerSettings(drop_retention_s=3600))
    granted = GrantedServer(context, "ann")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    for name in ("orders", "gone"):
        assert granted("root", "POST", "/v1/namespaces/db/tables", {"name": name, "schema": SCHEMA}).status == 200
    view = {"name": "v", "schema": SCHEMA, "view-version": VIEW, "properties": {}}
    assert granted("root", "POST", "/v1/namespaces/db/views", view).status == 200
    assert granted("root", "DELETE", "/v1/namespaces/db/tables/gone").status == 204
    yield Stage(granted)
    granted.client.application.close()


@pytest.fixture
def ann(stage: Stage) -> Iterator[Catalog]:
    with on_socket(stage.granted.context) as port:
        catalog = load_catalog("ann", type="rest", uri=f"http://127.0.0.1:{port}", token="bl_ann")  # noqa: S106
        yield catalog
        catalog.close()


def test_pyiceberg_adds_files_of_readable_tables_alone_and_deletes_none(stage: Stage, ann: Catalog) -> None:
    path = file_of(stage.theirs).file_path
    before = stage.mine.refresh().metadata_location
    with pytest.raises(ForbiddenError, match=r"expected files in the directories of table `mine\.t`"):
        ann.load_table("mine.t").add_files([path])
    assert stage.mine.refresh().metadata_location == before
    stage.granted.grant("read", "table db.orders", "ann")
    ann.load_table("mine.t").add_files([path])
    taken = ann.load_table("mine.t")
    assert taken.scan().to_arrow().num_rows == 2
    taken.delete("id = 1")
    old = [snapshot.snapshot_id for snapshot in taken.metadata.snapshots[:-1]]
    taken.maintenance.expire_snapshots().by_ids(old).commit()
    stage.mine.refresh().expire(older_than=FUTURE, retain_last=1)
    ann.purge_table("mine.t")
    assert stage.theirs.refresh().scan().to_arrow()["id"].to_pylist() == [1]


def test_pyiceberg_makes_no_table_in_the_directory_of_another(stage: Stage, ann: Catalog) -> None:
    stage.granted.grant("create", "namespace db", "ann")  # where the locations would be her own
    home = stage.theirs.location.rpartition("/")[0]
    for name in ("orders", "v", "gone"):
        for location in (f"{home}/{name}", f"{home}/{name}/data", f"{home}/x/../{name}"):
            with pytest.raises(ForbiddenError) as refused:
                ann.create_table("db.new", COLUMNS, location=location)
            assert f"db.{name}" not in str(refused.value), "a hidden name"
            with pytest.raises(ForbiddenError):
                ann.create_table("db.new", COLUMNS, properties={"write.data.path": location})
            with pytest.raises(ForbiddenError), ann.load_table("mine.t").transaction() as change:
                change.set_properties({"write.data.path": location})
            with pytest.raises(ForbiddenError):
                ann.create_table_transaction("db.new", COLUMNS, location=location)
    assert ann.list_tables("db") == [("db", "orders")]  # whoever may create in a namespace sees its names


def test_pyiceberg_registers_no_metadata_of_a_hidden_table(stage: Stage, ann: Catalog) -> None:
    for location in (stage.theirs.metadata_location, stage.theirs.metadata.metadata_log[0].metadata_file):
        with pytest.raises(ForbiddenError) as refused:
            ann.register_table("mine.r", location)
        assert "db.orders" not in str(refused.value)
    assert ann.list_tables("mine") == [("mine", "t")]
