"""Runs that end in a pull request instead of moving `main`."""

import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import InvalidInputError, RefusedError
from bergline.spark import Pipeline
from bergline.spark.audits import in_range, row_count
from support.fixtures.daily_pipeline import AFTER, BEFORE, ITEMS, ORDERS, STEPS, create_tables, state

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    """Two tables with a row each."""
    create_tables(lake)


def proposing(spark: SparkSession, lake: Lake, below: int = 100) -> Pipeline:
    audits = [in_range(ORDERS, "amount", below=below, name="amounts"), row_count(ITEMS, name="items")]
    return Pipeline(spark, lake, "daily", tables=[ORDERS, ITEMS], steps=STEPS, audits=audits, publish="pull request")


def test_run_opens_one_pull_request_with_its_audits_as_checks(spark: SparkSession, lake: Lake) -> None:
    failed = proposing(spark, lake, below=30).run("1")
    assert (failed.status, failed.pull_request, list(lake.pull_requests)) == ("audits failed", None, [])
    report = proposing(spark, lake).run("1")
    assert (report.status, report.pull_request, state(lake)) == ("pull request", 1, BEFORE)
    assert "pull request 1 asks to publish branch `daily-1`" in str(report)
    assert proposing(spark, lake).run("1").pull_request == 1
    request = lake.pull_requests.get(1)
    assert {str(t.name): {c.name: c.state for c in t.checks} for t in request.overview.tables} == {
        name: {"amounts": "passed", "items": "passed"} for name in (ORDERS, ITEMS)
    }
    again = proposing(spark, lake, below=30).run("1")
    assert (again.status, again.pull_request) == ("audits failed", 1)
    with pytest.raises(RefusedError, match="check `amounts` is failed"):
        lake.pull_requests.get(1).publish()
    proposing(spark, lake).run("1")
    lake.pull_requests.get(1).publish()
    assert state(lake) == AFTER
    assert proposing(spark, lake).run("1").status == "published before"
    assert len(list(lake.pull_requests)) == 1


def test_closed_pull_request_and_tags_are_refused(spark: SparkSession, lake: Lake) -> None:
    proposing(spark, lake).run("1")
    lake.pull_requests.get(1).close()
    with pytest.raises(RefusedError, match="its pull request 1 was closed"):
        proposing(spark, lake).run("1")
    with pytest.raises(InvalidInputError, match="no tag"):
        proposing(spark, lake).run("2", tag="v2")
    with pytest.raises(InvalidInputError, match="`commit` or `pull request`"):
        Pipeline(spark, lake, "daily", tables=[ORDERS], steps={}, publish="email")
