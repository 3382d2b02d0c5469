"""Rows that bergline changes on Spark, read by DuckDB and PyIceberg through `bergline serve` after each statement."""

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import AlwaysTrue
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake
from support.fixtures.changed_rows import CHANGES, MERGE_ON_READ, create, in_order, rows_of
from support.servers.bergline_server import BerglineServer
from support.servers.peers import duckdb_connection

DELETE_FILES: dict[str, set[str]] = {
    "v2 copy-on-write": set(),
    "v2 position deletes": {"PARQUET"},
    "v3 deletion vectors": {"PUFFIN"},
}
"""By kind of table, the formats of the delete files that the changes leave until all is compacted."""
Peer = Callable[[str, str | None, int | None], pa.Table]
"""The rows of a table by a filter, at a snapshot."""


@pytest.fixture
def lake(bergline_server: BerglineServer) -> Iterator[Lake]:
    with bergline.connect(bergline_server.uri, name="served") as opened:
        opened.create_namespace("changed", if_not_exists=True)
        yield opened


@pytest.fixture
def spark(spark_session: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    bergline.spark.attach(spark_session, lake)
    yield spark_session
    bergline.spark.detach(spark_session)


@pytest.fixture
def peers(bergline_server: BerglineServer) -> Iterator[dict[str, Peer]]:
    """DuckDB, and PyIceberg that plans its scans or has the server plan them."""
    uri = bergline_server.uri
    with (
        duckdb_connection() as duck,
        load_catalog("planning", type="rest", uri=uri) as planning,
        load_catalog("planned", **{"type": "rest", "uri": uri, "scan-planning-mode": "server"}) as planned,
    ):
        duck.execute(bergline_server.connection_examples["DuckDB"].replace(" AS lake ", " AS ice "))

        def read_duckdb(name: str, where: str | None, snapshot_id: int | None) -> pa.Table:
            at = f"AT (VERSION => {snapshot_id})" if snapshot_id else ""
            return duck.sql(f"SELECT * FROM ice.{name} {at} WHERE {where or 'true'}").to_arrow_table()

        def read_pyiceberg(catalog: Catalog, name: str, where: str | None, snapshot_id: int | None) -> pa.Table:
            return catalog.load_table(name).scan(where or AlwaysTrue(), snapshot_id=snapshot_id).to_arrow()

        yield {
            "DuckDB": read_duckdb,
            "PyIceberg": partial(read_pyiceberg, planning),
            "PyIceberg, planned by the server": partial(read_pyiceberg, planned),
        }


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[] if DELETE_FILES[k] else pytest.mark.thorough) for k in DELETE_FILES]
)
def test_peers_read_the_rows_that_each_change_leaves(
    spark: SparkSession, lake: Lake, peers: dict[str, Peer], kind: str
) -> None:
    name = f"changed.{kind.replace(' ', '_').replace('-', '_')}"
    table, rows = create(lake, name, kind)
    expected, formats = {}, set()
    for statement, apply in CHANGES:
        spark.sql(statement.format(t=f"served.{name}")).collect()
        rows = in_order(apply(rows))
        few = [row for row in rows if row.id > 5 and row.region == "eu"]
        assert rows_of(table.refresh().scan().to_arrow()) == rows, statement
        for peer, read in peers.items():
            assert rows_of(read(name, None, None)) == rows, (peer, statement)
            assert rows_of(read(name, "id > 5 AND region = 'eu'", None)) == few, (peer, statement)
        head = table.metadata.current_snapshot
        assert head
        expected[head.snapshot_id] = rows
        formats.update(table.inspect("delete_files")["file_format"].to_pylist())
    assert formats == DELETE_FILES[kind]
    assert len(table.inspect("delete_files")) == 0
    for snapshot_id, earlier in expected.items():
        for peer, read in peers.items():
            assert rows_of(read(name, None, snapshot_id)) == earlier, peer


def test_duckdb_loses_deletion_vectors_that_share_a_file(bergline_server: BerglineServer, lake: Lake) -> None:
    """A fault of DuckDB 1.5.5, with vectors of Java too: docs/guides/serving.md tells users, as long as this passes."""
    properties = {"format-version": "3", **MERGE_ON_READ}
    table = lake.create_table("changed.shared", pa.schema([("id", pa.int64())]), properties=properties)
    for ids in ([1, 2, 3], [4, 5, 6]):
        table.append(pa.table({"id": ids}))
    table.delete("id IN (1, 4)")
    with duckdb_connection() as duck:
        duck.execute(bergline_server.connection_examples["DuckDB"].replace(" AS lake ", " AS ice "))
        assert duck.sql("SELECT id FROM ice.changed.shared ORDER BY id").fetchall() == [(2,), (3,), (5,), (6,)]
        duck.execute("DELETE FROM ice.changed.shared WHERE id = 2")
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [3, 4, 5, 6]
