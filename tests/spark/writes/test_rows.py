"""Writes of frames: which rows an overwrite replaces, and what its commit is."""

import datetime as dt
import re

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.errors import NotFoundError, UnsupportedError
from bergline.spark.writes.data_files import write_files
from support.fixtures.rows import ORDERS, order_rows
from support.paths import ROOT

pytestmark = pytest.mark.spark


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=str)


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


def test_overwrite_replaces_the_rows_of_a_condition(spark: SparkSession, parts: Table) -> None:
    frame_of(spark, 9).writeTo("db.parts").overwrite(F.col("region") == "eu")
    assert query(spark, "SELECT id, region FROM db.parts") == [(3, "us"), (9, "eu")]
    assert operation(parts) == "overwrite"
    # a condition that files match in part
    frame_of(spark, 4, 5, 6).writeTo("db.parts").append()
    frame_of(spark, 7).writeTo("db.parts").overwrite((F.col("id") >= 5) & F.col("region").isin("eu", "us"))
    assert ids_of(spark, "db.parts") == [3, 4, 7]
    frame_of(spark, 8).writeTo("db.parts").overwrite(F.lit(True))
    assert ids_of(spark, "db.parts") == [8]
    frame_of(spark, 10).writeTo("db.parts").overwrite("id > 100 AND id < 50")
    assert ids_of(spark, "db.parts") == [8, 10]
    with pytest.raises(UnsupportedError, match="cannot pick rows by the condition"):
        frame_of(spark, 10).writeTo("db.parts").overwrite(F.length("region") == 2)
    with pytest.raises(AnalysisException, match="regoin"):
        frame_of(spark, 10).writeTo("db.parts").overwrite(F.col("regoin") == "eu")


def test_conditions_on_times_are_in_the_sessions_zone(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.times (id BIGINT, ts TIMESTAMP) USING iceberg")
    spark.sql(
        "INSERT INTO db.times VALUES (1, TIMESTAMP '2026-01-01 00:30:00Z'), (2, TIMESTAMP '2026-01-01 02:30:00Z')"
    )
    spark.conf.set("spark.sql.session.timeZone", "+01:00")
    try:
        spark.sql(
            "INSERT INTO db.times REPLACE WHERE ts < '2026-01-01 02:00:00' SELECT 3, TIMESTAMP '2026-01-01 00:00:00'"
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert query(spark, "SELECT id, ts FROM db.times WHERE id = 3")[0][1] == dt.datetime(2025, 12, 31, 23)  # noqa: DTZ001
    assert ids_of(spark, "db.times") == [2, 3]


def test_overwritten_partitions_are_those_of_the_rows(spark: SparkSession, parts: Table) -> None:
    frame_of(spark, 9, region="us").writeTo("db.parts").overwritePartitions()
    assert ids_of(spark, "db.parts") == [1, 2, 9]
    before = parts.refresh().metadata_location
    frame_of(spark, 9).where("false").writeTo("db.parts").overwritePartitions()
    assert parts.refresh().metadata_location == before


def test_branch_that_is_dropped_before_the_commit_is_not_made_again(
    spark: SparkSession, orders: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(order_rows(1))
    data = f"{orders.location}/data"
    files = orders.io.list(data)

    def write_files_and_drop(*args: object) -> object:
        written = write_files(*args)
        lake.load_table("db.orders").refs.drop_branch("dev")
        return written

    monkeypatch.setattr("bergline.spark.writes.rows.write_files", write_files_and_drop)
    for way in ("append", "overwritePartitions", "overwrite"):
        orders.refresh().refs.create_branch("dev")
        writer = frame_of(spark, 2).writeTo("db.orders.branch_dev")
        with pytest.raises(NotFoundError, match="no branch `dev`"):
            writer.overwrite("id = 1") if way == "overwrite" else getattr(writer, way)()
        assert set(orders.refresh().refs) == {"main"}
        assert orders.io.list(data) == files


def test_guide_to_writing_runs(spark: SparkSession, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "guides" / "writing.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(example, {"spark": spark})  # noqa: S102  (our own page)
    assert capsys.readouterr().out == "8 13\n"
