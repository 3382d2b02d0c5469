"""A lake whose warehouse is on a real S3 server."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import bergline
from bergline import Lake, Table
from bergline.errors import NotFoundError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.s3_server import S3Server


@pytest.fixture
def lake(s3_server: S3Server, bucket: str, tmp_path: Path) -> Iterator[Lake]:
    catalog, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"{bucket}/ware house"
    with bergline.connect(catalog, warehouse=warehouse, properties=s3_server.properties, create=True) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def orders(lake: Lake) -> Table:
    return lake.create_table("db.orders", ORDERS)


def test_table_is_created_appended_branched_and_scanned(lake: Lake, orders: Table, bucket: str) -> None:
    orders.append(order_rows(0, 1, 2))
    orders.refs.create_branch("staging")
    orders.append(order_rows(3, 4), branch="staging")
    again = lake.load_table("db.orders")
    assert again.metadata.location == f"{bucket}/ware house/db/orders"
    assert ids(again.scan().to_arrow()) == [0, 1, 2]
    assert ids(again.scan(ref="staging").to_arrow()) == [0, 1, 2, 3, 4]
    assert ids(again.scan("id = 4", ref="staging").to_arrow()) == [4]


def test_pyiceberg_reads_what_we_wrote_and_we_read_what_it_writes(
    s3_server: S3Server, lake: Lake, orders: Table, bucket: str, tmp_path: Path
) -> None:
    orders.append(order_rows(0, 1, 2))
    peer = SqlCatalog(
        lake.name, uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{bucket}/ware house", **s3_server.properties
    )
    try:
        table = peer.load_table("db.orders")
        assert ids(table.scan().to_arrow()) == [0, 1, 2]
        table.append(order_rows(3, 4))
    finally:
        peer.close()
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1, 2, 3, 4]


def test_two_writers_from_one_base_both_land(lake: Lake, orders: Table) -> None:
    other = lake.load_table("db.orders")
    orders.append(order_rows(0))
    other.append(order_rows(1))
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]


def test_expired_snapshots_take_their_files_with_them(lake: Lake, orders: Table, bucket: str) -> None:
    orders.append(order_rows(0))
    orders.overwrite(order_rows(1))
    before = lake.catalog.io.list(bucket)
    orders.expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC), retain_last=1)
    after = lake.catalog.io.list(bucket)
    assert len([f for f in before if f.endswith(".parquet")]) == 2
    assert len([f for f in after if f.endswith(".parquet")]) == 1
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]


def test_missing_data_file_is_named(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(0))
    (file,) = [f for f in lake.catalog.io.list(orders.metadata.location) if f.endswith(".parquet")]
    lake.catalog.io.delete([file])
    with pytest.raises(NotFoundError, match="no file") as caught:
        orders.scan().to_arrow()
    assert caught.value.name == file


def test_memory_catalog_with_a_warehouse_on_s3(s3_server: S3Server, bucket: str) -> None:
    with bergline.connect("memory:", warehouse=bucket, properties=s3_server.properties) as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS).append(order_rows(0, 1))
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [0, 1]
