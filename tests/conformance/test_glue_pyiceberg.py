"""PyIceberg and bergline on one AWS Glue: each sees what the other did, and writes next to it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

import bergline
from bergline import Lake
from bergline.errors import AlreadyExistsError
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.glue_server import GlueProxy


@pytest.fixture
def ours(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture
def theirs(glue: GlueProxy, tmp_path: Path) -> Iterator[GlueCatalog]:
    catalog = GlueCatalog("lake", warehouse=f"file://{tmp_path}", **glue.properties)
    yield catalog
    catalog.close()


def rows_for(table: Any, *numbers: int) -> pa.Table:
    return order_rows(*numbers).cast(table.schema().as_arrow())


def test_commits_in_turn(glue: GlueProxy, ours: Lake, theirs: GlueCatalog) -> None:
    orders = ours.create_table("db.orders", ORDERS).append(order_rows(1))
    peer = theirs.load_table("db.orders")
    peer.append(rows_for(peer, 2))
    orders.append(order_rows(3))
    peer = theirs.load_table("db.orders")
    peer.delete("id = 1")
    orders.refresh().append(order_rows(4))
    assert ids(orders.scan().to_arrow()) == [2, 3, 4]
    assert ids(theirs.load_table("db.orders").scan().to_arrow()) == [2, 3, 4]
    assert glue.table("db", "orders")["Parameters"]["metadata_location"] == orders.metadata_location


def test_table_of_theirs_is_ours_too(ours: Lake, theirs: GlueCatalog) -> None:
    peer = theirs.create_table("db.orders", ORDERS, properties={"owner": "them"})
    peer.append(rows_for(peer, 1))
    assert ours.list_tables("db") == ["db.orders"]
    assert ids(ours.load_table("db.orders").append(order_rows(2)).scan().to_arrow()) == [1, 2]
    assert ids(theirs.load_table("db.orders").scan().to_arrow()) == [1, 2]


def test_glue_shows_the_same_columns_whoever_writes(glue: GlueProxy, ours: Lake, theirs: GlueCatalog) -> None:
    orders = ours.create_table("db.orders", ORDERS)
    with orders.update_schema() as schema:
        schema.add_column("note", "string", doc="what the customer said")
        schema.drop_column("region")
    by_us = glue.table("db", "orders")["StorageDescriptor"]
    peer = theirs.load_table("db.orders")
    peer.append(pa.table({"id": [1], "amount": [1.0], "note": ["x"]}, schema=peer.schema().as_arrow()))
    assert by_us == glue.table("db", "orders")["StorageDescriptor"]
    assert {c["Name"]: c["Parameters"]["iceberg.field.current"] for c in by_us["Columns"]} == {
        "id": "true",
        "amount": "true",
        "note": "true",
        "region": "false",
    }


def test_names_are_shared(ours: Lake, theirs: GlueCatalog) -> None:
    ours.create_table("db.orders", ORDERS)
    with pytest.raises(TableAlreadyExistsError):
        theirs.create_table("db.orders", ORDERS)
    theirs.create_table("db.items", ORDERS)
    with pytest.raises(AlreadyExistsError):
        ours.create_table("db.items", ORDERS)
    theirs.rename_table("db.items", "db.goods")
    ours.rename_table("db.orders", "db.sales")
    assert ours.list_tables("db") == ["db.goods", "db.sales"]
    assert sorted(theirs.list_tables("db")) == [("db", "goods"), ("db", "sales")]
    assert ids(theirs.load_table("db.sales").scan().to_arrow()) == []
    ours.drop_table("db.goods")
    theirs.drop_table("db.sales")
    ours.drop_namespace("db")
    assert theirs.list_namespaces() == []


def test_properties_of_namespaces_are_shared(ours: Lake, theirs: GlueCatalog, tmp_path: Path) -> None:
    theirs.create_namespace("sales", {"location": f"file://{tmp_path}/far", "owner": "them"})
    assert ours.create_table("sales.orders", ORDERS).metadata.location == f"file://{tmp_path}/far/orders"
    ours.create_namespace("other", {"owner": "us", "location": f"file://{tmp_path}/near"})
    expected = {"owner": "us", "location": f"file://{tmp_path}/near"}
    assert theirs.load_namespace_properties("other") == expected


def test_nothing_is_lost_when_both_append_at_once(ours: Lake, theirs: GlueCatalog) -> None:
    ours.create_table("db.orders", ORDERS)
    acknowledged: list[int] = []

    def append_ours(first: int) -> None:
        table = ours.load_table("db.orders")
        for number in range(first, first + 4):
            table.append(order_rows(number))
            acknowledged.append(number)

    def append_theirs(first: int) -> None:
        for number in range(first, first + 4):
            while True:
                table = theirs.load_table("db.orders")
                try:
                    table.append(rows_for(table, number))
                except CommitFailedException:
                    continue
                acknowledged.append(number)
                break

    workers = [(append_ours, 100), (append_ours, 200), (append_theirs, 300), (append_theirs, 400)]
    run_at_once(*(partial(work, first) for work, first in workers))
    assert len(acknowledged) == 16
    assert ids(ours.load_table("db.orders").scan().to_arrow()) == sorted(acknowledged)
    assert ids(theirs.load_table("db.orders").scan().to_arrow()) == sorted(acknowledged)
