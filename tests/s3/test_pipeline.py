"""Write, audit, publish two tables whose files are on S3: a failed audit, a fix, a publish, a tag."""

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake
from bergline.spark import Pipeline
from bergline.spark.audits import in_range, references
from support.servers.s3_server import S3Server

pytestmark = pytest.mark.spark

ORDERS, ITEMS = "db.orders", "db.items"
STEPS = {
    "orders": "INSERT INTO db.orders VALUES (2, 20), (3, 300)",
    "items": "INSERT INTO db.items SELECT id * 10, id FROM db.orders WHERE id > 1",
}
FIX = {"fix": "INSERT OVERWRITE db.orders SELECT id, least(amount, 99) FROM db.orders"}


@pytest.fixture(params=["postgresql", "objects"])
def lake(request: pytest.FixtureRequest, s3_server: S3Server, bucket: str) -> Iterator[Lake]:
    """A lake whose catalog is a database, and one that is nothing but objects."""
    where: dict[str, Any] = {"uri": f"{bucket}/lake"}
    if request.param == "postgresql":
        where = {"uri": request.getfixturevalue("postgres"), "warehouse": bucket, "name": f"s3{uuid.uuid4().hex[:8]}"}
    with bergline.connect(properties=s3_server.properties, **where, create=True) as opened:
        opened.create_namespace("db")
        whole = pa.int64()
        rows = pa.table({"id": [1], "amount": [10]})
        opened.create_table(ORDERS, pa.schema([("id", whole), ("amount", whole)])).append(rows)
        opened.create_table(ITEMS, pa.schema([("id", whole), ("order_id", whole)]))
        yield opened


def rows(lake: Lake, name: str, ref: str = "main") -> list[tuple[int, ...]]:
    found = lake.load_table(name).scan(ref=ref).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_pipeline_on_s3_is_fixed_published_and_tagged(spark: SparkSession, lake: Lake, bucket: str) -> None:
    audits = [in_range(ORDERS, "amount", below=100), references(ITEMS, "order_id", ORDERS, "id")]
    failed = Pipeline(spark, lake, "daily", tables=[ORDERS, ITEMS], steps=STEPS, audits=audits).run("1", tag="v1")
    assert failed.status == "audits failed"
    assert [f.sample for f in failed.failures] == [({"id": 3, "amount": 300},)]
    assert (rows(lake, ORDERS), rows(lake, ITEMS)) == ([(1, 10)], [])
    assert rows(lake, ITEMS, "daily-1") == [(20, 2), (30, 3)]
    lake.load_table(ITEMS).append(pa.table({"id": [99], "order_id": [1]}))
    fixed = Pipeline(spark, lake, "daily", tables=[ORDERS, ITEMS], steps=STEPS | FIX, audits=audits)
    report = fixed.run("1", tag="v1")
    assert (report.status, report.rebased) == ("published", (ITEMS,))
    assert [step.what for step in report.steps] == ["written before", "written before", "written"]
    for name in (ORDERS, ITEMS):
        table = lake.load_table(name)
        assert table.refs["v1"].snapshot_id == table.refs["main"].snapshot_id
        assert all(planned.file.file_path.startswith(bucket) for planned in table.scan().plan().files)
    assert rows(lake, ORDERS) == [(1, 10), (2, 20), (3, 99)]
    assert rows(lake, ITEMS) == [(20, 2), (30, 3), (99, 1)]
