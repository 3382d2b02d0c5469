"""A protected `main` on `bergline serve`, tried by other engines: refused in words, allowed by the right way."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from support.servers.bergline_server import BerglineServer
from support.servers.peers import OfficialRuntime, duckdb_connection

COLUMNS = pa.schema([("id", pa.int64())])
SENTENCE = "branch `main` of table `db.orders` is protected by the rule `main`"
INSTEAD = "write to another branch, then publish it into `main`"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BerglineServer]:
    with BerglineServer(tmp_path) as started:
        yield started


@pytest.fixture
def lake(server: BerglineServer) -> Iterator[Lake]:
    """`main` with 1 and a rule, `dev` with 1 and 2."""
    with bergline.connect(server.uri) as opened:
        opened.create_namespace("db")
        orders = opened.create_table("db.orders", COLUMNS)
        orders.append(pa.table({"id": [0]})).overwrite(pa.table({"id": [1]}))
        orders.refs.create_branch("dev")
        orders.append(pa.table({"id": [2]}), branch="dev")
        orders.refs.protect("main", only_publish=True, fast_forward_only=True)
        yield opened


def test_duckdb_is_refused_with_the_sentence(server: BerglineServer, lake: Lake) -> None:
    duck = duckdb_connection()
    duck.execute(server.connection_examples["DuckDB"])
    with pytest.raises(duckdb.Error) as caught:
        duck.execute("INSERT INTO lake.db.orders VALUES (9)")
    assert SENTENCE in str(caught.value)
    assert INSTEAD in str(caught.value)
    with pytest.raises(duckdb.Error, match="protected"):
        duck.execute("DROP TABLE lake.db.orders")
    assert lake.load_table("db.orders").scan().to_arrow()["id"].to_pylist() == [1]
    lake.publish("dev")
    duck.close()
    again = duckdb_connection()
    again.execute(server.connection_examples["DuckDB"])
    assert again.sql("SELECT id FROM lake.db.orders ORDER BY id").fetchall() == [(1,), (2,)]
    again.close()


@pytest.mark.official
def test_official_runtime_is_refused_with_the_sentence_and_publishes_the_right_way(
    server: BerglineServer, lake: Lake, official_runtime: OfficialRuntime
) -> None:
    refused, published = official_runtime.python(
        """
for setting in settings:
    spark.conf.set(*setting.replace("catalog.lake", "catalog.guarded").split("=", 1))
refused = []
for statement in (
    "INSERT INTO guarded.db.orders VALUES (9)",
    "DELETE FROM guarded.db.orders WHERE id = 1",
    "CREATE OR REPLACE TABLE guarded.db.orders USING iceberg AS SELECT 9L AS id",
    f"CALL guarded.system.rollback_to_snapshot('db.orders', {first})",
    "ALTER TABLE guarded.db.orders RENAME TO db.other",
    "DROP TABLE guarded.db.orders",
):
    try:
        spark.sql(statement)
        refused.append("allowed: " + statement)
    except Exception as error:
        refused.append(str(error))
spark.sql("CALL guarded.system.fast_forward('db.orders', 'main', 'dev')")
result = [refused, sorted(r.id for r in spark.table("guarded.db.orders").collect())]
""",
        settings=[s for s in shlex.split(server.connection_examples["Spark"]) if s.startswith("spark.")],
        first=lake.load_table("db.orders").metadata.snapshots[0].snapshot_id,
    )
    assert [SENTENCE in said for said in refused] == [True] * 6, [said[:300] for said in refused]
    assert INSTEAD in refused[0]
    assert published == [1, 2]
