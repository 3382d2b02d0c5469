"""Write, audit, publish over two tables: nothing is lost, doubled or half visible, wherever a run stops."""

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa
import pytest
from concurrency import LONG_S, run_at_once
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    TablesRefusedError,
)
from bergline.spark import Pipeline
from bergline.spark.audits import change, check, in_range, query, references, row_count, unique
from bergline.spark.pipeline.run import Run
from bergline.spark.pipeline.steps import RunSteps

pytestmark = pytest.mark.spark

ORDERS, ITEMS = "db.orders", "db.items"
STEPS: dict[str, Any] = {
    "orders": "INSERT INTO db.orders VALUES (2, 20), (3, 30)",
    "items": "INSERT INTO db.items SELECT id * 10, id FROM db.orders WHERE id > 1",
}
QUICK: dict[str, Any] = {
    "orders": lambda run: run.append(ORDERS, pa.table({"id": [2, 3], "amount": [20, 30]})),
    "items": lambda run: run.append(ITEMS, pa.table({"id": [20, 30], "order_id": [2, 3]})),
}
"""The same without a Spark job."""


@pytest.fixture(autouse=True)
def tables(lake: Lake) -> None:
    """Two tables with a row each."""
    whole = pa.int64()
    lake.create_table(ORDERS, pa.schema([("id", whole), ("amount", whole)])).append(
        pa.table({"id": [1], "amount": [10]})
    )
    lake.create_table(ITEMS, pa.schema([("id", whole), ("order_id", whole)])).append(
        pa.table({"id": [10], "order_id": [1]})
    )


def pipeline(spark: SparkSession, lake: Lake, **changes: Any) -> Pipeline:
    audits = [unique(ORDERS, "id"), references(ITEMS, "order_id", ORDERS, "id")]
    return Pipeline(spark, lake, "daily", **({"tables": [ORDERS, ITEMS], "steps": STEPS, "audits": audits} | changes))


def quick(spark: SparkSession, lake: Lake, **changes: Any) -> Pipeline:
    return pipeline(spark, lake, **({"steps": QUICK, "audits": []} | changes))


def ids(lake: Lake, name: str, ref: str = "main") -> list[int]:
    return sorted(lake.load_table(name).scan(ref=ref).to_arrow().column("id").to_pylist())


def state(lake: Lake) -> tuple[list[int], list[int]]:
    return ids(lake, ORDERS), ids(lake, ITEMS)


BEFORE, AFTER = ([1], [10]), ([1, 2, 3], [10, 20, 30])


def test_run_is_written_audited_published_and_tagged(spark: SparkSession, lake: Lake) -> None:
    report = pipeline(spark, lake).run("1", tag="v1")
    assert report.status == "published"
    assert state(lake) == AFTER
    assert [(s.step, s.what, s.rows) for s in report.steps] == [
        ("orders", "written", {ORDERS: 2}),
        ("items", "written", {ITEMS: 2}),
    ]
    assert all(a.passed for a in report.check_published().audits)
    for name in (ORDERS, ITEMS):
        table = lake.load_table(name)
        assert dict(table.refs.tags)["v1"].snapshot_id == table.refs["main"].snapshot_id
        assert list(table.refs.branches) == ["main"]
        assert table.current_snapshot is not None
        assert table.current_snapshot.summary["bergline.run-id"] == "1"
    assert spark.conf.get("spark.wap.branch", None) is None
    assert "published and tagged `v1`" in str(report)


def test_failed_audit_leaves_main_and_keeps_the_branch_until_it_is_fixed(spark: SparkSession, lake: Lake) -> None:
    audits = [in_range(ORDERS, "amount", below=30), row_count(ITEMS)]
    report = pipeline(spark, lake, audits=audits).run("1")
    assert report.status == "audits failed"
    (failure,) = report.failures
    assert (failure.table, failure.expected) == (ORDERS, "amount below 30")
    assert failure.found == "1 of 3 rows otherwise"
    assert failure.sample == ({"id": 3, "amount": 30},)
    assert "not published, 1 of 2 audits failed; main is as it was, branch `daily-1` stays" in str(report)
    with pytest.raises(RefusedError, match="1 of 2 audits failed"):
        report.check_published()
    assert state(lake) == BEFORE
    assert ids(lake, ORDERS, "daily-1") == [1, 2, 3]
    fixed = {**STEPS, "fix": "INSERT OVERWRITE db.orders SELECT id, least(amount, 29) FROM db.orders"}
    again = pipeline(spark, lake, steps=fixed, audits=audits).run("1")
    assert [s.what for s in again.steps] == ["written before", "written before", "written"]
    assert again.status == "published"
    assert state(lake) == AFTER


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


@pytest.mark.parametrize("call", [0, 1, 2])
def test_lost_answer_of_a_publish_doubles_nothing(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    real, calls = lake.publish, []

    def losing(*args: Any, **kwargs: Any) -> Any:
        done = real(*args, **kwargs)
        calls.append(done)
        if len(calls) == call + 1:
            raise bergline.errors.CommitUnknownError("no answer", table=ORDERS, metadata_location=None)
        return done

    monkeypatch.setattr(lake, "publish", losing)
    assert quick(spark, lake).run("1").is_published
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


def run_in_pool(work: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def run_in_pool_of_threads_that_wait(work: Callable[[], Any]) -> None:
    with ThreadPoolExecutor(1) as pool:
        wait([pool.submit(run_in_thread, work)])


@pytest.mark.parametrize("way", [run_in_thread, run_in_pool, run_in_pool_of_threads_that_wait])
def test_step_that_waits_for_another_pipeline_of_its_session_does_not_hang(
    spark: SparkSession, lake: Lake, way: Callable[[Callable[[], Any]], None]
) -> None:
    errors: list[RefusedError] = []

    def inner() -> None:
        try:
            quick(spark, lake, tables=[ITEMS], steps={"items": QUICK["items"]}).run("2")
        except RefusedError as error:
            errors.append(error)

    report = quick(spark, lake, steps={"orders": QUICK["orders"], "wait": lambda _: way(inner)}).run("1")
    assert [step.what for step in report.steps] == ["written", "wrote nothing"]
    assert str(errors[0]) == (
        "cannot run step `items` of pipeline daily, run 2 in this thread: step `wait` of pipeline daily, run 1 waits "
        "for it, and has the session until it ends"
    )
    assert state(lake) == (AFTER[0], BEFORE[1])
    assert quick(spark, lake, tables=[ITEMS], steps={"items": QUICK["items"]}).run("2").status == "published"
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


def test_branch_that_another_run_wrote_is_not_published(spark: SparkSession, lake: Lake) -> None:
    quick(spark, lake).run("1-2", publish=False)
    other = Pipeline(spark, lake, "daily-1", tables=[ORDERS, ITEMS], steps={"none": lambda _: None})
    with pytest.raises(RefusedError, match="it has what pipeline daily, run 1-2, wrote"):
        other.run("2")
    assert state(lake) == BEFORE
    assert quick(spark, lake).run("1-2").status == "published"
    assert other.run("2").status == "published"
    assert state(lake) == AFTER


def test_publish_merges_where_main_has_moved_on_or_is_refused(spark: SparkSession, lake: Lake) -> None:
    def meanwhile(_: Run) -> bool:
        if 9 not in ids(lake, ORDERS):
            lake.load_table(ORDERS).append(pa.table({"id": [9], "amount": [9]}))
        return True

    with pytest.raises(TablesRefusedError, match="both have moved on"):
        quick(spark, lake, audits=[check("meanwhile", meanwhile)]).run("1", merge=False)
    assert state(lake) == ([1, 9], [10])
    report = quick(spark, lake, audits=[check("meanwhile", meanwhile)]).run("1")
    assert report.published is not None
    assert {t.table: t.what for t in report.published.tables} == dict.fromkeys((ORDERS, ITEMS), "fast-forwarded")
    assert report.rebased == (ORDERS,)
    assert "brought on top of main\n    db.orders" in str(report)
    assert state(lake) == ([1, 2, 3, 9], [10, 20, 30])
    assert quick(spark, lake).run("1").status == "published before"


def test_rows_that_came_to_main_meanwhile_are_audited_before_they_are_published(
    spark: SparkSession, lake: Lake
) -> None:
    seen: list[list[int]] = []

    def meanwhile(run: Run) -> None:
        seen.append(ids(lake, ORDERS, run.branch))
        if len(seen) == 1:
            lake.load_table(ORDERS).append(pa.table({"id": [2], "amount": [9]}))

    audits = [check("meanwhile", meanwhile), unique(ORDERS, "id")]
    report = quick(spark, lake, audits=audits).run("1")
    assert seen == [[1, 2, 3], [1, 2, 2, 3]]
    assert report.status == "audits failed"
    assert [failure.audit for failure in report.failures] == ["unique(db.orders, id)"]
    assert state(lake) == ([1, 2], [10])
    assert ids(lake, ORDERS, "daily-1") == [1, 2, 2, 3]


def test_main_that_never_rests_ends_in_a_refusal(spark: SparkSession, lake: Lake) -> None:
    def busy(_: Run) -> None:
        lake.load_table(ORDERS).append(pa.table({"id": [9], "amount": [9]}))

    with pytest.raises(TablesRefusedError, match="both have moved on"):
        quick(spark, lake, audits=[check("busy", busy)]).run("1")
    assert state(lake) == ([1, 9, 9, 9, 9, 9], [10])
    report = quick(spark, lake).run("1")
    assert report.status == "published"
    assert [s.what for s in report.steps] == ["written before", "written before"]
    assert state(lake) == ([1, 2, 3, 9, 9, 9, 9, 9], [10, 20, 30])


def test_branch_that_moved_after_its_audits_is_not_published(spark: SparkSession, lake: Lake) -> None:
    def late(run: Run) -> None:
        lake.load_table(ITEMS).append(pa.table({"id": [7], "order_id": [1]}), branch=run.branch)

    with pytest.raises(TablesRefusedError, match="another commit moved it"):
        quick(spark, lake, audits=[check("late", late)]).run("1")
    assert state(lake) == BEFORE


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tables": []}, "expected at least one table, found none"),
        ({"tables": [ORDERS, ORDERS]}, "found `db.orders` twice"),
        ({"audits": [row_count(ORDERS), row_count(ORDERS)]}, "found `row_count(db.orders)` twice"),
        ({"audits": ["id > 0"]}, "expected an audit, found 'id > 0'"),
        ({"audits": row_count(ORDERS)}, "expected a list of audits"),
        ({"steps": ["INSERT"]}, "expected a mapping of steps"),
        ({"steps": {"load": 3}}, "expected SQL or a function for step `load`, found 3"),
    ],
)
def test_what_cannot_be_a_pipeline_is_refused(
    spark: SparkSession, lake: Lake, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        pipeline(spark, lake, **changes)
    assert said in str(caught.value)


def existing_tag(lake: Lake) -> None:
    lake.tag("v1", [ITEMS])


def tag_named_as_the_branch(lake: Lake) -> None:
    lake.tag("daily-1", [ITEMS])


def opt_out(lake: Lake) -> None:
    lake.load_table(ITEMS).set_properties({"write.wap.enabled": "false"})


def nothing(_: Lake) -> None:
    pass


@pytest.mark.parametrize(
    ("prepare", "changes", "wish", "kind", "said"),
    [
        (nothing, {"tables": [ORDERS, "db.itms"]}, {}, NotFoundError, "db.itms"),
        (nothing, {"audits": [row_count("db.other")]}, {}, NotFoundError, "no table `db.other` in the pipeline"),
        (nothing, {"audits": [unique(ORDERS, "ids")]}, {}, NotFoundError, "no column `ids` in `db.orders`"),
        (nothing, {}, {"tag": "daily-1"}, InvalidInputError, "found that of branch `daily-1`"),
        (nothing, {}, {"tag": ""}, InvalidInputError, "ref name of 1 to 255"),
        (existing_tag, {}, {"tag": "v1"}, AlreadyExistsError, "tag `v1` of `db.items` exists already"),
        (tag_named_as_the_branch, {}, {}, RefusedError, "it is a tag"),
        (opt_out, {}, {}, RefusedError, "`write.wap.enabled` is `false`"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    spark: SparkSession,
    lake: Lake,
    prepare: Callable[[Lake], None],
    changes: dict[str, Any],
    wish: dict[str, Any],
    kind: type[Exception],
    said: str,
) -> None:
    prepare(lake)
    before = {name: lake.load_table(name).metadata_location for name in (ORDERS, ITEMS)}
    with pytest.raises(kind) as caught:
        pipeline(spark, lake, **changes).run("1", **wish)
    assert said in str(caught.value)
    assert {name: lake.load_table(name).metadata_location for name in before} == before


def test_session_must_run_and_lake_be_open_and_attached(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    bergline.spark.detach(spark)
    with pytest.raises(InvalidInputError, match="expected a session that Lake"):
        pipeline(spark, lake).run("1")
    bergline.spark.attach(spark, lake)
    with pytest.raises(InvalidInputError, match="expected a name for the run"):
        pipeline(spark, lake).run("")
    with monkeypatch.context() as patch:
        patch.setattr(spark.sparkContext, "_jsc", None)  # what stop() leaves behind, without ending other tests
        with pytest.raises(InvalidInputError, match="expected a running Spark session"):
            pipeline(spark, lake).run("1")
    assert "daily-1" not in lake.load_table(ORDERS).refs
    lake.close()
    with pytest.raises(InvalidInputError, match="expected an open lake"):
        pipeline(spark, lake).run("1")


def test_empty_tables_get_their_first_rows_by_a_pipeline(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("db.new", pa.schema([("id", pa.int64())]))
    done = Pipeline(spark, lake, "new", tables=["db.new"], steps={"load": "INSERT INTO db.new VALUES (5)"}).run("1")
    assert done.is_published
    assert ids(lake, "db.new") == [5]


def test_audits_in_sql_see_the_branch(spark: SparkSession, lake: Lake) -> None:
    audit = query("no order 3", "SELECT * FROM db.orders WHERE id = 3")
    (failure,) = pipeline(spark, lake, audits=[audit]).run("1").failures
    assert failure.sample == ({"id": 3, "amount": 30},)
