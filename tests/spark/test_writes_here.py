"""Few rows that the driver has already are written by it: the same files as tasks would write, without tasks."""

from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from bergline import Lake, Table
from bergline.format.manifest.manifest import DataFile
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime import executors
from bergline.spark.writes import local_rows as write_here
from bergline.spark.writes.local_rows import is_at_hand

pytestmark = pytest.mark.spark

EVERY_TYPE = """
SELECT * FROM VALUES
  (true, 1, 2L, float('NaN'), -0.0D, date'2026-01-02', timestamp'2026-01-02 03:04:05.000006', 1.50BD, 'zürich',
   X'00ff', named_struct('x', 1, 'y', 'a'), array(1, NULL), map('k', 1.5D)),
  (NULL, -1, NULL, float('1.5'), 0.0D, date'0001-01-01', timestamp'1900-01-01 00:00:00', -1.25BD, repeat('😀', 20),
   NULL, NULL, array(), map())
AS t(b, i, l, f, d, day, ts, n, s, bytes, point, list, pairs)
"""


def files_of(table: Table) -> list[DataFile]:
    return [planned.file for planned in table.refresh().scan().plan().files]


def described(file: DataFile) -> dict[str, Any]:
    """All that a manifest says of a file but its name."""
    return msgspec.structs.asdict(msgspec.structs.replace(file, file_path=""))


def test_rows_of_every_type_are_written_as_tasks_write_them(spark: SparkSession, lake: Lake) -> None:
    rows = spark.sql(EVERY_TYPE)
    rows.limit(0).writeTo("db.here").create()
    rows.limit(0).writeTo("db.there").create()
    assert is_at_hand(rows)
    rows.writeTo("db.here").append()
    rows.repartition(1).writeTo("db.there").append()
    here, there = lake.load_table("db.here"), lake.load_table("db.there")
    assert [described(f) for f in files_of(here)] == [described(f) for f in files_of(there)]
    assert here.scan().to_arrow().to_pylist().__repr__() == there.scan().to_arrow().to_pylist().__repr__()  # NaN


def test_rows_are_split_by_partition_and_stand_in_the_tables_order(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id bigint, region string) USING iceberg PARTITIONED BY (region)")
    spark.sql("ALTER TABLE db.t WRITE ORDERED BY id DESC")
    spark.sql("INSERT INTO db.t VALUES (1, 'eu'), (5, 'us'), (3, 'eu'), (2, 'us'), (4, 'eu')")
    table = lake.load_table("db.t")
    assert sorted(f.partition for f in files_of(table)) == [("eu",), ("us",)]
    assert {f.sort_order_id for f in files_of(table)} == {table.metadata.default_sort_order_id}
    assert [r["id"] for r in table.scan("region = 'eu'").to_arrow().to_pylist()] == [4, 3, 1]


@pytest.mark.parametrize(
    ("text", "at_hand"),
    [
        ("VALUES (1, 'a'), (2, 'b')", True),
        ("SELECT 1, 'a'", False),
        ("SELECT id, 'a' FROM range(3)", False),
        ("SELECT a.col1, b.col2 FROM VALUES (1, 'a') a JOIN VALUES (1, 'b') b ON a.col1 = b.col1", False),
        ("SELECT col1, count(*) FROM VALUES (1), (2) GROUP BY col1", False),
    ],
)
def test_only_rows_that_stand_there_are_at_hand(spark: SparkSession, text: str, at_hand: bool) -> None:
    assert is_at_hand(spark.sql(text)) == at_hand


def test_many_rows_are_left_to_tasks(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_here, "MOST_ROWS", 1)
    rows: DataFrame = spark.sql("VALUES (1), (2)").toDF("id")
    assert not is_at_hand(rows)
    rows.writeTo("db.t").create()
    assert lake.load_table("db.t").scan().to_arrow().num_rows == 2


def test_rows_that_do_not_fit_leave_no_file(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id int NOT NULL) USING iceberg")
    with pytest.raises(Exception, match="required column `id`"):
        spark.sql("INSERT INTO db.t VALUES (1), (NULL)")
    table = lake.load_table("db.t")
    assert table.metadata.current_snapshot_id is None
    assert [f for f in table.io.list(table.location) if f.endswith(".parquet")] == []


def test_tasks_in_this_python_are_not_asked_for_packages(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_FOUND", {})
    jobs = spark.sparkContext.statusTracker()
    before = jobs.getJobIdsForGroup(None)
    assert executors.prepare_executors(backend_of(spark), "file:///data") == spark.sparkContext.defaultParallelism
    assert jobs.getJobIdsForGroup(None) == before
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/another/python")
    assert not executors._are_this_machine(spark)
