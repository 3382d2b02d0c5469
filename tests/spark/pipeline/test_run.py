"""What a run is known by: its marks in the history, its published id, its tag and its branch."""

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import (
    InvalidInputError,
    RefusedError,
)
from bergline.spark import Pipeline
from support.fixtures.daily_pipeline import AFTER, BEFORE, ITEMS, ORDERS, QUICK, create_tables, ids, quick, state

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    """Two tables with a row each."""
    create_tables(lake)


def test_same_id_again_reports_that_it_was_published(spark: SparkSession, lake: Lake) -> None:
    quick(spark, lake).run("1", tag="v1")
    lake.load_table(ORDERS).append(pa.table({"id": [9], "amount": [9]}))
    again = quick(spark, lake).run("1", tag="v1")
    assert again.status == "published before"
    assert {s.step: s.rows for s in again.steps} == {"orders": {ORDERS: 2}, "items": {ITEMS: 2}}
    assert ids(lake, ORDERS) == [1, 2, 3, 9]
    quick(spark, lake).run("2")
    assert ids(lake, ORDERS) == [1, 2, 2, 3, 3, 9]


def expire(lake: Lake, *names: str) -> None:
    """Only the head of `main` is left of each."""
    for name in names:
        lake.load_table(name).expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))


def test_published_run_is_known_after_its_snapshots_have_expired(spark: SparkSession, lake: Lake) -> None:
    quick(spark, lake).run("1", tag="v1")
    for name, column in ((ORDERS, "amount"), (ITEMS, "order_id")):
        lake.load_table(name).append(pa.table({"id": [9], column: [1]}))
    lake.drop_ref("v1")
    expire(lake, ORDERS, ITEMS)
    again = quick(spark, lake).run("1")
    assert (again.status, again.steps) == ("published before", ())
    assert state(lake) == ([1, 2, 3, 9], [9, 10, 20, 30])
    with pytest.raises(RefusedError, match="has no tag of that name"):
        quick(spark, lake).run("1", tag="v1")
    lake.tag("v1", [ORDERS, ITEMS])
    with pytest.raises(RefusedError, match="has another ref of that name"):
        quick(spark, lake).run("1", tag="v1")
    # one table is enough
    lake.load_table(ORDERS).set_properties(remove=["bergline.pipeline.published-runs"])
    assert quick(spark, lake).run("1").status == "published before"


def test_tag_of_a_run_whose_other_snapshots_have_expired_is_known(spark: SparkSession, lake: Lake) -> None:
    quick(spark, lake).run("1", tag="v1")
    for name, column in ((ORDERS, "amount"), (ITEMS, "order_id")):
        for number in (8, 9):
            lake.load_table(name).append(pa.table({"id": [number], column: [1]}))
    expire(lake, ORDERS, ITEMS)
    again = quick(spark, lake).run("1", tag="v1")
    assert (again.status, again.tag) == ("published before", "v1")


def test_run_of_an_older_version_is_known_by_its_snapshots(spark: SparkSession, lake: Lake) -> None:
    quick(spark, lake).run("1")
    for name in (ORDERS, ITEMS):
        lake.load_table(name).set_properties(remove=["bergline.pipeline.published-runs"])
    assert quick(spark, lake).run("1").status == "published before"


def test_run_that_was_rolled_back_is_published_again(spark: SparkSession, lake: Lake) -> None:
    heads = {name: lake.load_table(name).refs["main"].snapshot_id for name in (ORDERS, ITEMS)}
    quick(spark, lake).run("1")
    for name, head in heads.items():
        lake.load_table(name).refs.rollback(to=head)
    assert state(lake) == BEFORE
    assert quick(spark, lake).run("1").status == "published"
    assert state(lake) == AFTER


def test_tag_of_a_run_that_was_published_is_there_or_refused(spark: SparkSession, lake: Lake) -> None:
    steps = {"orders": QUICK["orders"]}
    quick(spark, lake, steps=steps).run("1", tag="v1")
    again = quick(spark, lake, steps=steps).run("1", tag="v1")
    assert (again.status, again.tag) == ("published before", "v1")
    head = lake.load_table(ORDERS).refs["v1"].snapshot_id
    with pytest.raises(RefusedError, match=r"published before, and `db\.orders` has no tag of that name") as caught:
        quick(spark, lake, steps=steps).run("1", tag="v2")
    assert caught.value.hints == (f"what it wrote can be tagged by `lake.tag('v2', {{'db.orders': {head}}})`",)
    lake.load_table(ORDERS).append(pa.table({"id": [4], "amount": [40]}))
    lake.tag("v3", [ORDERS, ITEMS])
    with pytest.raises(RefusedError, match=r"`db\.orders` has another ref of that name"):
        quick(spark, lake, steps=steps).run("1", tag="v3")
    with pytest.raises(InvalidInputError, match="found that of branch `main`"):
        quick(spark, lake, steps=steps).run("1", tag="main")
    assert set(lake.load_table(ITEMS).refs) == {"main", "v1", "v3"}


def test_branch_that_another_run_wrote_is_not_published(spark: SparkSession, lake: Lake) -> None:
    quick(spark, lake).run("1-2", publish=False)
    other = Pipeline(spark, lake, "daily-1", tables=[ORDERS, ITEMS], steps={"none": lambda _: None})
    with pytest.raises(RefusedError, match="it has what pipeline daily, run 1-2, wrote"):
        other.run("2")
    assert state(lake) == BEFORE
    assert quick(spark, lake).run("1-2").status == "published"
    assert other.run("2").status == "published"
    assert state(lake) == AFTER
