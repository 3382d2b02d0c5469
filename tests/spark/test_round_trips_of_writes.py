"""What statements that write cost the driver: they make few round trips to the JVM, however wide a table is."""

import operator
from collections.abc import Callable
from typing import NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.models.round_trips import Costs, costs_of

pytestmark = pytest.mark.spark

MODES = {
    "merge-on-read": "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read'",
    "copy-on-write": "'write.delete.mode' = 'copy-on-write', 'write.update.mode' = 'copy-on-write', "
    "'write.merge.mode' = 'copy-on-write'",
}
FOUR = "(1, 'a', 1.0), (2, 'b', 2.0), (3, 'c', 3.0), (4, 'd', 4.0)"
SOURCE = "(SELECT * FROM VALUES (2, 'm', 9.0), (7, 'n', 8.0) AS s(id, name, price))"
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
SMALL = {
    "INSERT": f"INSERT INTO db.%s VALUES {FOUR}",
    "UPDATE": "UPDATE db.%s SET name = 'x' WHERE id = 2",
    "DELETE": "DELETE FROM db.%s WHERE id %% 4 = 3",
    "MERGE": f"MERGE INTO db.%s t USING {SOURCE} s ON t.id = s.id {UPSERT}",
}


class Most(NamedTuple):
    """Round trips, jobs, files that the driver opens, and how often it waits for a disk."""

    round_trips: int
    jobs: int
    opened: int
    syncs: int


MOST = {
    ("INSERT", "merge-on-read"): Most(58, 1, opened=0, syncs=8),
    ("INSERT", "copy-on-write"): Most(58, 1, opened=0, syncs=8),
    ("UPDATE", "merge-on-read"): Most(160, 1, opened=1, syncs=12),
    ("UPDATE", "copy-on-write"): Most(160, 1, opened=2, syncs=12),
    ("DELETE", "merge-on-read"): Most(170, 1, opened=1, syncs=8),
    ("DELETE", "copy-on-write"): Most(170, 1, opened=2, syncs=10),
    ("MERGE", "merge-on-read"): Most(190, 2, opened=1, syncs=12),
    ("MERGE", "copy-on-write"): Most(190, 2, opened=2, syncs=12),
}
"""What the statements may cost; none of them has rows go through Python tasks."""
_FIELDS = ", ".join(f"'f{number}', id + {number}" for number in range(200))
SHAPES = {
    "501 columns": [f"id + {number} AS c{number}" for number in range(500)],
    "a struct of 200 fields": ["id AS c1", f"named_struct({_FIELDS}) AS s"],
}
MOST_OF_WIDE = {"append": 2000, "read": 2000, "UPDATE": 2000}
"""How many round trips statements may make on wide tables."""
NARROW, WIDE = 5, 65
"""Numbers of columns: what one costs is seen in the difference."""


@pytest.fixture
def small(spark: SparkSession) -> Callable[[str], list[str]]:
    """Makes tables of 3 columns and 4 rows, two at a time: the first statement of a kind is for warming up."""

    def make(mode: str) -> list[str]:
        names = ["warm", "measured"]
        for name in names:
            spark.sql(
                f"CREATE TABLE db.{name} (id INT, name STRING, price DOUBLE) USING iceberg "
                f"TBLPROPERTIES ('format-version' = '2', {MODES[mode]})"
            )
            spark.sql(f"INSERT INTO db.{name} VALUES {FOUR}")
        return names

    return make


@pytest.mark.parametrize(("kind", "mode"), MOST)
def test_small_statements_make_few_round_trips(
    spark: SparkSession, small: Callable[[str], list[str]], kind: str, mode: str
) -> None:
    costs = costs_of(spark, *(lambda name=name: spark.sql(SMALL[kind] % name) for name in small(mode)))
    found = costs.round_trips, costs.jobs, len(costs.opened), costs.syncs
    assert all(map(operator.le, found, MOST[kind, mode])), costs
    assert costs.in_python == 0


@pytest.fixture
def wide_rows(spark: SparkSession) -> Callable[[int, int], DataFrame]:
    """Makes frames of so many columns beside the id, and ten rows from a number on."""

    def make(columns: int, first: int) -> DataFrame:
        numbers = (f"CAST(id * {number} AS DOUBLE) AS c{number}" for number in range(columns))
        return spark.range(first, first + 10).selectExpr("id", *numbers)

    return make


def wide_costs(spark: SparkSession, rows: Callable[[int, int], DataFrame], kind: str, columns: int) -> Costs:
    """What a statement costs on a table of so many columns."""
    name = f"db.of_{columns}"
    frame, more = rows(columns, 0), rows(columns, 10)
    more.createOrReplaceTempView("more")
    statements: dict[str, Callable[[], object]] = {
        "append": more.writeTo(name).append,
        "read": lambda: spark.sql(f"SELECT * FROM {name} LIMIT 5").collect(),
        "INSERT": lambda: spark.sql(f"INSERT INTO {name} SELECT * FROM more"),
        "UPDATE": lambda: spark.sql(f"UPDATE {name} SET c1 = 3 WHERE id IN (2, 5)"),
        "DELETE": lambda: spark.sql(f"DELETE FROM {name} WHERE id % 7 = 3"),
        "MERGE": lambda: spark.sql(f"MERGE INTO {name} t USING more s ON t.id = s.id - 5 {UPSERT}"),
    }
    if kind == "create":
        return costs_of(spark, frame.writeTo(name).create)
    frame.writeTo(name).create()
    return costs_of(spark, statements[kind])


@pytest.mark.parametrize("kind", ["create", "append", "read", "INSERT", "UPDATE", "DELETE", "MERGE"])
def test_round_trips_do_not_depend_on_the_number_of_columns(
    spark: SparkSession, wide_rows: Callable[[int, int], DataFrame], kind: str
) -> None:
    wide_costs(spark, wide_rows, kind, 2)  # the first one looks up classes
    narrow, wide = (wide_costs(spark, wide_rows, kind, columns) for columns in (NARROW, WIDE))
    assert wide.round_trips - narrow.round_trips < (WIDE - NARROW) / 2, (narrow, wide)


@pytest.mark.parametrize("shape", SHAPES)
def test_wide_tables_make_few_round_trips(spark: SparkSession, shape: str) -> None:
    frame = spark.range(1000).selectExpr("id", *SHAPES[shape])
    frame.writeTo("db.wide").create()
    actions: dict[str, Callable[[], object]] = {
        "append": frame.writeTo("db.wide").append,
        "read": lambda: spark.sql("SELECT * FROM db.wide LIMIT 5").collect(),
        "UPDATE": lambda: spark.sql("UPDATE db.wide SET c1 = c1 + 1 WHERE id IN (7, 70)"),
    }
    costs = {kind: costs_of(spark, action) for kind, action in actions.items()}
    assert {kind: cost for kind, cost in costs.items() if cost.round_trips > MOST_OF_WIDE[kind]} == {}
