"""Java's Hadoop catalog and bergline on the same directories, one after the other; PyIceberg reads them."""

import gzip
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

import bergline
from bergline import Lake
from bergline.errors import NotFoundError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "ware house"


@pytest.fixture
def java(official_runtime: OfficialRuntime, warehouse: Path) -> Sql:
    """SQL in the official runtime with its Hadoop catalog on the warehouse."""
    warehouse.mkdir()
    official_runtime.open_catalog(
        "hadoop", {"type": "hadoop", "warehouse": f"file://{warehouse}", "cache-enabled": "false"}
    )
    return official_runtime.sql


@pytest.fixture
def lake(warehouse: Path) -> Iterator[Lake]:
    with bergline.connect(f"file://{warehouse}", create=True) as opened:
        yield opened


def test_table_of_java_is_listed_read_and_appended_to_and_java_goes_on(java: Sql, lake: Lake, warehouse: Path) -> None:
    java("CREATE NAMESPACE db")
    java("CREATE TABLE db.orders (id BIGINT, region STRING) USING iceberg PARTITIONED BY (region)")
    java("INSERT INTO db.orders VALUES (0, 'a'), (1, 'b')")
    assert lake.list_namespaces() == ["db"]
    assert lake.list_tables("db") == ["db.orders"]
    orders = lake.load_table("db.orders")
    assert ids(orders.scan().to_arrow()) == [0, 1]
    rows = orders.scan().to_arrow()
    orders.append(rows)
    assert orders.metadata_location == f"file://{warehouse}/db/orders/metadata/v3.metadata.json"
    assert java("SELECT id FROM db.orders ORDER BY id") == [(0,), (0,), (1,), (1,)]
    java("INSERT INTO db.orders VALUES (2, 'c')")
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 0, 1, 1, 2]
    assert (warehouse / "db/orders/metadata/version-hint.text").read_text() == "4"
    peer = StaticTable.from_metadata(lake.load_table("db.orders").metadata_location)
    assert sorted(peer.scan().to_arrow()["id"].to_pylist()) == [0, 0, 1, 1, 2]


def test_table_of_bergline_is_listed_read_and_appended_to_by_java(java: Sql, lake: Lake) -> None:
    lake.create_namespace("db.raw")
    orders = lake.create_table("db.raw.orders", ORDERS)
    orders.append(order_rows(0, 1))
    assert java("SHOW NAMESPACES") == [("db",)]
    assert java("SHOW NAMESPACES IN db") == [("db.raw",)]
    assert java("SHOW TABLES IN db.raw") == [("db.raw", "orders", False)]
    assert java("SELECT id FROM db.raw.orders ORDER BY id") == [(0,), (1,)]
    java("INSERT INTO db.raw.orders SELECT * FROM db.raw.orders WHERE id = 1")
    java("ALTER TABLE db.raw.orders CREATE BRANCH staging")
    orders.append(order_rows(2))
    assert ids(lake.load_table("db.raw.orders").scan().to_arrow()) == [0, 1, 1, 2]
    assert java("SELECT count(*) FROM db.raw.orders.refs") == [(2,)]


def test_compressed_tables_of_java_go_on_compressed(java: Sql, lake: Lake, warehouse: Path) -> None:
    java("CREATE NAMESPACE db")
    java("CREATE TABLE db.t (id BIGINT) USING iceberg TBLPROPERTIES ('write.metadata.compression-codec' = 'gzip')")
    java("INSERT INTO db.t VALUES (1)")
    table = lake.load_table("db.t")
    table.append(table.scan().to_arrow())
    newest = warehouse / "db/t/metadata/v3.gz.metadata.json"
    assert gzip.decompress(newest.read_bytes()).startswith(b"{")
    assert java("SELECT id FROM db.t") == [(1,), (1,)]
    java("INSERT INTO db.t VALUES (2)")
    assert ids(lake.load_table("db.t").scan().to_arrow()) == [1, 1, 2]


def test_table_dropped_by_java_is_gone(java: Sql, lake: Lake) -> None:
    lake.create_namespace("db")
    lake.create_table("db.orders", ORDERS).append(order_rows(0))
    java("DROP TABLE db.orders")
    assert lake.list_tables("db") == []
    with pytest.raises(NotFoundError, match="no table"):
        lake.load_table("db.orders")
    lake.create_table("db.orders", ORDERS).append(order_rows(7))
    assert java("SELECT id FROM db.orders") == [(7,)]


def test_java_refuses_what_bergline_dropped_and_reads_what_it_made_again(
    java: Sql, lake: Lake, warehouse: Path
) -> None:
    lake.create_namespace("db")
    lake.create_table("db.orders", ORDERS).append(order_rows(0))
    lake.drop_table("db.orders")
    assert java("SHOW TABLES IN db") == [("db", "orders", False)]
    for statement in ("SELECT * FROM db.orders", "CREATE TABLE db.orders (id BIGINT) USING iceberg"):
        with pytest.raises(Exception, match="this table was dropped by bergline"):
            java(statement)
    assert lake.list_tables("db") == []
    lake.create_table("db.orders", ORDERS).append(order_rows(7))
    assert java("SELECT id FROM db.orders") == [(7,)]
    lake.drop_table("db.orders")
    shutil.rmtree(warehouse / "db/orders")
    java("CREATE TABLE db.orders (id BIGINT) USING iceberg")
    java("INSERT INTO db.orders VALUES (5)")
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [5]
