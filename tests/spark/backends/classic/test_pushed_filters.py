"""Which files a query opens: filters in SQL reach the planner."""

import pytest
from pyspark.sql import SparkSession

from bergline import Table
from support.fixtures.event_files import opened

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("pruned_reads")]


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
