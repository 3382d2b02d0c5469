"""A pipeline's step holds its session: all its threads and new clones write to the step's branch, and others wait."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import bergline.spark
from bergline import Lake
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    UnavailableError,
)
from bergline.spark.pipeline.run import Run
from support.fixtures.concurrency import LONG_S, run_at_once
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


def test_pipelines_in_two_threads_of_one_session_keep_to_their_branches(spark: SparkSession, lake: Lake) -> None:
    started, ended = threading.Event(), threading.Event()

    def first(run: Run) -> None:
        started.set()
        ended.wait(1)  # long enough for the other to begin, if it could
        run.sql("INSERT INTO db.orders VALUES (2, 20)")

    def second(run: Run) -> None:
        run.sql("INSERT INTO db.items VALUES (20, 2)")
        ended.set()

    def run_second() -> None:
        assert started.wait(LONG_S)
        quick(spark, lake, tables=[ITEMS], steps={"second": second}).run("2", publish=False)

    run_at_once(run_second, lambda: quick(spark, lake, tables=[ORDERS], steps={"first": first}).run("1", publish=False))
    assert state(lake) == BEFORE
    assert (ids(lake, ORDERS, "daily-1"), ids(lake, ITEMS, "daily-2")) == ([1, 2], [10, 20])
    assert spark.conf.get("spark.wap.branch", None) is None


def run_in_thread(work: Callable[[], Any]) -> None:
    other = threading.Thread(target=work, daemon=True)
    other.start()
    other.join(LONG_S)
    assert not other.is_alive()


def run_in_pool(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def run_in_pool_of_threads_that_wait(work: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        wait([pool.submit(run_in_thread, work)])


@pytest.mark.parametrize("way", [run_in_thread, run_in_pool, run_in_pool_of_threads_that_wait])
def test_step_that_waits_for_another_pipeline_of_its_session_does_not_hang(
    spark: SparkSession, lake: Lake, way: Callable[[Callable[[], Any]], None]
) -> None:
    errors: list[UnavailableError] = []

    def inner() -> None:
        try:
            quick(spark, lake, tables=[ITEMS], steps={"items": QUICK["items"]}).run("2", session_timeout=0.2)
        except UnavailableError as error:
            errors.append(error)

    report = quick(spark, lake, steps={"orders": QUICK["orders"], "wait": lambda _: way(inner)}).run("1")
    assert [step.what for step in report.steps] == ["written", "wrote nothing"]
    assert str(errors[0]) == (
        "cannot run step `items` of pipeline daily, run 2: waited 0.2 s for the session, which step `wait` of pipeline "
        "daily, run 1 holds"
    )
    assert "`spark.newSession()`" in errors[0].hints[0]
    assert "session_timeout" in errors[0].hints[1]
    assert state(lake) == (AFTER[0], BEFORE[1])
    assert quick(spark, lake, tables=[ITEMS], steps={"items": QUICK["items"]}).run("2").status == "published"
    assert state(lake) == AFTER


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1", True, None])
def test_timeout_that_is_no_time_is_refused(spark: SparkSession, lake: Lake, seconds: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected seconds from 0 on for `session_timeout`"):
        quick(spark, lake).run("1", session_timeout=seconds)
    assert list(lake.load_table(ORDERS).refs) == ["main"]


def test_all_threads_and_earlier_writers_of_the_session_write_to_the_branch(spark: SparkSession, lake: Lake) -> None:
    early = spark.range(2, 3).selectExpr("id", "id AS amount").writeTo(ORDERS)

    def step(run: Run) -> None:
        early.append()
        run_in_pool(lambda: spark.sql("INSERT INTO db.orders VALUES (3, 30)"))
        assert run_in_pool(lambda: spark.table(ORDERS).count()) == 3
        bergline.spark.detach(run.spark)
        bergline.spark.attach(run.spark, lake)
        run.sql("INSERT INTO db.items VALUES (20, 2)")

    report = quick(spark, lake, steps={"step": step}).run("1", publish=False)
    assert report.steps[0].rows == {ORDERS: 2, ITEMS: 1}
    assert state(lake) == BEFORE
    assert (ids(lake, ORDERS, "daily-1"), ids(lake, ITEMS, "daily-1")) == ([1, 2, 3], [10, 20])
    spark.sql("INSERT INTO db.items VALUES (30, 3)")
    assert ids(lake, ITEMS) == [10, 30]


@pytest.mark.parametrize("key", ["branch", "id"])
def test_wap_settings_made_before_a_run_do_not_count_in_it(spark: SparkSession, lake: Lake, key: str) -> None:
    spark.conf.set(f"spark.wap.{key}", "mine")
    try:
        report = pipeline(spark, lake).run("1")
        assert spark.conf.get(f"spark.wap.{key}") == "mine"
    finally:
        spark.conf.unset(f"spark.wap.{key}")
    assert report.status == "published"
    assert state(lake) == AFTER
    assert list(lake.load_table(ORDERS).refs) == ["main"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("branch", "cannot write to `mine` in a pipeline, whose branch is `daily-1.1-"),
        ("id", "expected one of spark.wap.branch and spark.wap.id, found both"),
    ],
)
def test_wap_settings_made_in_a_step_are_not_ignored(spark: SparkSession, lake: Lake, key: str, said: str) -> None:
    def step(run: Run) -> None:
        run.spark.conf.set(f"spark.wap.{key}", "mine")
        run.sql("INSERT INTO db.orders VALUES (2, 20)")

    try:
        with pytest.raises(BerglineError) as caught:
            quick(spark, lake, steps={"step": step}).run("1")
    finally:
        spark.conf.unset(f"spark.wap.{key}")
    assert said in str(caught.value)
    assert ids(lake, ORDERS, "daily-1") == [1]
    assert "mine" not in lake.load_table(ORDERS).refs


def append_batch(batch: DataFrame, _: int) -> None:
    batch.writeTo(ORDERS).append()


def start_stream(spark: SparkSession, directory: Path) -> StreamingQuery:
    (directory / "in").mkdir()
    arriving = spark.readStream.schema("id BIGINT, amount BIGINT").json(str(directory / "in"))
    writer = arriving.writeStream.foreachBatch(append_batch).option("checkpointLocation", str(directory / "checkpoint"))
    return writer.start()


def feed(stream: StreamingQuery, directory: Path) -> None:
    (directory / "in" / "one.json").write_text('{"id": 2, "amount": 20}\n')
    stream.processAllAvailable()


def test_stream_that_a_step_starts_writes_to_its_branch(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    def step(run: Run) -> None:
        stream = start_stream(run.spark, tmp_path)
        feed(stream, tmp_path)
        stream.stop()

    report = quick(spark, lake, steps={"stream": step}).run("1", publish=False)
    assert report.steps[0].rows == {ORDERS: 1}
    assert (ids(lake, ORDERS), ids(lake, ORDERS, "daily-1")) == ([1], [1, 2])


def test_stream_that_was_started_before_a_step_is_not_part_of_it(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    stream = start_stream(spark, tmp_path)
    try:
        report = quick(spark, lake, tables=[ITEMS], steps={"feed": lambda _: feed(stream, tmp_path)}).run("1")
    finally:
        stream.stop()
    assert report.steps[0].what == "wrote nothing"
    assert ids(lake, ORDERS) == [1, 2]


@pytest.mark.parametrize("fails", [False, True])
def test_stream_that_outlives_the_step_that_started_it_is_refused(
    spark: SparkSession, lake: Lake, tmp_path: Path, fails: bool
) -> None:
    streams: list[StreamingQuery] = []

    def step(run: Run) -> None:
        streams.append(start_stream(run.spark, tmp_path))
        if fails:
            raise KeyError("stray")

    with pytest.raises(KeyError) if fails else contextlib.nullcontext():
        quick(spark, lake, steps={"stream": step}).run("1")
    with pytest.raises(StreamingQueryException, match=r"cloned in step `stream` of .*, which has ended"):
        feed(streams[0], tmp_path)
    assert state(lake) == BEFORE
    assert [ref for ref in lake.load_table(ORDERS).refs if ref.startswith("daily-1.")] == []
