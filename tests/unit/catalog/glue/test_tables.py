"""What AWS Glue shows of a table."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.glue_server import GlueProxy, refused

ORDERS_NAME = TableName(("db",), "orders")


@pytest.fixture
def glue_lake(glue: GlueProxy, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect("glue://", warehouse=tmp_path, properties=glue.properties) as lake:
        lake.create_namespace("db")
        yield lake


def shown_columns(glue: GlueProxy, name: str = "orders") -> list[tuple[str, str, str]]:
    columns = glue.table("db", name)["StorageDescriptor"]["Columns"]
    return [(c["Name"], c["Type"], c["Parameters"]["iceberg.field.current"]) for c in columns]


def test_glue_shows_a_new_table_as_java_and_pyiceberg_do(glue: GlueProxy, glue_lake: Lake) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS, properties={"comment": "all orders"})
    table = glue.table("db", "orders")
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Description"] == "all orders"
    assert table["Parameters"] == {"table_type": "ICEBERG", "metadata_location": orders.metadata_location}
    assert table["StorageDescriptor"]["Location"] == orders.metadata.location
    assert table["StorageDescriptor"]["Columns"][0] == {
        "Name": "id",
        "Type": "bigint",
        "Parameters": {"iceberg.field.id": "1", "iceberg.field.optional": "false", "iceberg.field.current": "true"},
    }


def test_every_type_of_column_is_shown(glue: GlueProxy, glue_lake: Lake) -> None:
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("tags", pa.list_(pa.string()))])
    types = {
        "flag": (pa.bool_(), "boolean"),
        "small": (pa.int32(), "int"),
        "ratio": (pa.float32(), "float"),
        "price": (pa.decimal128(9, 2), "decimal(9,2)"),
        "day": (pa.date32(), "date"),
        "clock": (pa.time64("us"), "string"),
        "ts": (pa.timestamp("us"), "timestamp"),
        "tstz": (pa.timestamp("us", tz="UTC"), "timestamp"),
        "blob": (pa.binary(), "binary"),
        "fixed": (pa.binary(4), "binary"),
        "nested": (pa.map_(pa.string(), inner), "map<string,struct<x:int,tags:array<string>>>"),
    }
    glue_lake.create_table("db.orders", pa.schema([(n, t) for n, (t, _) in types.items()]))
    assert shown_columns(glue) == [(n, text, "true") for n, (_, text) in types.items()]


def test_columns_in_glue_follow_the_schema_and_keep_comments_of_others(glue: GlueProxy, glue_lake: Lake) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    table = glue.table("db", "orders")
    columns = [c | {"Comment": f"their {c['Name']}"} for c in table["StorageDescriptor"]["Columns"]]
    theirs = {k: table[k] for k in ("Name", "TableType", "Parameters")} | {"StorageDescriptor": {"Columns": columns}}
    glue.ask("UpdateTable", DatabaseName="db", TableInput=theirs)
    with orders.update_schema() as schema:
        schema.rename_column("region", "area")
        schema.set_doc("amount", "in euros " * 50)
    shown = {c["Name"]: c.get("Comment", "") for c in glue.table("db", "orders")["StorageDescriptor"]["Columns"]}
    assert list(shown) == ["id", "amount", "area", "region"]
    assert (shown["id"], shown["area"], shown["region"]) == ("their id", "", "their region")
    assert shown["amount"].startswith("in euros in euros")
    assert len(shown["amount"]) == 255


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable"])
def test_columns_that_glue_does_not_take_stop_nothing(glue: GlueProxy, glue_lake: Lake, action: str) -> None:
    glue.fail(action, refused("InvalidInputException"))
    orders = glue_lake.create_table("db.orders", ORDERS)
    assert ids(orders.append(order_rows(1)).scan().to_arrow()) == [1]


def test_names_and_comments_over_the_limits_of_glue_are_left_out_or_cut(glue: GlueProxy, glue_lake: Lake) -> None:
    columns = [("é" * 127, pa.int32()), ("é" * 128, pa.int32()), ("line\nbreak", pa.int32()), ("bell\x07", pa.int32())]
    glue_lake.create_table("db.orders", pa.schema(columns), properties={"comment": "a\n" + "é" * 2000})
    assert [name for name, _, _ in shown_columns(glue)] == ["é" * 127]
    assert glue.table("db", "orders")["Description"] == "a\n" + "é" * 1023


def test_metadata_file_that_cannot_be_read_stops_no_swap(glue: GlueProxy, glue_lake: Lake) -> None:
    glue_lake.create_table("db.orders", ORDERS)
    store, before = glue_lake.catalog.store, shown_columns(glue)
    assert store.swap(ORDERS_NAME, store.read(ORDERS_NAME), "file:///nowhere/x.metadata.json")
    assert shown_columns(glue) == before


def test_pointer_before_stands_in_glue_too(glue: GlueProxy, glue_lake: Lake) -> None:
    orders = glue_lake.create_table("db.orders", ORDERS)
    before = orders.metadata_location
    orders.append(order_rows(1))
    parameters = glue.table("db", "orders")["Parameters"]
    assert parameters["previous_metadata_location"] == before
    assert parameters["metadata_location"] == orders.metadata_location
