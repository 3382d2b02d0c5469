"""Late frames of classic sessions: filters on them decide which files are read."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.spark.backends.classic.late_frame import ClassicLateRows
from support.fixtures.event_files import EVENTS, event, opened

pytestmark = pytest.mark.spark

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def test_error_of_ours_while_planning_is_not_an_empty_table(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_table("db.t", AB).append(pa.table({"a": [1], "b": ["x"]}))
    frame = spark.table("db.t")
    monkeypatch.setattr(ClassicLateRows, "rows", lambda _: object().nothing)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"cannot read `db\.t`"):
        frame.collect()


def test_filters_on_a_frame_decide_which_files_are_read(spark: SparkSession, events: Table) -> None:
    frame = spark.table("db.events")
    assert opened(frame.filter("id = 3"), events) == {3}
    assert opened(frame.where(frame.id > 7), events) == {8, 9}
    assert opened(frame.where(F.col("day") < dt.date(2026, 1, 3)).filter(frame["id"] > 0), events) == {1}
    assert opened(frame[frame.who.age == 25], events) == {5}
    assert opened(frame.filter("events.id = 3"), events) == {3}
    assert opened(frame, events) == set(range(10))


def test_filters_on_a_frame_mean_what_they_meant_when_they_were_put_there(spark: SparkSession, events: Table) -> None:
    spark.sql("DECLARE OR REPLACE VARIABLE least INT DEFAULT 7")
    frame = spark.table("db.events")
    by_text, by_column = frame.filter("at >= '2026-01-09'"), frame.where(F.to_date("at") == "2026-01-09")
    by_variable, by_name = frame.filter("id > least"), frame.filter("ID > 7").filter("_pos = 0 AND Id < 9")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        spark.sql("SET VAR least = 1")
        assert sorted(r.id for r in by_text.collect()) == [8, 9]
        assert [r.id for r in by_column.collect()] == [8]
        assert opened(by_variable, events) == {8, 9}
        assert [r.id for r in by_name.collect()] == [8]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.sql("DROP TEMPORARY VARIABLE least")


def test_columns_of_a_frame_are_columns_of_what_comes_from_it(spark: SparkSession, events: Table) -> None:
    frame = spark.table("db.events")
    few = frame.filter(frame.id < 3)
    assert sorted(map(tuple, few.select(frame.id, few["day"].alias("d")).collect())) == [
        (n, dt.date(2026, 1, 1 + n)) for n in range(3)
    ]
    other = spark.table("db.events").filter("id > 1")
    joined = few.join(other, frame.id == other.id)
    assert [tuple(r) for r in joined.select(few.id, other.day).collect()] == [(2, dt.date(2026, 1, 3))]
    assert few.join(frame, "id").count() == 3
    assert few.union(frame.filter("id = 9")).count() == 4
    few.createOrReplaceTempView("few")
    assert spark.sql("SELECT count(*) AS n FROM few").collect()[0].n == 3
    assert few.columns == frame.columns == ["id", "day", "at", "price", "who"]
    assert few.schema == frame.schema
    assert isinstance(few, DataFrame)
    assert len(few.toPandas()) == few.cache().count() == 3
    few.unpersist()


def test_what_spark_refuses_is_refused_at_once(spark: SparkSession, events: Table) -> None:
    with pytest.raises(AnalysisException, match=r"nope.*cannot be resolved"):
        spark.table("db.events").filter("nope = 1")
    with pytest.raises(AttributeError, match="nope"):
        _ = spark.table("db.events").nope


def test_frames_choose_among_files_that_came_later(spark: SparkSession, events: Table) -> None:
    frame = spark.table("db.events")
    events.append(pa.Table.from_pylist([event(3)], EVENTS))
    assert frame.filter("id = 3").count() == 2
    assert spark.table("db.events").filter("id = 3").count() == 2
