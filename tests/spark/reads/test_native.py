"""Files that are read by Spark's own Parquet reader."""

import math
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from support.fixtures.chosen_readers import native_refusal
from support.fixtures.rows import ids, order_rows
from support.fixtures.twin_tables import KINDS

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["bergline row", "bergline path", "_tmp_metadata_row_index", "_metadata"])
def test_columns_with_names_of_ours_or_of_spark_are_read(spark: SparkSession, lake: Lake, name: str) -> None:
    properties = {"write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", pa.schema([("id", pa.int64()), (name, pa.int64())]), properties=properties)
    table.append([{"id": n, name: n} for n in range(5)]).delete("id = 3")
    assert sorted(row[1] for row in spark.table("db.t").collect()) == [0, 1, 2, 4]


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


FLOATS = pa.table({"id": [1, 2, 3, 4, 5], "f": [1.0, math.nan, -5.0, -0.0, None]})


@pytest.mark.parametrize(
    "condition", ["f > 3", "NOT f <= 3", "f = 0", "f >= 0", "f < 1", "f != 0", "f IN (0)", "f IS NULL", "NOT f > 3"]
)
def test_nan_and_negative_zero_are_found_everywhere(spark: SparkSession, lake: Lake, condition: str) -> None:
    table = lake.create_table("db.f", pa.schema([("id", pa.int64()), ("f", pa.float64())])).append(FLOATS)
    spark.createDataFrame(FLOATS).createOrReplaceTempView("plain")
    expected = [r[0] for r in rows(spark, f"SELECT id FROM plain WHERE {condition}")]
    assert [r[0] for r in rows(spark, f"SELECT id FROM db.f WHERE {condition}")] == expected
    assert ids(table.scan(condition).to_arrow()) == expected
    assert sorted(r.id for r in bergline.spark.read(table.scan(condition), spark).collect()) == expected


def test_lateral_joins_and_float_filters_in_structs(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("g", pa.float64())]))])
    data = [{"id": 1, "s": {"g": math.nan}}, {"id": 2, "s": None}, {"id": 3, "s": {"g": -0.0}}]
    lake.create_table("db.t", schema).append(pa.Table.from_pylist(data, schema))
    assert rows(spark, "SELECT id FROM db.t WHERE s.g > 1") == [(1,)]
    assert rows(spark, "SELECT id FROM db.t WHERE s.g = 0") == [(3,)]
    assert rows(spark, "SELECT id FROM db.t WHERE s IS NULL") == [(2,)]
    lateral = "SELECT a.id, z.id FROM db.t a, LATERAL (SELECT b.id FROM db.t b WHERE b.id = a.id) z"
    assert rows(spark, lateral) == [(1, 1), (2, 2), (3, 3)]


def test_filters_on_other_columns_reach_the_files(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 9))
    plan = spark.sql("SELECT * FROM db.orders WHERE id > 5 AND amount > 5")._jdf.queryExecution().toString()
    assert "GreaterThan(id,5)" in plan
    assert "GreaterThan(amount" not in plan


@pytest.mark.parametrize("kind", ["v3 copy", "v3 vectors", "v3 vectors, evolved", "v3 vectors over positions"])
def test_row_lineage_is_read_from_files_and_from_manifests(spark: SparkSession, lake: Lake, kind: str) -> None:
    """Compaction stores what rows had before; a file of before format version 3 has no row ids."""
    table = KINDS[kind](lake, "db.t")
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    for change in (lambda: table.update({"amount": 0.5}, where="id IN (3, 22)"), table.compact):
        change()
        scan = table.refresh().scan(columns=columns)
        assert native_refusal(scan) is None
        found = sorted(map(tuple, bergline.spark.read(scan, spark).collect()))
        assert found == sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist())
        assert len({row_id for _, row_id, _ in found}) == len(found)
