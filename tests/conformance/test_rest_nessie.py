"""bergline's REST client on Nessie; `make nessie` runs it.

Nessie keeps the newest snapshot of a table and its own history, so the suite that all catalogs keep is not for it.
"""

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.errors import AlreadyExistsError, NotEmptyError, NotFoundError, UnsupportedError
from support.servers.nessie_server import NessieServer, needs_nessie
from support.servers.s3_server import S3Server

COLUMNS = pa.schema([("id", pa.int64())])


@pytest.fixture(scope="module")
def nessie(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[NessieServer]:
    needs_nessie()
    s3_server: S3Server = request.getfixturevalue("s3_server")
    with NessieServer(
        tmp_path_factory.mktemp("nessie") / "log.txt", s3_server, s3_server.make_bucket("nessie")
    ) as server:
        yield server


@pytest.fixture
def lake(nessie: NessieServer, s3_server: S3Server) -> Iterator[Lake]:
    properties = {**s3_server.properties, "view-endpoints-supported": "true"}
    with bergline.connect(nessie.uri, properties=properties) as opened:
        opened.create_namespace("db", if_not_exists=True)
        yield opened


def test_rows_of_writers_at_once_are_all_there(lake: Lake, nessie: NessieServer, s3_server: S3Server) -> None:
    lake.create_table("db.orders", COLUMNS, properties={"commit.retry.min-wait-ms": "10"}).append(rows(0))

    def write(number: int) -> None:
        with bergline.connect(nessie.uri, properties=s3_server.properties) as own:
            own.load_table("db.orders").append(rows(number))

    writers = [threading.Thread(target=write, args=(n,)) for n in range(1, 5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(lake.load_table("db.orders").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_several_tables_move_together(lake: Lake) -> None:
    for name in ("db.one", "db.other"):
        lake.create_table(name, COLUMNS).append(rows(0))
    with lake.transaction() as transaction:
        for name in ("db.one", "db.other"):
            transaction.load_table(name).append(rows(1))
    for name in ("db.one", "db.other"):
        assert sorted(lake.load_table(name).scan().to_arrow()["id"].to_pylist()) == [0, 1]


def test_branches_of_a_table_are_refused(lake: Lake) -> None:
    table = lake.create_table("db.branched", COLUMNS)
    table.append(rows(0))
    with pytest.raises(UnsupportedError, match="no branches and tags"):
        table.append(rows(1), branch="dev")
    assert lake.load_table("db.branched").scan().to_arrow().num_rows == 1


def test_tables_are_staged_renamed_and_dropped(lake: Lake) -> None:
    with lake.stage_table("db.staged", COLUMNS) as table:
        table.append(rows(7))
    with pytest.raises(AlreadyExistsError):
        lake.create_table("db.staged", COLUMNS)
    lake.rename_table("db.staged", "db.renamed")
    assert lake.load_table("db.renamed").scan().to_arrow()["id"].to_pylist() == [7]
    lake.drop_table("db.renamed")
    with pytest.raises(NotFoundError):
        lake.load_table("db.renamed")


def test_namespaces_lie_in_each_other(lake: Lake) -> None:
    lake.create_namespace("outer", {"owner": "me"})
    lake.create_namespace("outer.inner")
    assert lake.list_namespaces("outer") == ["outer.inner"]
    assert lake.namespace_properties("outer")["owner"] == "me"
    with pytest.raises(NotEmptyError):
        lake.drop_namespace("outer")
    lake.drop_namespace("outer.inner")
    lake.drop_namespace("outer")
    assert not lake.namespace_exists("outer")


def test_views_are_there(lake: Lake) -> None:
    lake.create_view("db.v", "SELECT 1 AS id", COLUMNS)
    assert lake.list_views("db") == ["db.v"]
    lake.drop_view("db.v")
    assert lake.list_views("db") == []


def rows(number: int) -> pa.Table:
    return pa.table({"id": [number]}, schema=COLUMNS)
