"""Write, audit, publish over two tables: readers of `main` see all of a run or nothing of it."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake
from bergline.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    ProtectedRefError,
    RefusedError,
    TablesRefusedError,
)
from bergline.spark import Pipeline
from bergline.spark.audits import check, in_range, row_count, unique
from bergline.spark.pipeline.run import Run
from support.fixtures.daily_pipeline import (
    AFTER,
    BEFORE,
    ITEMS,
    ORDERS,
    STEPS,
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


def test_pipeline_publishes_into_a_protected_main_and_others_do_not(spark: SparkSession, lake: Lake) -> None:
    for name in (ORDERS, ITEMS):
        lake.load_table(name).refs.protect("main", only_publish=True, fast_forward_only=True)
    with pytest.raises(IllegalArgumentException, match=r"branch `main` of table `db\.orders` is protected") as caught:
        spark.sql("INSERT INTO db.orders VALUES (9, 9)")
    assert isinstance(caught.value, ProtectedRefError)
    assert state(lake) == BEFORE
    assert pipeline(spark, lake).run("1").status == "published"
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
