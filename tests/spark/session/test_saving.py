"""`df.write`: insertInto, saveAsTable and save on lake tables, in Spark's four modes."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


def ids_of(spark: SparkSession, table: str = "db.orders") -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


def frame_of(spark: SparkSession, *ids: int, region: str = "eu") -> DataFrame:
    return spark.createDataFrame(order_rows(*ids, region=region))


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def operation(table: Table, branch: str = "main") -> str | None:
    snapshot = table.refresh().metadata.head(branch)
    assert snapshot
    return snapshot.summary["operation"]


def test_insert_into_goes_by_position_and_overwrites_by_mode(spark: SparkSession, parts: Table) -> None:
    frame = spark.createDataFrame([(7, 1.0, "us")], "a int, b double, c string")
    frame.write.insertInto("db.parts")
    assert ids_of(spark, "db.parts") == [1, 2, 3, 7]
    spark.conf.set(DYNAMIC, "dynamic")
    try:
        frame.write.mode("overwrite").insertInto("db.parts")
    finally:
        spark.conf.unset(DYNAMIC)
    assert ids_of(spark, "db.parts") == [1, 2, 7]
    frame.write.insertInto("db.parts", overwrite=True)
    assert ids_of(spark, "db.parts") == [7]
    with pytest.raises(InvalidInputError, match="no partitionBy"):
        frame.write.partitionBy("c").insertInto("db.parts")


def test_save_as_table_has_sparks_four_modes(spark: SparkSession, lake: Lake) -> None:
    frame = frame_of(spark, 1)
    frame.write.partitionBy("region").saveAsTable("db.saved", format="iceberg")
    table = lake.load_table("db.saved")
    assert [f.name for f in table.spec.fields] == ["region"]
    with pytest.raises(AlreadyExistsError):
        frame.write.format("iceberg").saveAsTable("db.saved")
    frame.write.mode("ignore").saveAsTable("db.saved")
    frame.select("region", "id").write.mode("append").saveAsTable("db.saved")
    assert ids_of(spark, "db.saved") == [1, 1]
    with pytest.raises(InvalidInputError, match="found id in partitionBy"):
        frame.write.mode("append").partitionBy("id").saveAsTable("db.saved")
    frame.select("id").write.saveAsTable("db.saved", "iceberg", "overwrite")
    assert spark.table("db.saved").columns == ["id"]
    frame.write.mode("append").saveAsTable("db.other")
    assert ids_of(spark, "db.other") == [1]
    with pytest.raises(UnsupportedError, match="found `csv`"):
        frame.write.format("csv").mode("append").saveAsTable("db.saved")


def test_save_writes_to_a_table_by_its_name(spark: SparkSession, parts: Table, tmp_path: object) -> None:
    frame_of(spark, 4).write.format("iceberg").mode("append").save("db.parts")
    frame_of(spark, 9, region="us").write.format("iceberg").mode("overwrite").option("overwrite-mode", "dynamic").save(
        "db.parts"
    )
    assert ids_of(spark, "db.parts") == [1, 2, 4, 9]
    frame_of(spark, 5).write.format("iceberg").mode("overwrite").save("lake.db.parts")
    assert ids_of(spark, "db.parts") == [5]
    with pytest.raises(AlreadyExistsError):
        frame_of(spark, 5).write.format("iceberg").save("db.parts")
    spark.range(2).write.format("parquet").save(f"{tmp_path}/plain")
    assert spark.read.parquet(f"{tmp_path}/plain").count() == 2
