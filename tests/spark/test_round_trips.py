"""What statements cost the driver: round trips to the JVM and Spark jobs, which must not grow."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.spark.reads.relations import KEPT
from support.models.round_trips import costs_of

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.float64())])
ROWS = pa.table({"id": [1, 2, 3, 4], "p": [1, 2, 3, 4], "v": [0.5, 1.5, 2.5, 3.5]}, SCHEMA)


def read_anew(spark: SparkSession, text: str) -> list[int]:
    """Rows of tables of which nothing is kept."""
    KEPT.clear()
    return sorted(row.id for row in spark.sql(text).collect())


def table_of(lake: Lake, version: int) -> None:
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    lake.create_table("db.t", SCHEMA, properties=properties).append(ROWS)


def test_a_small_read_takes_one_job_and_few_round_trips(spark: SparkSession, lake: Lake) -> None:
    table_of(lake, 2)
    costs = costs_of(spark, *[lambda: read_anew(spark, "SELECT * FROM db.t")] * 2)
    assert costs.jobs == 1
    assert costs.round_trips <= 45
    assert not costs.opened


@pytest.mark.parametrize("version", [2, 3])
def test_a_read_with_deletes_takes_no_more_jobs(spark: SparkSession, lake: Lake, version: int) -> None:
    table_of(lake, version)
    lake.load_table("db.t").append(ROWS).delete("id = 2")
    assert read_anew(spark, "SELECT * FROM db.t") == [1, 1, 3, 3, 4, 4]
    costs = costs_of(spark, *[lambda: read_anew(spark, "SELECT * FROM db.t")] * 2)
    assert costs.jobs == 1
    assert costs.round_trips <= 50
    assert len(costs.opened) <= 2  # delete files
    assert costs.in_python == 0


def test_plans_with_python_tasks_are_counted(spark: SparkSession) -> None:
    rows = spark.range(3)
    costs = costs_of(spark, lambda: rows.mapInArrow(lambda batches: batches, rows.schema).collect())
    assert (costs.in_python, costs.jobs, costs.opened) == (1, 1, [])
