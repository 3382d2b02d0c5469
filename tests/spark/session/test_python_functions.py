"""What Python has on top of SQL, over lake tables: pandas on Spark, functions, threads."""

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Table
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


@pytest.mark.filterwarnings("ignore")
def test_pandas_on_spark_reads_and_writes_lake_tables(spark: SparkSession, orders: Table) -> None:
    import pyspark.pandas as ps  # noqa: PLC0415  (it looks for the session and its pandas)

    orders.append(order_rows(1, 2, 3))
    found = ps.read_table("db.orders")
    assert found[found["id"] > 1]["id"].sort_values().to_list() == [2, 3]
    assert ps.sql("SELECT max(id) AS most FROM db.orders")["most"].to_list() == [3]
    found[["id", "amount"]].to_table("db.copies", mode="overwrite")
    copied = spark.table("db.copies").toPandas()
    assert sorted(copied["id"]) == [1, 2, 3]
    assert list(copied.columns) == ["id", "amount"]


def test_functions_run_over_lake_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    rows = spark.table("db.orders")
    doubled = F.udf(lambda value: value * 2, "bigint")

    @F.pandas_udf("bigint")
    def tripled(values: pd.Series) -> pd.Series:
        return values * 3

    spark.udf.register("doubled", doubled)
    assert sorted(rows.select(tripled("id")).toPandas().iloc[:, 0]) == [3, 6, 9]
    assert spark.sql("SELECT sum(doubled(id)) FROM db.orders WHERE doubled(id) > 2").first()[0] == 10
    counted = rows.groupBy("region").applyInPandas(lambda part: part[["id"]].max().to_frame("id"), "id bigint")
    assert max(row.id for row in counted.collect()) == 3
    assert rows.mapInPandas(lambda parts: parts, rows.schema).count() == 3


def test_threads_share_a_session(spark: SparkSession, orders: Table) -> None:
    def write_and_count(number: int) -> int:
        spark.sql(f"INSERT INTO db.orders VALUES ({number}, 1.0, 'eu')")
        return spark.sql("SELECT id FROM db.orders WHERE id = :id", {"id": number}).count()

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(write_and_count, range(3))) == [1, 1, 1]
    assert sorted(orders.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
