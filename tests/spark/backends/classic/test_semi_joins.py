"""The join of a MERGE: a large target is not shuffled for a small source that gives the same rows twice."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake
from bergline.spark.backends.classic.semi_joins import with_semi_join
from bergline.spark.rows import changes
from support.fixtures.ways_of_changing import change_rows_by

pytestmark = pytest.mark.spark
LIMIT = "spark.sql.autoBroadcastJoinThreshold"


@pytest.fixture
def small_limit(spark: SparkSession) -> Iterator[None]:
    """Spark sends no more than 8 KiB to every executor, and 16,000 rows are a large target."""
    before = spark.conf.get(LIMIT)
    spark.conf.set(LIMIT, "8192")
    yield
    spark.conf.set(LIMIT, before)


@pytest.fixture
def target(spark: SparkSession, lake: Lake, small_limit: None) -> DataFrame:
    spark.sql("CREATE TABLE db.t (id BIGINT, v BIGINT) USING iceberg")
    spark.sql("INSERT INTO db.t SELECT id, hash(id) FROM range(16000)")
    return spark.table("db.t")


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


SOURCES: dict[str, Callable[[SparkSession], DataFrame]] = {
    "values": lambda spark: spark.sql("SELECT * FROM VALUES (3L, 1), (20000L, 2), (NULL, 3) AS s(id, w)"),
    "range": lambda spark: spark.range(15_990, 16_010).select("id", F.lit(1).alias("w")),
    "table": lambda spark: spark.table("db.s").where("w > 2"),
    "union": lambda spark: spark.sql("SELECT * FROM VALUES (3L, 1) AS s(id, w) UNION ALL SELECT id, 1 FROM range(9)"),
}


@pytest.mark.parametrize(
    ("source", "kind"),
    [*((source, "right") for source in SOURCES), ("values", "left_anti"), ("table", "left_anti")],
)
def test_target_is_read_once_and_only_what_matches_is_shuffled(
    spark: SparkSession, target: DataFrame, source: str, kind: str
) -> None:
    if source == "table":
        spark.sql("CREATE TABLE db.s (id BIGINT, w INT) USING iceberg")
        spark.sql("INSERT INTO db.s VALUES (3, 1), (5, 4), (40000, 5)")
    small, large = SOURCES[source](spark).alias("s"), target.alias("t")
    same = F.col("t.id") == F.col("s.id")
    joined = large.join(small, same, kind) if kind == "right" else small.join(large, same, kind)
    joined = joined.where("w < 10").select("s.id", *(["v"] if kind == "right" else []))
    done = with_semi_join(joined, spark)
    assert "BroadcastHashJoin [id#" in plan_of(done)
    assert "LeftSemi, BuildRight" in plan_of(done)
    assert plan_of(done).count("FileScan parquet") == plan_of(joined).count("FileScan parquet") + (source == "table")
    assert sorted(done.collect(), key=repr) == sorted(joined.collect(), key=repr)


def test_other_joins_stay_as_they_are(spark: SparkSession, target: DataFrame) -> None:
    small, same = SOURCES["values"](spark).alias("s"), F.expr("t.id = s.id")
    large = target.alias("t")
    python = F.udf(lambda number: number, "bigint")
    random = small.where(F.rand() < 2).alias("s")
    for joined in (
        large.join(small, same),
        large.join(small, same, "left"),
        large.join(small, same, "full"),
        large.join(small, F.expr("t.id = s.id AND t.v > (SELECT max(id) FROM range(3))"), "right"),
        large.join(random, same, "right"),
        large.join(small.limit(2).alias("s"), same, "right"),
        large.join(small.withColumn("id", python("id")).alias("s"), same, "right"),
        large.join(target.alias("s"), same, "right"),
        large.limit(10).alias("t").join(small, same, "right").groupBy().count(),
        target.where("id < 3").limit(3).alias("t").join(SOURCES["range"](spark).alias("s"), same, "right").limit(2),
        large,
    ):
        assert with_semi_join(joined, spark) is joined


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_merge_gives_the_same_with_it(
    spark: SparkSession, target: DataFrame, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql(f"ALTER TABLE db.t SET TBLPROPERTIES ('write.merge.mode' = '{mode}')")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW changes AS SELECT id, id % 3 AS w FROM range(15995, 16005)")
    done: list[DataFrame] = []
    backend = type(changes.backend_of(spark))
    original = backend.with_semi_join
    monkeypatch.setattr(backend, "with_semi_join", lambda own, rows: done.append(original(own, rows)) or done[-1])
    change_rows_by("tasks", monkeypatch)
    spark.sql(
        "MERGE INTO db.t USING changes s ON t.id = s.id WHEN MATCHED AND w = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = w WHEN NOT MATCHED AND w < 2 THEN INSERT (id, v) VALUES (s.id, 7)"
    )
    assert "LeftSemi, BuildRight" in plan_of(done[0])
    found = {tuple(row) for row in spark.sql("SELECT * FROM db.t WHERE id >= 15995").collect()}
    assert found == {
        (i, i % 3 if i < 16_000 else 7) for i in range(15_995, 16_005) if i % 3 != (0 if i < 16_000 else 2)
    }
    assert spark.table("db.t").where("id < 15995").count() == 15_995
