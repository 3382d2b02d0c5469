"""Frames and views that are kept: they have the rows of their tables as they are when an action runs."""

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

import bergline.spark
from bergline import Lake, Table
from bergline.errors import UnsupportedError
from bergline.spark.reads.following import STATES, FollowedRead
from bergline.spark.reads.relations import KEPT
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark

MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}


@pytest.fixture(autouse=True)
def _without_views(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("v", "w"):
        spark.catalog.dropTempView(name)


def ids(rows: DataFrame) -> list[int]:
    """The ids of a frame's rows, by a query of its own."""
    return sorted(row.id for row in rows.select("id").collect())


def test_kept_frames_and_what_is_made_of_them_read_anew(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    kept = spark.table("db.orders")
    frames = {
        "as it is": kept,
        "filtered": kept.filter("id > 0"),
        "made of columns": kept.select("id", (kept.amount * 2).alias("twice")),
        "of SQL": spark.sql("SELECT * FROM db.orders WHERE amount > 0"),
        "loaded": spark.read.format("iceberg").load("db.orders"),
        "joined": kept.join(spark.table("db.orders").select("id"), "id"),
        "of a subquery": spark.sql("SELECT id FROM db.orders WHERE id IN (SELECT id FROM db.orders)"),
    }
    assert {name: ids(frame) for name, frame in frames.items()} == {name: [1] for name in frames}
    spark.sql("INSERT INTO db.orders SELECT id + 1, amount, region FROM db.orders")
    assert {name: ids(frame) for name, frame in frames.items()} == {name: [1, 2] for name in frames}
    orders.refresh().append(order_rows(3))  # as another writer would
    orders.delete("id = 1")
    assert {name: ids(frame) for name, frame in frames.items()} == {name: [2, 3] for name in frames}
    assert kept.count() == kept.filter("id > 1").count() == len(kept.where("amount > 0").toPandas()) == 2


def test_an_executed_frame_keeps_its_plan_as_in_spark(spark: SparkSession, orders: Table) -> None:
    kept = spark.table("db.orders").filter("id > 0")
    orders.append(order_rows(1))
    assert len(kept.collect()) == 1
    orders.append(order_rows(2))
    assert len(kept.collect()) == 1  # PySpark runs the plan of this very frame again
    assert kept.count() == kept.select("*").count() == 2


def test_pinned_frames_stay_what_they_are(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("b")
    snapshot = orders.refresh().current_snapshot
    assert snapshot is not None
    pinned = [
        spark.sql(f"SELECT id FROM db.orders VERSION AS OF {snapshot.snapshot_id}"),
        spark.read.option("snapshot-id", snapshot.snapshot_id).table("db.orders"),
        bergline.spark.read(orders.scan(), spark),
        spark.sql("SELECT id FROM db.orders VERSION AS OF 'b'"),
    ]
    orders.append(order_rows(2))
    assert [ids(frame) for frame in pinned] == [[1]] * 4


@pytest.mark.parametrize(
    "create",
    [
        lambda spark: spark.sql("CREATE TEMP VIEW v AS SELECT * FROM db.orders WHERE id > 0"),
        lambda spark: spark.table("db.orders").createOrReplaceTempView("v"),
        lambda spark: spark.sql("SELECT * FROM db.orders").createOrReplaceTempView("v"),
    ],
)
def test_temporary_views_follow_their_tables(
    spark: SparkSession, orders: Table, create: Callable[[SparkSession], object]
) -> None:
    create(spark)
    assert ids(spark.table("v")) == []  # a table without files
    orders.append(order_rows(1, 2))
    assert ids(spark.sql("SELECT * FROM v")) == [1, 2]
    spark.sql("CREATE TEMP VIEW w AS SELECT count(*) AS id FROM v")
    spark.sql("DELETE FROM db.orders WHERE id = 1")
    assert ids(spark.table("v")) == [2]
    assert ids(spark.table("w")) == [1]


def test_a_view_of_nothing_but_aggregates_follows_too(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("CREATE TEMP VIEW v AS SELECT count(*) AS id FROM db.orders")
    orders.append(order_rows(2))
    assert ids(spark.table("v")) == [2]


@pytest.mark.kinds(2)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_rows_that_are_deleted_later_are_left_out(
    spark: SparkSession, lake: Lake, version: int, vectorized: str
) -> None:
    setting = "spark.sql.parquet.enableVectorizedReader"
    table = lake.create_table("db.t", ORDERS, properties={"format-version": str(version), **MERGE_ON_READ})
    table.append(order_rows(*range(100)))
    spark.conf.set(setting, vectorized)
    try:
        before = spark.table("db.t")
        assert before.count() == 100
        spark.sql("DELETE FROM db.t WHERE id % 10 = 3")
        between = spark.table("db.t")
        assert before.count() == between.count() == 90
        spark.sql("DELETE FROM db.t WHERE id % 10 = 7")
        table.refresh().append(order_rows(100))
        expected = [*(n for n in range(100) if n % 10 not in {3, 7}), 100]
        assert ids(before) == ids(between) == ids(spark.sql("SELECT * FROM db.t")) == expected
    finally:
        spark.conf.unset(setting)


def test_filters_choose_among_the_files_that_there_are_now(spark: SparkSession, orders: Table) -> None:
    kept = spark.table("db.orders")
    for number in range(4):
        orders.append(order_rows(number))
    found = kept.select("id", "region").filter("id = 2")
    assert [row.id for row in found.collect()] == [2]
    scan = found._jdf.queryExecution().executedPlan().collectLeaves().head()
    assert scan.metrics().apply("numFiles").value() == 1
    assert ids(kept) == [0, 1, 2, 3]


def test_what_has_grown_is_not_broadcast(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    kept = spark.table("db.orders")
    joined = kept.select("id").join(spark.range(1000, numPartitions=2).toDF("id"), "id")
    settings = {"spark.sql.autoBroadcastJoinThreshold": "1500", "spark.sql.adaptive.enabled": "false"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert [row.id for row in joined.collect()] == [1]
        again = kept.select("id").join(spark.range(1000, numPartitions=2).toDF("id"), "id")
        for first in range(2, 12):
            orders.append(order_rows(first))
        assert sorted(row.id for row in again.collect()) == list(range(1, 12))
        plans = [one._jdf.queryExecution().executedPlan().toString() for one in (joined, again)]
        assert ["Broadcast" in plan for plan in plans] == [True, False]
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_one_query_sees_one_state_of_a_table_while_others_write(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64())])
    table = lake.create_table("db.t", schema).append(pa.table({"id": [0]}, schema))
    one, other = spark.table("db.t"), spark.sql("SELECT * FROM db.t WHERE id >= 0")
    other.createOrReplaceTempView("v")
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            table.append(pa.table({"id": [number]}, schema))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = []
        for _ in range(4):
            both = one.alias("a").join(other.alias("b").hint("merge"), F.expr("a.id = b.id"), "full_outer")
            assert both.where("a.id IS NULL OR b.id IS NULL").count() == 0
            counts = "SELECT (SELECT count(*) FROM v) a, count(*) b, (SELECT max(id) FROM db.t) c FROM v"
            row = spark.sql(counts).first()
            assert row is not None
            assert row.a == row.b == row.c + 1
            seen.append(row.a)
        assert seen[0] < seen[-1]
    finally:
        done.set()
        writer.join()


def test_rows_without_a_query_are_those_of_which_a_frame_was_made(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    kept = spark.table("db.orders")
    orders.append(order_rows(2))
    assert [row.id for row in kept.rdd.collect()] == [1]
    assert sorted(row.id for row in spark.table("db.orders").rdd.collect()) == [1, 2]


def test_a_function_of_a_stream_sees_what_it_wrote(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    spark.range(1).write.parquet(f"{tmp_path}/source")
    counts: list[int] = []

    def carry_out(_: DataFrame, __: int) -> None:
        for number in (1, 2):
            counts.append(spark.table("db.orders").count())
            spark.sql(f"INSERT INTO db.orders VALUES ({number}, 1.0, 'eu')")
            counts.append(spark.sql("SELECT id FROM db.orders").count())

    stream = spark.readStream.schema("id bigint").parquet(f"{tmp_path}/source").writeStream.foreachBatch(carry_out)
    stream.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    assert counts == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ("DROP COLUMN region", "COLUMNS_MISMATCH"),
        ("RENAME COLUMN region TO place", "COLUMNS_MISMATCH"),
        ("ALTER COLUMN small TYPE BIGINT", "COLUMNS_MISMATCH"),
        ("ADD COLUMN more INT", None),
    ],
)
def test_columns_that_changed_meanwhile(spark: SparkSession, change: str, condition: str | None) -> None:
    spark.sql("CREATE TABLE db.t (id BIGINT, region STRING, small INT) USING iceberg")
    spark.sql("INSERT INTO db.t VALUES (1, 'eu', 2)")
    kept = spark.table("db.t")
    kept.createOrReplaceTempView("v")
    spark.sql(f"ALTER TABLE db.t {change}")
    spark.sql("INSERT INTO db.t SELECT * FROM db.t")
    if condition is None:
        assert kept.select("*").collect() == [(1, "eu", 2)] * 2
        return
    for frame in (kept, kept.select("id"), spark.table("v")):
        with pytest.raises(AnalysisException) as caught:
            frame.collect()
        assert caught.value.getCondition() == f"INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS.{condition}"


def test_a_table_that_is_gone_or_another(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    kept = spark.table("db.orders")
    spark.sql("DROP TABLE db.orders")
    with pytest.raises(AnalysisException, match=r"no table `db\.orders`") as caught:
        kept.count()
    assert caught.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
    lake.create_table("db.orders", ORDERS)
    with pytest.raises(AnalysisException, match="another table of this name") as caught:
        kept.count()
    assert caught.value.getCondition() == "INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS.TABLE_ID_MISMATCH"


def test_what_cannot_follow_stays_as_it_was_made(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("u", pa.uuid())])  # Spark's own reader knows no such type
    table = lake.create_table("db.u", schema)
    rows = [pa.Table.from_pylist([{"id": n, "u": UUID(int=n).bytes}], schema) for n in (1, 2, 3)]
    table.append(rows[0])
    kept, numbers = spark.table("db.u"), spark.sql("SELECT id FROM db.u")
    table.append(rows[1])
    assert ids(kept) == [1]
    assert ids(spark.table("db.u")) == [1, 2]
    assert [tuple(row) for row in kept.select("id").join(numbers, "id", "full").collect()] == [(1,)]


def test_what_cannot_follow_says_so(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    kept = spark.table("db.orders")
    assert ids(kept) == [1, 2, 3]
    add_deletes(orders, equality_deletes(orders, pa.table({"id": pa.array([2], pa.int64())}), [1]))
    with pytest.raises(UnsupportedError, match=r"cannot read table `db\.orders` by what was made before it changed"):
        ids(kept)
    by_keys = spark.table("db.orders")
    assert ids(by_keys) == ids(spark.sql("SELECT * FROM db.orders")) == [1, 3]
    orders.refresh().append(order_rows(4))
    assert ids(by_keys) == [1, 3]  # it has the state of which it was made
    assert ids(spark.table("db.orders")) == [1, 3, 4]


def test_nothing_is_held_after_a_frame_is_gone(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    kept = spark.table("db.orders")
    orders.append(order_rows(2))
    assert ids(kept) == [1, 2]
    found = [one for one in gc.get_objects() if isinstance(one, FollowedRead)]
    reads = [weakref.ref(one) for one in found if one.scan.table_identity == orders.metadata.table_uuid]
    assert reads
    del found
    del kept
    KEPT.clear()
    java = spark.sparkContext._jvm.java.lang.System
    until = time.monotonic() + 30
    while any(ref() for ref in reads) and time.monotonic() < until:
        gc.collect()
        java.gc()
        java.runFinalization()
        time.sleep(0.1)
    assert not any(ref() for ref in reads)
    spark.table("db.orders").count()
    assert len(STATES) <= 2
