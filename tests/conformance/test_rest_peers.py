"""PyIceberg, DuckDB, the official runtime and bergline on one `bergline serve`: nothing is lost between them."""

import re
import shlex
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from typer.testing import CliRunner

import bergline
from bergline.cli.main import app
from bergline.errors import AuthenticationError
from support.servers.bergline_server import BerglineServer
from support.servers.peers import OfficialRuntime, duckdb_connection

COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    """A server without the tables of other tests: a purge is refused where what they use cannot be read."""
    with BerglineServer(tmp_path_factory.mktemp("peers")) as server:
        yield server


@pytest.fixture(scope="module")
def peer(own_server: BerglineServer) -> Catalog:
    opened = eval(own_server.connection_examples["PyIceberg"], {"load_catalog": load_catalog})  # noqa: S307
    assert isinstance(opened, Catalog)
    return opened


@pytest.fixture(scope="module")
def duck(own_server: BerglineServer) -> duckdb.DuckDBPyConnection:
    connection = duckdb_connection()
    connection.execute(own_server.connection_examples["DuckDB"].replace(" AS lake ", " AS ice "))
    return connection


def rows(who: str, *ids: int) -> pa.Table:
    return pa.table({"id": ids, "who": [who] * len(ids)}, schema=COLUMNS)


def test_pyiceberg_creates_writes_branches_and_reads(peer: Catalog) -> None:
    peer.create_namespace(("py", "nested"))
    assert peer.list_namespaces("py") == [("py", "nested")]
    table = peer.create_table("py.nested.orders", COLUMNS)
    table.append(rows("py", 1, 2))
    head = table.current_snapshot()
    assert head is not None
    table.manage_snapshots().create_branch(head.snapshot_id, "dev").create_tag(head.snapshot_id, "v1").commit()
    table.append(rows("py", 3), branch="dev")
    with table.transaction() as transaction:
        transaction.set_properties(owner="ann")
        transaction.append(rows("py", 4))
    with peer.create_table_transaction("py.nested.staged", COLUMNS) as transaction:
        transaction.append(rows("py", 9))
    loaded = peer.load_table("py.nested.orders")
    assert loaded.properties["owner"] == "ann"
    assert sorted(loaded.scan().to_arrow()["id"].to_pylist()) == [1, 2, 4]
    assert sorted(loaded.scan().use_ref("dev").to_arrow()["id"].to_pylist()) == [1, 2, 3]
    peer.rename_table("py.nested.staged", "py.nested.moved")
    assert {name for *_, name in peer.list_tables(("py", "nested"))} == {"orders", "moved"}
    peer.purge_table("py.nested.moved")
    assert not peer.table_exists("py.nested.moved")


def test_duckdb_creates_writes_and_reads(duck: duckdb.DuckDBPyConnection, peer: Catalog) -> None:
    duck.execute("CREATE SCHEMA ice.duck")
    duck.execute("CREATE TABLE ice.duck.orders (id BIGINT, who VARCHAR)")
    duck.execute("INSERT INTO ice.duck.orders VALUES (1, 'duck'), (2, 'duck')")
    duck.execute("CREATE TABLE ice.duck.copied AS SELECT id + 10 AS id FROM ice.duck.orders")
    duck.execute(
        "BEGIN; INSERT INTO ice.duck.orders VALUES (3, 'duck'); INSERT INTO ice.duck.copied VALUES (13); COMMIT"
    )
    duck.execute("DELETE FROM ice.duck.orders WHERE id = 2")
    assert duck.sql("SELECT id FROM ice.duck.orders ORDER BY id").fetchall() == [(1,), (3,)]
    assert sorted(peer.load_table("duck.orders").scan().to_arrow()["id"].to_pylist()) == [1, 3]
    assert sorted(peer.load_table("duck.copied").scan().to_arrow()["id"].to_pylist()) == [11, 12, 13]
    duck.execute("DROP TABLE ice.duck.copied")
    assert not peer.table_exists("duck.copied")


def test_duckdb_reads_large_tables_whatever_encoding_it_asks_for(
    own_server: BerglineServer, duck: duckdb.DuckDBPyConnection
) -> None:
    with bergline.connect(own_server.uri) as lake:
        lake.create_namespace("long")
        properties = {f"key{number}": "some text" for number in range(400)}
        lake.create_table("long.orders", COLUMNS, properties=properties).append(rows("bergline", 1, 2))
    for _ in range(3):
        other = duckdb_connection()  # which remembers nothing
        other.execute(own_server.connection_examples["DuckDB"])
        assert other.sql("SELECT sum(id) FROM lake.long.orders").fetchall() == [(3,)]
        other.close()
    duck.execute("INSERT INTO ice.long.orders VALUES (3, 'duck')")
    assert duck.sql("SELECT sum(id) FROM ice.long.orders").fetchall() == [(6,)]


def test_tokens_are_needed_and_taken(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    bergline.connect(catalog, create=True).close()
    made = CliRunner().invoke(app, ["token", "create", "ann", "--catalog", catalog], catch_exceptions=False)
    with BerglineServer(tmp_path) as server:
        token = made.stdout.strip()
        told = {
            engine: re.sub(r"(['\"])TOKEN\1", rf"\1{token}\1", lines)
            for engine, lines in server.connection_examples.items()
        }
        with eval(told["bergline"], {"bergline": bergline}) as lake:  # noqa: S307
            lake.create_namespace("db")
            lake.create_table("db.orders", COLUMNS).append(rows("bergline", 1))
        peer = eval(told["PyIceberg"], {"load_catalog": load_catalog})  # noqa: S307
        peer.load_table("db.orders").append(rows("pyiceberg", 2))
        duck = duckdb_connection()
        duck.execute(told["DuckDB"])
        duck.execute("INSERT INTO lake.db.orders VALUES (3, 'duckdb')")
        assert duck.sql("SELECT id FROM lake.db.orders ORDER BY id").fetchall() == [(1,), (2,), (3,)]
        duck.close()
        with pytest.raises(AuthenticationError):
            eval(server.connection_examples["bergline"], {"bergline": bergline})  # noqa: S307


@pytest.mark.official
def test_all_engines_write_one_table_in_turn_and_nothing_is_lost(
    own_server: BerglineServer, peer: Catalog, duck: duckdb.DuckDBPyConnection, official_runtime: OfficialRuntime
) -> None:
    with bergline.connect(own_server.uri) as lake:
        lake.create_namespace("all")
        table = lake.create_table("all.orders", COLUMNS)
        table.append(rows("bergline", 1))
        peer.load_table("all.orders").append(rows("pyiceberg", 2))
        duck.execute("INSERT INTO ice.all.orders VALUES (3, 'duckdb')")
        spark = official_runtime.python(
            """
for setting in settings:
    spark.conf.set(*setting.replace("catalog.lake", "catalog.served").split("=", 1))
spark.sql("INSERT INTO served.all.orders VALUES (4, 'spark')")
spark.sql("ALTER TABLE served.all.orders CREATE BRANCH dev RETAIN 7 DAYS")
spark.sql("ALTER TABLE served.all.orders CREATE TAG v1")
spark.sql("INSERT INTO served.all.orders.branch_dev VALUES (5, 'spark')")
spark.sql("CREATE VIEW served.all.few AS SELECT id FROM served.all.orders WHERE id < 3")
spark.sql("CREATE TABLE served.all.made USING iceberg PARTITIONED BY (who) AS SELECT * FROM served.all.orders")
result = [
    sorted(r.id for r in spark.table("served.all.orders").collect()),
    sorted(r.id for r in spark.table("served.all.few").collect()),
    sorted(r.id for r in spark.table("served.all.made").collect()),
]
""",
            settings=[s for s in shlex.split(own_server.connection_examples["Spark"]) if s.startswith("spark.")],
        )
        assert spark == [[1, 2, 3, 4], [1, 2], [1, 2, 3, 4]]
        table.refresh().append(rows("bergline", 6), branch="dev")
        table.refs.create_tag("ours")
        refs = lake.load_table("all.orders").metadata.refs
        assert refs.keys() == {"main", "dev", "v1", "ours"}
        assert refs["dev"].max_ref_age_ms == 7 * 86_400_000
        assert ids(lake.load_table("all.orders").scan().to_arrow()) == [1, 2, 3, 4]
        assert ids(lake.load_table("all.orders").scan(ref="dev").to_arrow()) == [1, 2, 3, 4, 5, 6]
        assert ids(peer.load_table("all.orders").scan().use_ref("dev").to_arrow()) == [1, 2, 3, 4, 5, 6]
        assert duck.sql("SELECT id FROM ice.all.orders ORDER BY id").fetchall() == [(1,), (2,), (3,), (4,)]
        assert lake.list_views("all") == ["all.few"]
        assert len(lake.load_table("all.made").scan("who = 'spark'").plan().files) == 1


@pytest.mark.official
def test_java_and_pyiceberg_take_large_tables_in_gzip_and_java_takes_304(
    own_server: BerglineServer, official_runtime: OfficialRuntime
) -> None:
    far = {"header.X-Forwarded-For": "192.0.2.7"}  # who is near gets no gzip
    properties = {f"key{number}": "some text" for number in range(400)}
    with bergline.connect(own_server.uri) as lake:
        lake.create_namespace("wide")
        table = lake.create_table("wide.orders", COLUMNS, properties=properties)
        table.append(rows("bergline", 1))
    before = loads_counted(own_server)
    java = official_runtime.python(
        """
catalog = jvm.org.apache.iceberg.rest.RESTCatalog()
catalog.initialize("far", {"uri": uri, **far})
name = jvm.org.apache.iceberg.catalog.TableIdentifier.parse("wide.orders")
result = []
for change in (False, False, True):
    if change:
        catalog.loadTable(name).updateProperties().set("key0", "other").commit()
    found = catalog.loadTable(name)
    result.append([found.currentSnapshot().snapshotId(), dict(found.properties())])
catalog.close()
""",
        uri=own_server.uri,
        far=far,
    )
    (_, first), (_, second), (_, third) = java
    assert properties.items() <= first.items()
    assert second == first
    assert third == first | {"key0": "other"}
    after = loads_counted(own_server)
    assert after["304"] - before["304"] == 2  # the second time, and before the change
    assert after["gzip"] - before["gzip"] >= 2  # to commit it looks once more
    peer = load_catalog("far", type="rest", uri=own_server.uri, **far)
    for _ in range(3):
        assert peer.load_table("wide.orders").properties == third
    assert loads_counted(own_server)["gzip"] - after["gzip"] == 3
    with bergline.connect(own_server.uri, properties=far) as lake:
        for _ in range(2):
            assert lake.load_table("wide.orders").metadata.properties == third
    last = loads_counted(own_server)
    assert last["gzip"] - after["gzip"] == 4
    assert last["304"] > after["304"]


def loads_counted(server: BerglineServer) -> dict[str, int]:
    """How many loads were answered with 304, and how many in gzip."""
    with urllib.request.urlopen(f"{server.uri}/metrics") as told:  # noqa: S310
        text = told.read().decode()
    found = re.search(r'operation="load_table",status="304"} (\d+)', text)
    packed = re.search(r"bergline_load_gzip_answers_total (\d+)", text)
    assert packed
    return {"304": int(found[1]) if found else 0, "gzip": int(packed[1])}


def ids(table: Any) -> list[int]:
    found: list[int] = sorted(table["id"].to_pylist())
    return found
