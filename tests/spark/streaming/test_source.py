"""Lake tables as sources of streaming queries."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.streams import run_query

pytestmark = pytest.mark.spark

Batches = dict[int, list[int]]


class Query:
    """Runs streaming queries with one checkpoint, one run after the other, and notes the ids in each batch."""

    def __init__(self, directory: Path) -> None:
        self.checkpoint = directory / "checkpoint"
        self.batches: Batches = {}

    def run(self, frame: DataFrame, **trigger: Any) -> Batches:
        """The batches of one run, until all is read."""
        self.batches = {}

        def note(rows: DataFrame, number: int) -> None:
            self.batches[number] = sorted(row.id for row in rows.collect())

        writer = frame.writeStream.foreachBatch(note).option("checkpointLocation", str(self.checkpoint))
        writer = writer.trigger(**(trigger or {"availableNow": True}))
        run_query(writer.start, until="processAllAvailable" if "processingTime" in trigger else "awaitTermination")
        return {number: found for number, found in self.batches.items() if found}


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """A query that has not run yet."""
    return Query(tmp_path)


@pytest.fixture
def table(orders: Table) -> Table:
    """Three appends of a row each."""
    return orders.append(order_rows(1)).append(order_rows(2)).append(order_rows(3))


READS: tuple[Callable[[SparkSession], DataFrame], ...] = (
    lambda spark: spark.readStream.format("iceberg").load("db.orders"),
    lambda spark: spark.readStream.table("db.orders"),
    lambda spark: spark.readStream.format("ICEBERG").option("path", "db.orders").load(),
    lambda spark: spark.readStream.load("lake.db.orders", format="iceberg"),
    lambda spark: spark.readStream.format("iceberg").table("lake.db.orders"),
)


def test_every_way_to_name_a_table(spark: SparkSession, table: Table, query: Query) -> None:
    frames = [read(spark) for read in READS]
    assert all(frame.isStreaming for frame in frames)
    assert {str(frame.schema) for frame in frames} == {str(spark.table("db.orders").schema)}
    assert query.run(functools.reduce(DataFrame.unionAll, frames[:2])) == {0: [1, 1, 2, 2, 3, 3]}


def test_restarted_query_reads_only_what_is_new(spark: SparkSession, table: Table, query: Query) -> None:
    frame = spark.readStream.table("db.orders")
    assert query.run(frame) == {0: [1, 2, 3]}
    assert query.run(frame) == {}
    table.append(order_rows(4))
    table.compact()
    table.append(order_rows(5))
    assert query.run(frame) == {1: [4, 5]}


def test_limits_bound_each_batch(spark: SparkSession, table: Table, query: Query) -> None:
    limited = spark.readStream.option("streaming-max-files-per-micro-batch", 2).table("db.orders")
    assert query.run(limited, processingTime="0 seconds") == {0: [1, 2], 1: [3]}
    table.append(order_rows(4)).append(order_rows(5)).append(order_rows(6))
    by_rows = spark.readStream.option("streaming-max-rows-per-micro-batch", 1).table("db.orders")
    assert query.run(by_rows, processingTime="0 seconds") == {2: [4], 3: [5], 4: [6]}


def test_trigger_available_now_reads_everything_in_spite_of_limits(
    spark: SparkSession, table: Table, query: Query
) -> None:
    limited = spark.readStream.option("streaming-max-files-per-micro-batch", "1").table("db.orders")
    assert query.run(limited) == {0: [1, 2, 3]}
    table.append(order_rows(4)).append(order_rows(5))
    assert query.run(limited, once=True) == {1: [4, 5]}


def test_table_that_is_empty_at_first(spark: SparkSession, orders: Table, query: Query) -> None:
    frame = spark.readStream.table("db.orders")
    assert query.run(frame) == {}
    orders.append(order_rows(1))
    (found,) = query.run(frame).values()
    assert found == [1]


def test_stream_from_a_time_on(spark: SparkSession, table: Table, query: Query) -> None:
    second = table.metadata.snapshots[1].timestamp_ms
    frame = spark.readStream.option("stream-from-timestamp", str(second)).format("iceberg").load("db.orders")
    expected = [s.timestamp_ms >= second for s in table.metadata.snapshots].index(True) + 1
    assert query.run(frame) == {0: list(range(expected, 4))}


def test_removed_rows_are_refused_or_skipped(spark: SparkSession, table: Table, query: Query) -> None:
    table.delete("id = 2").append(order_rows(4))
    deleted = table.metadata.snapshots[3].snapshot_id
    with pytest.raises(StreamingQueryException, match=f"cannot stream delete snapshot {deleted} of") as raised:
        query.run(spark.readStream.table("db.orders"))
    assert "option `streaming-skip-delete-snapshots` = `true` skips such snapshots" in str(raised.value)
    skipping = spark.readStream.option("streaming-skip-delete-snapshots", True).table("db.orders")
    assert query.run(skipping) == {0: [1, 2, 3, 4]}
    table.overwrite(order_rows(9)).append(order_rows(5))
    with pytest.raises(StreamingQueryException, match="cannot stream overwrite snapshot"):
        query.run(skipping)
    both = spark.readStream.options(
        **{"streaming-skip-delete-snapshots": True, "streaming-skip-overwrite-snapshots": True}
    )
    assert list(query.run(both.table("db.orders")).values()) == [[5]]


def test_branches(spark: SparkSession, table: Table, query: Query) -> None:
    table.refs.create_branch("b")
    table.append(order_rows(7), branch="b")
    table.append(order_rows(4))
    assert query.run(spark.readStream.option("branch", "b").table("db.orders")) == {0: [1, 2, 3, 7]}
    table.append(order_rows(8), branch="b")
    assert query.run(spark.readStream.table("db.orders.branch_b")) == {1: [8]}
    table.append(order_rows(9), branch="b")
    spark.conf.set("spark.wap.branch", "b")
    assert query.run(spark.readStream.table("db.orders")) == {2: [9]}


def test_columns_are_those_of_the_start(spark: SparkSession, table: Table, query: Query) -> None:
    frame = spark.readStream.table("db.orders")
    assert query.run(frame) == {0: [1, 2, 3]}
    with table.update_schema() as update:
        update.rename_column("amount", "price").add_column("note", "string")
    table.append(order_rows(4).rename_columns(["id", "price", "region"]))
    assert frame.columns == ["id", "amount", "region"]
    assert query.run(frame.where("amount = 40.0")) == {1: [4]}
    table.append(order_rows(5).rename_columns(["id", "price", "region"]))
    assert query.run(spark.readStream.table("db.orders").where("price = 50.0 AND note IS NULL")) == {2: [5]}


def test_rows_of_every_kind_of_column(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("price", pa.decimal128(9, 2)),
            ("key", pa.uuid()),
            ("tags", pa.list_(pa.string())),
            ("where", pa.struct([("x.y", pa.float32())])),
            ("counts", pa.map_(pa.string(), pa.int32())),
        ]
    )
    lake.create_table("db.kinds", schema, partition_by=["day(at)"])
    spark.sql(
        "INSERT INTO db.kinds VALUES (1, TIMESTAMP '2026-01-02 03:04:05.123456', DATE '2026-01-02', 1.25, "
        "'00000000-0000-0000-0000-000000000001', array('a', null), named_struct('x.y', 1.5f), map('k', 1)), "
        "(2, null, null, null, null, null, null, null)"
    )
    found: list[Any] = []
    writer = spark.readStream.table("db.kinds").writeStream.foreachBatch(lambda rows, _: found.extend(rows.collect()))
    run_query(writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start)
    assert sorted(found) == sorted(spark.table("db.kinds").collect())


def test_stateful_queries_run_on_it(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    counts = spark.readStream.table("db.orders").groupBy("region").count()
    writer = counts.writeStream.format("memory").queryName("counted").outputMode("complete")
    run_query(writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start)
    assert [tuple(row) for row in spark.sql("SELECT * FROM counted").collect()] == [("eu", 3)]


def test_start_that_has_expired_is_one_error(spark: SparkSession, table: Table, query: Query) -> None:
    frame = spark.readStream.table("db.orders")
    query.run(frame)
    reached = table.metadata.snapshots[-1].snapshot_id
    table.append(order_rows(4))
    table.expire(snapshot_ids=[reached])
    with pytest.raises(StreamingQueryException, match=f"no snapshot {reached} of .*: it has expired") as raised:
        query.run(frame)
    assert "hint: give the query a new `checkpointLocation`" in str(raised.value)


def test_checkpoint_of_another_table_is_one_error(spark: SparkSession, table: Table, lake: Lake, query: Query) -> None:
    query.run(spark.readStream.table("db.orders"))
    lake.create_table("db.other", ORDERS).append(order_rows(1))
    with pytest.raises(StreamingQueryException, match=r"expected a checkpoint of the table at .*/db/other"):
        query.run(spark.readStream.table("db.other"))


@pytest.mark.parametrize(
    ("read", "error", "message"),
    [
        (lambda r: r.table("db.orders.tag_t"), UnsupportedError, "cannot stream `db.orders` with time travel"),
        (lambda r: r.table("db.orders.files"), UnsupportedError, "cannot stream `db.orders` with time travel"),
        (lambda r: r.option("branch", "t").table("db.orders"), UnsupportedError, "expected a branch .*the tag `t`"),
        (lambda r: r.option("branch", "nope").table("db.orders"), NotFoundError, "no branch `nope`"),
        (lambda r: r.option("tag", "t").table("db.orders"), UnsupportedError, "expected one of the options branch"),
        (
            lambda r: r.option("streaming-max-files-per-micro-batch", 0).table("db.orders"),
            InvalidInputError,
            "expected a whole number from 1 on",
        ),
        (lambda r: r.schema("id INT").format("iceberg").load("db.orders"), UnsupportedError, "expected no schema"),
        (lambda r: r.format("iceberg").load("db.nope"), NotFoundError, "`db.nope`"),
        (lambda r: r.format("iceberg").load("/data/orders"), UnsupportedError, "expected a table name like"),
        (lambda r: r.format("iceberg").load(), InvalidInputError, "expected the name of one table to load"),
    ],
)
def test_bad_input(
    spark: SparkSession, table: Table, read: Callable[[Any], object], error: type[Exception], message: str
) -> None:
    table.refs.create_tag("t")
    with pytest.raises(error, match=message):
        read(spark.readStream)


def test_other_sources_are_sparks(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 8}\n')
    assert Query(tmp_path).run(spark.readStream.schema("id BIGINT").json(str(tmp_path / "in"))) == {0: [8]}
    assert spark.readStream.format("rate").load().isStreaming
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.readStream.table("nowhere.orders")


@pytest.mark.thorough
def test_process_that_plans_and_does_not_start_in_time_is_explained(
    spark: SparkSession, table: Table, query: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "python"
    plans = "*python_streaming_source_runner*"
    slow.write_text(f'#!/bin/sh\ncase "$*" in {plans}) exec sleep 15;; esac\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(slow))
    with pytest.raises(StreamingQueryException, match="failed to connect back") as failed:
        query.run(spark.readStream.table("db.orders"))
    assert any("too busy" in note for note in failed.value.__notes__)
