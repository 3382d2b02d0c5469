"""A pipeline over two tables with a row each: what tests of pipelines and of write scopes start from."""

from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.spark import Pipeline
from bergline.spark.audits import references, unique

ORDERS, ITEMS = "db.orders", "db.items"
STEPS: dict[str, Any] = {
    "orders": "INSERT INTO db.orders VALUES (2, 20), (3, 30)",
    "items": "INSERT INTO db.items SELECT id * 10, id FROM db.orders WHERE id > 1",
}
QUICK: dict[str, Any] = {
    "orders": lambda run: run.append(ORDERS, pa.table({"id": [2, 3], "amount": [20, 30]})),
    "items": lambda run: run.append(ITEMS, pa.table({"id": [20, 30], "order_id": [2, 3]})),
}
"""The same without a Spark job."""
BEFORE, AFTER = ([1], [10]), ([1, 2, 3], [10, 20, 30])
"""The ids of both tables on `main`, before a run and after it."""


def create_tables(lake: Lake) -> None:
    whole = pa.int64()
    orders = lake.create_table(ORDERS, pa.schema([("id", whole), ("amount", whole)]))
    orders.append(pa.table({"id": [1], "amount": [10]}))
    items = lake.create_table(ITEMS, pa.schema([("id", whole), ("order_id", whole)]))
    items.append(pa.table({"id": [10], "order_id": [1]}))


def pipeline(spark: SparkSession, lake: Lake, **changes: Any) -> Pipeline:
    audits = [unique(ORDERS, "id"), references(ITEMS, "order_id", ORDERS, "id")]
    return Pipeline(spark, lake, "daily", **({"tables": [ORDERS, ITEMS], "steps": STEPS, "audits": audits} | changes))


def quick(spark: SparkSession, lake: Lake, **changes: Any) -> Pipeline:
    return pipeline(spark, lake, **({"steps": QUICK, "audits": []} | changes))


def ids(lake: Lake, name: str, ref: str = "main") -> list[int]:
    return sorted(lake.load_table(name).scan(ref=ref).to_arrow().column("id").to_pylist())


def state(lake: Lake) -> tuple[list[int], list[int]]:
    return ids(lake, ORDERS), ids(lake, ITEMS)
