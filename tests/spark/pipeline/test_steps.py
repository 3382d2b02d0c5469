"""Steps: each is in the run's branch whole or not at all, once, wherever a process dies."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import (
    BerglineError,
)
from bergline.spark.pipeline.run import Run
from bergline.spark.pipeline.steps import RunSteps
from support.fixtures.daily_pipeline import (
    AFTER,
    BEFORE,
    ITEMS,
    ORDERS,
    QUICK,
    create_tables,
    ids,
    pipeline,
    quick,
    state,
)

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    """Two tables with a row each."""
    create_tables(lake)


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("method", ["branch", "publish"])
@pytest.mark.parametrize("call", [0, 1, 2])
def test_run_that_died_around_any_commit_is_continued_and_doubles_nothing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, method: str, call: int, after: bool
) -> None:
    real, calls = getattr(lake, method), []

    def dying(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        if len(calls) == call + 1 and not after:
            raise Crash
        done = real(*args, **kwargs)
        if len(calls) == call + 1:
            raise Crash
        return done

    with monkeypatch.context() as patch:
        patch.setattr(lake, method, dying)
        patch.setattr(RunSteps, "_discard", lambda *_: None)  # a dead process tidies nothing up
        with pytest.raises(Crash):
            quick(spark, lake).run("1", tag="v1")
    assert state(lake) == (AFTER if (method, call, after) == ("publish", 2, True) else BEFORE)
    report = quick(spark, lake).run("1", tag="v1")
    assert report.is_published
    assert state(lake) == AFTER
    for name in (ORDERS, ITEMS):
        assert list(lake.load_table(name).refs) == ["main", "v1"]


def test_step_that_died_between_its_writes_is_run_again_as_a_whole(spark: SparkSession, lake: Lake) -> None:
    died = []

    def both(run: Run) -> None:
        QUICK["orders"](run)
        if not died:
            died.append(run)
            raise Crash
        run.append(ITEMS, pa.table({"id": [20, 30], "order_id": [2, 3]}))

    with pytest.raises(Crash):
        quick(spark, lake, steps={"both": both}).run("1")
    assert state(lake) == BEFORE
    assert ids(lake, ORDERS, "daily-1") == [1]
    report = quick(spark, lake, steps={"both": both}).run("1")
    assert report.steps[0].rows == {ORDERS: 2, ITEMS: 2}
    assert state(lake) == AFTER


def test_two_runs_of_one_id_at_once_write_every_step_once(spark: SparkSession, lake: Lake) -> None:
    inner = quick(spark, lake)
    outcome = []

    def overtaken(run: Run) -> None:
        QUICK["orders"](run)
        if not outcome:
            outcome.append(inner.run("1", publish=False))

    report = quick(spark, lake, steps={**QUICK, "orders": overtaken}).run("1")
    assert outcome[0].status == "audited"
    assert report.status == "published"
    assert state(lake) == AFTER


def test_step_that_fails_leaves_nothing_in_the_branch(spark: SparkSession, lake: Lake) -> None:
    steps = {**QUICK, "broken": "INSERT INTO db.orders SELECT nothing FROM db.items"}
    spark.conf.set("spark.wap.branch", "mine")
    with pytest.raises(Exception, match="nothing") as caught:
        quick(spark, lake, steps=steps).run("1")
    assert caught.value.__notes__[-1].startswith("in step `broken` of pipeline daily, run 1")
    assert spark.conf.get("spark.wap.branch") == "mine"
    spark.conf.unset("spark.wap.branch")
    assert state(lake) == BEFORE
    assert list(lake.load_table(ORDERS).refs) == ["main", "daily-1"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("INSERT INTO db.other VALUES (1)", "cannot write to `db.other` in a pipeline of db.orders, db.items"),
        ("INSERT INTO db.orders.branch_main VALUES (4, 4)", "expected one branch, found `main`"),
        (lambda run: run.append("db.other", pa.table({"id": [1]})), "no table `db.other` in the pipeline"),
        (
            lambda run: run.lake.load_table(ORDERS).append(pa.table({"id": [4]}), branch=run.branch),
            "wrote to `db.orders` without the run's mark",
        ),
        (
            "CREATE OR REPLACE TABLE db.orders USING iceberg AS SELECT 4L AS id",
            "cannot replace `db.orders`",
        ),
        ("REPLACE TABLE db.orders (id BIGINT) USING iceberg", "cannot replace `db.orders`"),
        (
            lambda run: run.table(ITEMS).selectExpr("id", "order_id AS amount").writeTo(ORDERS).createOrReplace(),
            "cannot replace `db.orders`",
        ),
        (
            lambda run: [
                run.append(ORDERS, pa.table({"id": [4], "amount": [4]})),
                run.sql(f"CALL system.fast_forward('db.orders', 'main', '{run.branch}')"),
            ],
            "cannot run CALL fast_forward in a pipeline",
        ),
        (
            "ALTER TABLE db.orders CREATE OR REPLACE BRANCH main",
            "cannot run ALTER TABLE with branch `main` in a pipeline",
        ),
        (
            lambda run: run.sql(f"ALTER TABLE db.orders DROP BRANCH `{run.branch}`"),
            "cannot run ALTER TABLE with branch `daily-1.1-",
        ),
    ],
)
def test_step_writes_only_to_its_branch_of_the_pipelines_tables(
    spark: SparkSession, lake: Lake, step: Any, said: str
) -> None:
    other = lake.create_table("db.other", pa.schema([("id", pa.int64())]))
    with pytest.raises(BerglineError) as caught:
        pipeline(spark, lake, steps={"stray": step}).run("1")
    assert said in str(caught.value)
    assert state(lake) == BEFORE
    assert list(other.refresh().refs) == []
    assert ids(lake, ORDERS, "daily-1") == [1]
