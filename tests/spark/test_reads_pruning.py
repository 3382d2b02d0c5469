"""Which files a read opens: filters in SQL and on DataFrames reach the planner, and never lose a row."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from data_files import written_files
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table

pytestmark = pytest.mark.spark

EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(9, 2)),
        ("who", pa.struct([("name", pa.string()), ("age", pa.int32())])),
    ]
)


def event(n: int) -> dict[str, Any]:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=n)
    return {"id": n, "day": moment.date(), "at": moment, "price": n, "who": {"name": f"name{n}", "age": 20 + n}}


@pytest.fixture
def events(lake: Lake) -> Table:
    """Ten files of one row."""
    table = lake.create_table("db.events", EVENTS)
    table.append_files([f for n in range(10) for f in written_files(table, pa.Table.from_pylist([event(n)], EVENTS))])
    return table


def opened(frame: DataFrame, events: Table) -> set[int]:
    """The numbers of the files that a frame may open: file n holds only row n."""
    numbers = {p.file.file_path.rsplit("/", 1)[-1]: n for n, p in enumerate(events.scan().plan().files)}
    return {numbers[path.rsplit("/", 1)[-1]] for path in frame.inputFiles()}


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("SELECT * FROM db.events WHERE id = 3", {3}),
        ("SELECT * FROM db.events WHERE 3 >= id AND length(who.name) > 0", {0, 1, 2, 3}),
        ("SELECT * FROM db.events WHERE id IN (1, 2, NULL)", {1, 2}),
        ("SELECT * FROM db.events WHERE id IN (1, 2, 3, 4, 5, 6, 7, 1, 12, 13, 14, 15, 16)", set(range(1, 8))),
        ("SELECT * FROM db.events WHERE NOT (id > 3 OR day < DATE '2026-01-02')", {1, 2, 3}),
        ("SELECT * FROM db.events WHERE day BETWEEN '2026-01-03' AND '2026-01-04'", {2, 3}),
        ("SELECT * FROM db.events WHERE at >= '2026-01-09 00:00:00'", {8, 9}),
        ("SELECT * FROM db.events WHERE at < DATE '2026-01-02' + INTERVAL 1 DAY", {0, 1}),
        ("SELECT * FROM db.events WHERE day > current_date() + INTERVAL 9000 DAYS", set()),
        ("SELECT * FROM db.events WHERE day < current_date() - INTERVAL 9000 DAYS AND at > '2026-01-09'", {9}),
        ("SELECT * FROM db.events WHERE id > datediff('2100-01-01', current_date())", set(range(10))),
        (
            "SELECT * FROM db.events WHERE day < 'epoch'",
            set(range(10)),
        ),  # a word for a time, like 'today'
        ("SELECT * FROM db.events WHERE price > 7.5 AND price < 1000000000000", {8, 9}),
        ("SELECT * FROM db.events WHERE who.name LIKE 'name4%'", {4}),
        ("SELECT * FROM db.events WHERE who.age <=> 25", {5}),
        ("SELECT * FROM db.events WHERE id IS NULL", set()),
        ("SELECT * FROM db.events WHERE id + 1 = 3", set(range(10))),
        ("WITH q AS (SELECT id + 0 AS x, * FROM db.events) SELECT * FROM q WHERE id < 2", {0, 1}),
        (
            "WITH q AS (SELECT * FROM db.events) SELECT * FROM q WHERE id < 2 UNION ALL SELECT * FROM q WHERE id > 8",
            {0, 1, 9},
        ),
        ("SELECT * FROM (SELECT id AS n FROM db.events) WHERE n = 7", {7}),
        ("SELECT * FROM (SELECT id FROM db.events LIMIT 5) WHERE id = 7", set(range(10))),
        ("SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) r FROM db.events) WHERE id = 7", set(range(10))),
        ("SELECT a.id FROM db.events a JOIN db.events b ON a.id = b.id WHERE a.id > 7", {8, 9}),
        ("SELECT a.id FROM db.events a LEFT JOIN db.events b ON a.id = b.id AND b.id = 2 AND a.id > 8", set(range(10))),
        (
            "SELECT b.id FROM db.events b WHERE b.id = (SELECT max(a.id) FROM db.events a WHERE a.id < 4)",
            set(range(10)),
        ),
        ("SELECT id FROM db.events GROUP BY id HAVING id = 4", {4}),
    ],
)
def test_filters_in_sql_decide_which_files_are_read(
    spark: SparkSession, events: Table, text: str, files: set[int]
) -> None:
    assert opened(spark.sql(text), events) == files


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.id, b.id FROM db.events a LEFT JOIN db.events b ON a.id = b.id AND b.id = 2 WHERE a.id < 4",
        "SELECT a.id, 0 FROM db.events a LEFT JOIN db.events b ON a.id = b.id + 5 WHERE b.id IS NULL",
        "SELECT a.id, b.id FROM db.events a FULL JOIN db.events b ON a.id = b.id + 5 WHERE a.id > 7 OR b.id < 2",
        "SELECT id, 0 FROM db.events a WHERE NOT EXISTS (SELECT 1 FROM db.events b WHERE b.id = a.id AND b.id < 8)",
        "WITH q AS (SELECT * FROM db.events) SELECT id, 1 FROM q WHERE id < 2 UNION SELECT id, 2 FROM q WHERE id > 8",
        "SELECT id, 0 FROM (SELECT id, row_number() OVER (ORDER BY id) r FROM db.events) WHERE id > 6 AND r < 9",
    ],
)
def test_no_row_is_lost_by_pruning(spark: SparkSession, events: Table, text: str) -> None:
    spark.createDataFrame(events.scan().to_arrow()).createOrReplaceTempView("plain_events")
    expected = spark.sql(text.replace("db.events", "plain_events")).collect()
    assert sorted(map(repr, spark.sql(text).collect())) == sorted(map(repr, expected))


def test_singles_are_compared_as_what_they_are(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.singles (id INT, x FLOAT) USING iceberg PARTITIONED BY (x)")
    spark.sql("INSERT INTO db.singles VALUES (1, 1.1), (2, -1.1), (3, 3.4E38), (4, 'Infinity'::FLOAT)")
    tests = ["x = 1.1f", "x <= 1.1f AND x > 0", "x >= -1.1f AND x < 0", "x <=> 1.1f", "x IN (1.1f, -1.1f)", "x > 1.1f"]
    wanted = [[1], [1], [2], [1], [1, 2], [3, 4]]
    found = [sorted(r.id for r in spark.table("db.singles").where(test).select("id").collect()) for test in tests]
    assert found == wanted
    spark.sql("INSERT OVERWRITE db.singles PARTITION (x = 1.1) SELECT 9")
    assert sorted(r.id for r in spark.table("db.singles").collect()) == [2, 3, 4, 9]


def test_parameters_and_session_time_zones_count(spark: SparkSession, events: Table) -> None:
    assert opened(spark.sql("SELECT * FROM db.events WHERE id = :n", args={"n": 6}), events) == {6}
    assert opened(spark.sql("SELECT * FROM db.events WHERE id = ?", args=[6]), events) == {6}
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql("SELECT id FROM db.events WHERE at >= '2026-01-08 19:00:00'")
        assert opened(frame, events) == {8, 9}
        assert sorted(r.id for r in frame.collect()) == [8, 9]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


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


def test_frames_keep_the_snapshot_that_they_were_made_of(spark: SparkSession, events: Table) -> None:
    frame = spark.table("db.events")
    events.append(pa.Table.from_pylist([event(3)], EVENTS))
    assert frame.filter("id = 3").count() == 1
    assert spark.table("db.events").filter("id = 3").count() == 2
