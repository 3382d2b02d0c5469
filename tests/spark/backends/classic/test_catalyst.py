"""Conditions as Catalyst has resolved them, as predicates of ours."""

import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.event_files import opened

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("pruned_reads")]


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
