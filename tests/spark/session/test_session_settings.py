"""A session's settings are its user's: nothing that bergline does switches one, not even for a moment."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaMember
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.spark import Pipeline
from bergline.spark.audits import query, row_count
from bergline.spark.pipeline.report import PipelineReport
from bergline.spark.pipeline.run import Run

pytestmark = pytest.mark.spark

_ANSI = "spark.sql.ansi.enabled"

_FILES = 40
"""More than Spark looks up without a job of its own."""


@contextmanager
def at_every_call_of_java(monkeypatch: pytest.MonkeyPatch, look: Callable[[str], None]) -> Iterator[None]:
    """Look after each call that this thread sends to the JVM: between two of them nothing of ours runs there."""
    call, thread, inside = JavaMember.__call__, threading.get_ident(), False

    def called(member: JavaMember, *args: Any) -> Any:
        nonlocal inside
        try:
            return call(member, *args)
        finally:
            if threading.get_ident() == thread and not inside:
                inside = True
                try:
                    look(member.name)
                finally:
                    inside = False

    with monkeypatch.context() as patch:
        patch.setattr(JavaMember, "__call__", called)
        yield


@pytest.fixture
def parts(lake: Lake) -> Table:
    """A table of many files."""
    rows = pa.table({"part": pa.array(range(_FILES), pa.int32()), "n": pa.array(range(_FILES), pa.int64())})
    return lake.create_table("db.parts", rows.schema, partition_by=["part"]).append(rows)


USES: dict[str, Callable[[SparkSession], Any]] = {
    "query": lambda spark: spark.sql("SELECT sum(n) FROM db.parts WHERE part > 2").collect(),
    "frame": lambda spark: spark.table("db.parts").where("n > 3").groupBy("part").count().collect(),
    "insert values": lambda spark: spark.sql("INSERT INTO db.parts VALUES (1L, 2)"),
    "insert rows": lambda spark: spark.sql("INSERT INTO db.parts SELECT id, id FROM range(20)"),
    "insert overwrite": lambda spark: spark.sql("INSERT OVERWRITE db.parts PARTITION (part = 1L) SELECT 5L"),
    "create as": lambda spark: spark.sql("CREATE TABLE db.copied USING iceberg AS SELECT * FROM db.parts"),
    "writeTo": lambda spark: spark.range(20).selectExpr("id AS part", "id AS n").writeTo("db.parts").append(),
    "saveAsTable": lambda spark: spark.range(20).write.saveAsTable("db.saved"),
    "insertInto": lambda spark: spark.range(20).selectExpr("id", "id").write.insertInto("db.parts"),
    "view": lambda spark: spark.sql("CREATE OR REPLACE TEMP VIEW kept AS SELECT * FROM db.parts"),
    "branch": lambda spark: spark.sql("ALTER TABLE db.parts CREATE BRANCH dev"),
    "listing": lambda spark: spark.catalog.listColumns("db.parts"),
}


def run_pipeline(spark: SparkSession, lake: Lake) -> PipelineReport:
    """A run whose steps write and read in SQL and by frames, and whose audits query."""

    def copy(run: Run) -> None:
        run.table("db.parts").where("part < 3").writeTo("db.parts").append()

    steps = {"insert": "INSERT INTO db.parts SELECT id, id FROM range(20)", "copy": copy}
    audits = [row_count("db.parts"), query("none", "SELECT * FROM db.parts WHERE n < 0")]
    return Pipeline(spark, lake, "daily", tables=["db.parts"], steps=steps, audits=audits).run("1", tag="v1")


@contextmanager
def no_setting_switched(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    settings = spark._jsparkSession.sessionState().conf().settings()
    spark.conf.set(_ANSI, "false")
    try:
        before = settings.hashCode()
        calls: list[str] = []

        def look(name: str) -> None:
            calls.append(name)
            assert settings.hashCode() == before, f"after {name}: {spark.conf.getAll}"

        with at_every_call_of_java(monkeypatch, look):
            yield calls
    finally:
        spark.conf.unset(_ANSI)


@pytest.mark.parametrize("use", USES)
def test_no_setting_of_a_session_is_switched(
    spark: SparkSession, parts: Table, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    with no_setting_switched(spark, monkeypatch) as calls:
        USES[use](spark)
    assert calls or use == "listing"  # what is listed is known without Spark
    spark.catalog.dropTempView("kept")


def test_no_setting_of_a_session_is_switched_by_a_pipeline(
    spark: SparkSession, lake: Lake, parts: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with no_setting_switched(spark, monkeypatch) as calls:
        report = run_pipeline(spark, lake)
    assert calls
    assert report.status == "published"
    assert parts.refresh().scan().to_arrow().num_rows == _FILES + 20 + 6


def test_query_that_another_thread_analyses_during_an_insert_keeps_its_meaning(
    spark: SparkSession, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed: list[DataFrame] = []
    spark.conf.set(_ANSI, "false")
    try:
        with ThreadPoolExecutor(1) as other:

            def look(_: str) -> None:
                analysed.append(other.submit(spark.sql, "SELECT CAST(3000000000L AS INT) AS x").result())

            with at_every_call_of_java(monkeypatch, look):
                spark.sql("INSERT INTO db.orders VALUES (1L, 2, 'eu')")
        assert len(analysed) > 10
        assert {frame.collect()[0].x for frame in analysed} == {-1294967296}
    finally:
        spark.conf.unset(_ANSI)
    assert orders.refresh().scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_do_not_fit_are_refused_at_any_depth_whatever_the_setting(
    spark: SparkSession, lake: Lake, ansi: str
) -> None:
    spark.sql("CREATE TABLE db.deep (i INT, s STRUCT<a: INT, b: ARRAY<INT>>, m MAP<INT, DECIMAL(3, 1)>) USING iceberg")
    spark.conf.set(_ANSI, ansi)
    try:
        for values in (
            "3000000000L AS i, NULL AS s, NULL AS m",
            "1 AS i, named_struct('a', 3000000000L, 'b', array(1)) AS s, NULL AS m",
            "1 AS i, named_struct('a', 1, 'b', array(3000000000L)) AS s, NULL AS m",
            "1 AS i, NULL AS s, map(3000000000L, 1) AS m",
            "1 AS i, NULL AS s, map(1, 1000.5) AS m",
        ):
            for by in ("", "BY NAME "):
                with pytest.raises(Exception, match=r"CAST_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE"):
                    spark.sql(f"INSERT INTO db.deep {by}SELECT {values}")
        spark.sql(
            "INSERT INTO db.deep BY NAME SELECT map(1L, 2) AS m, named_struct('b', array(3L), 'a', 4L) AS s, 5L AS i"
        )
        spark.sql("INSERT INTO db.deep SELECT 5L, named_struct('a', 4L, 'b', array(3L)), map(1L, 2)")
    finally:
        spark.conf.unset(_ANSI)
    first, second = (row.asDict(recursive=True) for row in spark.table("db.deep").collect())
    assert first == second
    assert (first["i"], first["s"]) == (5, {"a": 4, "b": [3]})


def test_metrics_that_are_observed_come_from_a_write(spark: SparkSession, orders: Table) -> None:
    seen = Observation("seen")
    rows = spark.range(3000).selectExpr("id", "CAST(id AS DOUBLE) AS amount", "'eu' AS region")
    rows.observe(seen, F.count(F.lit(1)).alias("rows")).writeTo("db.orders").append()
    assert seen.get == {"rows": 3000}
    assert orders.refresh().scan().to_arrow().num_rows == 3000


def test_writes_can_be_interrupted(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    begun, over = tmp_path / "begun", tmp_path / "over"

    @F.udf("bigint", useArrow=False)
    def wait(number: int) -> int:
        begun.touch()
        deadline = time.monotonic() + 60
        while not over.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return number

    def write() -> None:
        rows = spark.range(4).select(wait("id").alias("id"), F.lit(1.0).alias("amount"), F.lit("eu").alias("region"))
        rows.writeTo("db.orders").append()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not begun.exists() and not writing.done():
            time.sleep(0.05)
        assert spark.interruptAll()
        over.touch()
        with pytest.raises(Exception, match=r"(?i)cancel"):
            writing.result()
    assert orders.refresh().current_snapshot is None
