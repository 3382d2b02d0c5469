"""Where the rows of a write go: branches by name, option and setting, and WAP ids."""

import pytest
from pyspark.errors import IllegalArgumentException as SparkIllegalArgument
from pyspark.sql import DataFrame, SparkSession

from bergline import Table
from bergline.errors import InvalidInputError, RefusedError
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def ids_of(spark: SparkSession, table: str = "db.orders") -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


def frame_of(spark: SparkSession, *ids: int, region: str = "eu") -> DataFrame:
    return spark.createDataFrame(order_rows(*ids, region=region))


@pytest.mark.parametrize("way", ["append", "overwritePartitions", "insertInto", "saveAsTable", "save", "sql", "name"])
def test_branch_is_honoured_by_every_way_of_writing(spark: SparkSession, orders: Table, way: str) -> None:
    orders.append(order_rows(1))
    frame = frame_of(spark, 2)
    match way:
        case "append" | "overwritePartitions":
            getattr(frame.writeTo("db.orders").option("branch", "dev"), way)()
        case "insertInto":
            frame.write.option("Branch", "dev").insertInto("db.orders")
        case "saveAsTable":
            frame.write.mode("append").saveAsTable("db.orders", branch="dev")
        case "save":
            frame.write.format("iceberg").mode("append").option("branch", "dev").save("db.orders")
        case "sql":
            spark.sql("INSERT INTO db.orders WITH (branch = 'dev') VALUES (2, 1.0, 'eu')")
        case "name":
            orders.refs.create_branch("dev")
            frame.write.insertInto("db.orders.branch_dev")
    assert ids_of(spark) == [1]
    assert ids_of(spark, "db.orders.branch_dev")[-1] == 2


def test_wap_branch_takes_no_other_branch_and_no_id_beside_it(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev")
    spark.conf.set("spark.wap.branch", "audit")
    for write in (
        lambda: spark.sql("INSERT INTO db.orders.branch_dev VALUES (2, 1.0, 'eu')"),
        lambda: frame_of(spark, 2).writeTo("db.orders").option("branch", "main").append(),
    ):
        with pytest.raises(InvalidInputError, match=r"found `\w+` and `audit` in spark.wap.branch"):
            write()
    spark.conf.set("spark.wap.id", "w1")
    try:
        with pytest.raises(SparkIllegalArgument, match="found both: `audit` and `w1`"):
            spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    finally:
        spark.conf.unset("spark.wap.id")
    frame_of(spark, 2).writeTo("db.orders").option("branch", "audit").append()
    assert set(orders.refresh().refs) == {"main", "dev", "audit"}


def test_wap_id_stages_a_snapshot_that_no_ref_names(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.conf.set("spark.wap.id", "w1")
    try:
        frame_of(spark, 2).writeTo("db.orders").append()
        spark.sql("INSERT OVERWRITE db.orders VALUES (3, 1.0, 'eu')")
        frame_of(spark, 4).writeTo("db.orders").overwrite("id = 1")
        orders.refresh().set_properties({"write.wap.enabled": "false"})
        frame_of(spark, 5).writeTo("db.orders").append()
    finally:
        spark.conf.unset("spark.wap.id")
    assert ids_of(spark) == [1, 5]
    staged = [s for s in orders.refresh().metadata.snapshots if s.summary.get("wap.id") == "w1"]
    assert [s.summary["operation"] for s in staged] == ["append", "overwrite", "overwrite"]
    assert [ids_of(spark, f"db.orders VERSION AS OF {s.snapshot_id}") for s in staged] == [[1, 2], [3], [4]]


def test_table_is_not_replaced_while_writes_go_to_a_branch(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    frame = frame_of(spark, 2)
    with pytest.raises(RefusedError, match=r"cannot replace `db\.orders` on branch `dev`: .* `main` would be empty"):
        frame.writeTo("db.orders").option("branch", "dev").createOrReplace()
    with pytest.raises(RefusedError, match="on branch `dev`"):
        frame.write.mode("overwrite").option("branch", "dev").saveAsTable("db.orders")
    for key, value, place in (("branch", "dev", "on branch `dev`"), ("id", "w1", "under WAP id `w1`")):
        spark.conf.set(f"spark.wap.{key}", value)
        try:
            for text in ("REPLACE TABLE db.orders (id BIGINT)", "CREATE OR REPLACE TABLE db.orders AS SELECT 2 AS id"):
                with pytest.raises(RefusedError, match=place):
                    spark.sql(text)
            frame.writeTo(f"db.new_{key}").createOrReplace()  # there is nothing to replace
        finally:
            spark.conf.unset(f"spark.wap.{key}")
    table = orders.refresh()
    assert [table.scan(ref=ref).to_arrow().num_rows for ref in ("main", "dev")] == [1, 1]
    assert len(table.metadata.snapshots) == 1


def test_tag_in_wap_branch_refuses_writes(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    spark.conf.set("spark.wap.branch", "v1")
    with pytest.raises(RefusedError, match="it is a tag"):
        frame_of(spark, 2).write.insertInto("db.orders")
    assert ids_of(spark) == [1]
