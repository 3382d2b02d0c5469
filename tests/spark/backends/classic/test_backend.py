"""What classic sessions say of themselves."""

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from bergline import Lake, Table
from bergline.expressions.parse import parse_predicate
from bergline.spark.backends.choose import backend_of
from bergline.spark.backends.classic.backend import ClassicBackend
from bergline.spark.runtime.requests import LoadRequest, SaveRequest

pytestmark = pytest.mark.spark


def test_everything_of_a_session_has_its_backend(spark_session: SparkSession) -> None:
    frame = spark_session.range(1)
    for owner in (spark_session, frame, spark_session.read, frame.write, spark_session.catalog):
        backend = backend_of(owner)
        assert isinstance(backend, ClassicBackend)
        assert backend.session_id == backend_of(spark_session).session_id
    assert backend_of(spark_session.newSession()).session_id != backend_of(spark_session).session_id


def test_readers_and_writers_say_what_they_were_told(spark_session: SparkSession) -> None:
    requests = backend_of(spark_session).requests
    reader = spark_session.read.format("iceberg").option("Branch", "dev").schema("id long")
    assert requests.load(reader) == LoadRequest("iceberg", {"branch": "dev"}, True)
    writer = spark_session.range(1).write.format("iceberg").mode("append").option("branch", "dev").partitionBy("id")
    assert requests.save(writer) == SaveRequest("iceberg", "append", {"branch": "dev"}, ("id",))
    assert requests.save(spark_session.range(1).write.bucketBy(2, "id")).buckets


def test_settings_under_a_prefix_are_found(spark_session: SparkSession) -> None:
    backend = backend_of(spark_session)
    assert backend.settings_under("bergline.nothing.") == {}
    spark_session.conf.set("bergline.some.key", "value")
    try:
        assert backend.settings_under("bergline.some.") == {"key": "value"}
    finally:
        spark_session.conf.unset("bergline.some.key")


def test_temporary_views_are_told_from_tables(spark_session: SparkSession) -> None:
    backend = backend_of(spark_session)
    spark_session.range(1).createOrReplaceTempView("here")
    try:
        assert backend.has_temporary_view("HERE", spark_session.sql)
        assert not backend.has_temporary_view("elsewhere", spark_session.sql)
    finally:
        spark_session.catalog.dropTempView("here")


def test_settings_of_one_frame_are_no_settings_of_the_session(spark_session: SparkSession) -> None:
    frame = spark_session.range(1).select(F.expr("current_timezone()"))
    with backend_of(spark_session).with_settings(frame, {"spark.sql.session.timeZone": "Asia/Tokyo"}) as running:
        assert spark_session.conf.get("spark.sql.session.timeZone") == "UTC"
        assert running.count() == 1


def test_jobs_have_a_name_in_the_block_alone(spark_session: SparkSession) -> None:
    context = spark_session.sparkContext
    with backend_of(spark_session).described_jobs("bergline: write"):
        assert context.getLocalProperty("spark.job.description") == "bergline: write"
    assert context.getLocalProperty("spark.job.description") is None


def test_empty_frame_has_nothing(spark_session: SparkSession) -> None:
    frame = backend_of(spark_session).empty_frame()
    assert (frame.columns, frame.collect()) == ([], [])


def test_casts_fail_where_a_value_does_not_fit_whatever_the_setting(spark_session: SparkSession) -> None:
    cast = ClassicBackend.ansi_cast(F.col("id") * 1000, T.ByteType())
    spark_session.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(ArithmeticException, match="CAST_OVERFLOW"):
            spark_session.range(2).select(cast).collect()
    finally:
        spark_session.conf.unset("spark.sql.ansi.enabled")


def test_equal_values_are_a_predicate(spark_session: SparkSession, lake: Lake) -> None:
    schema = lake.create_table("db.t", pa.schema([("a b", pa.date32()), ("n", pa.int64())])).schema
    values = {"a b": F.lit("2026-01-02").cast("date"), "n": F.lit(None).cast("bigint")}
    found = backend_of(spark_session).equality_predicate(values, schema)
    assert found is not None
    assert "n" in str(found)
    assert backend_of(spark_session).exact_predicate("n <=> 3", schema) == parse_predicate("n <=> 3")
    assert backend_of(spark_session).exact_predicate("abs(n) = 3", schema) is None


def test_subqueries_are_named(spark: SparkSession, orders: Table) -> None:
    backend, frame = backend_of(spark), spark.range(1).alias("some name")
    assert list(backend.named_subqueries(frame)) == ["SubqueryAlias `some name`"]
    assert "SubqueryAlias `some name`" in backend.plan_text(frame)
