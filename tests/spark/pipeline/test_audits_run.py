"""Audits as they run on Spark: one pass over a table, on the run's branch, which they must not change."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.spark.audits import change, check, query
from support.fixtures.daily_pipeline import BEFORE, ORDERS, create_tables, ids, pipeline, quick, state

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    """Two tables with a row each."""
    create_tables(lake)


@pytest.mark.parametrize(
    "write",
    [
        lambda run: run.append(ORDERS, pa.table({"id": [7], "amount": [70]})),
        lambda run: run.sql("INSERT INTO db.orders VALUES (7, 70)"),
    ],
    ids=["append", "sql"],
)
def test_audit_that_writes_has_failed_and_wrote_nothing(spark: SparkSession, lake: Lake, write: Any) -> None:
    report = quick(spark, lake, audits=[check("stray", write)]).run("1")
    assert "RefusedError: cannot write to `db.orders` in an audit" in report.failures[0].found
    assert ids(lake, ORDERS, "daily-1") == [1, 2, 3]
    assert state(lake) == BEFORE


def test_change_of_what_is_no_number_has_failed(spark: SparkSession, lake: Lake) -> None:
    audits = [change(ORDERS, "cast(max(id) AS STRING)", at_least=0), change(ORDERS, "max(id)", at_least=0)]
    report = quick(spark, lake, audits=audits).run("1")
    assert [audit.passed for audit in report.audits] == [False, True]
    assert report.failures[0].found == "that it cannot be compared: 3, 1 on main, which are no numbers"


def test_audits_in_sql_see_the_branch(spark: SparkSession, lake: Lake) -> None:
    audit = query("no order 3", "SELECT * FROM db.orders WHERE id = 3")
    (failure,) = pipeline(spark, lake, audits=[audit]).run("1").failures
    assert failure.sample == ({"id": 3, "amount": 30},)
