"""The same streams through the official runtime and bergline: equal batches, and checkpoints that serve both."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

NULLABLE = pa.schema([field.with_nullable(True) for field in ORDERS])
"""The official runtime refuses to stream columns that may be null to required ones."""
READ = """
batches, failure = {}, None

def note(rows, number):
    batches[number] = sorted(row.id for row in rows.collect())

writer = spark.readStream.format("iceberg").options(**options).table(table).writeStream.foreachBatch(note)
for attempt in range(4):
    query = writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
        failure = None
        break
    except Exception as error:
        text = str(error)
        failure = "skip" if "streaming-skip-" in text else "expired" if "expired" in text else text
        if "failed to connect back" not in text:  # Spark gives its Python process ten seconds to start
            break
    finally:
        query.stop()
result = failure or [found for _, found in sorted(batches.items()) if found]
"""
WRITE = """
arriving = spark.readStream.schema("id BIGINT, amount DOUBLE, region STRING").json(directory)
if mode == "complete":
    arriving = arriving.groupBy("region").agg(F.count("*").alias("id"), F.sum("amount").alias("amount"))
writer = arriving.select("id", "amount", "region").writeStream.outputMode(mode)
for key, value in options.items():
    writer = writer.option(key, value)
query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).toTable(table)
query.awaitTermination()
result = query.id
"""
HEAD = "from pyspark.sql import functions as F\n"


def ours(spark: SparkSession, code: str, **names: Any) -> Any:
    found: dict[str, Any] = {"spark": spark, **names}
    exec(HEAD + code, found)  # noqa: S102
    return found["result"]


def theirs(official: OfficialRuntime, code: str, **names: Any) -> Any:
    return official.python(HEAD + code, **names)


@pytest.fixture
def table(lake: Lake, official: object) -> Table:
    """Appends of one file, of three and of two, and a compaction and an empty append between."""
    orders = lake.create_table("db.orders", ORDERS)
    orders.append(order_rows(1))
    for several in ((2, 3, 4), (5, 6)):
        orders.append_files([file for n in several for file in written_files(orders, order_rows(n))])
        orders.compact()
    orders.append(order_rows())
    return orders.append(order_rows(7, 8, 9))


@pytest.mark.kinds(2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"streaming-max-files-per-micro-batch": "1"},
        {"streaming-max-files-per-micro-batch": "4"},
        {"streaming-max-rows-per-micro-batch": "2"},
        {"streaming-max-files-per-micro-batch": "3", "streaming-max-rows-per-micro-batch": "2"},
    ],
    ids=str,
)
def test_batches_are_the_same(
    spark: SparkSession, official_runtime: OfficialRuntime, table: Table, tmp_path: Path, options: dict[str, str]
) -> None:
    names = {"table": "db.orders", "options": options}
    expected = theirs(official_runtime, READ, checkpoint=str(tmp_path / "theirs"), **names)
    assert ours(spark, READ, checkpoint=str(tmp_path / "ours"), **names) == expected
    assert sorted(n for batch in expected for n in batch) == list(range(1, 10))


def test_snapshots_that_remove_rows(
    spark: SparkSession, official_runtime: OfficialRuntime, table: Table, tmp_path: Path
) -> None:
    table.delete("id = 2").append(order_rows(10)).overwrite(order_rows(11), "id = 3").append(order_rows(12))
    for number, (deletes, overwrites) in enumerate([(False, True), (True, False), (True, True)]):
        options = {
            "streaming-skip-delete-snapshots": str(deletes).lower(),
            "streaming-skip-overwrite-snapshots": str(overwrites).lower(),
        }
        names = {"table": "db.orders", "options": options}
        expected = theirs(official_runtime, READ, checkpoint=str(tmp_path / f"theirs{number}"), **names)
        assert ours(spark, READ, checkpoint=str(tmp_path / f"ours{number}"), **names) == expected
    assert expected == [[*range(1, 11), 12]]


def test_streams_from_a_time_on(
    spark: SparkSession, official_runtime: OfficialRuntime, table: Table, tmp_path: Path
) -> None:
    moments = [s.timestamp_ms for s in table.metadata.snapshots]
    for number, moment in enumerate([moments[1], moments[1] + 1, moments[-1] + 60_000]):
        names = {"table": "db.orders", "options": {"stream-from-timestamp": str(moment)}}
        expected = theirs(official_runtime, READ, checkpoint=str(tmp_path / f"theirs{number}"), **names)
        assert ours(spark, READ, checkpoint=str(tmp_path / f"ours{number}"), **names) == expected


def test_option_branch_is_honored(
    spark: SparkSession, official_runtime: OfficialRuntime, table: Table, tmp_path: Path
) -> None:
    table.refs.create_branch("b")
    table.append(order_rows(20), branch="b")
    names = {"table": "db.orders", "options": {"branch": "b"}}
    assert ours(spark, READ, checkpoint=str(tmp_path / "ours"), **names) == [[*range(1, 10), 20]]
    # docs/differences.md
    assert theirs(official_runtime, READ, checkpoint=str(tmp_path / "theirs"), **names) == [[*range(1, 10)]]


def test_each_goes_on_from_the_checkpoint_of_the_other(
    spark: SparkSession, official_runtime: OfficialRuntime, table: Table, tmp_path: Path
) -> None:
    names = {"table": "db.orders", "options": {}, "checkpoint": str(tmp_path / "shared")}
    assert theirs(official_runtime, READ, **names) == [[*range(1, 10)]]
    table.append(order_rows(10))
    assert ours(spark, READ, **names) == [[10]]
    table.append(order_rows(11))
    assert theirs(official_runtime, READ, **names) == [[11]]
    table.append(order_rows(12)).append(order_rows(13))
    table.expire(snapshot_ids=[s.snapshot_id for s in table.metadata.snapshots[-3:-1]])
    assert theirs(official_runtime, READ, **names) == ours(spark, READ, **names) == "expired"


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_both_write_streams_in_the_same_way(
    spark: SparkSession, official_runtime: OfficialRuntime, lake: Lake, official: object, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "in").mkdir()
    tables = {name: lake.create_table(f"db.{name}", NULLABLE, partition_by=["region"]) for name in ("mine", "other")}
    keys = ("operation", "added-records", "deleted-records", "changed-partition-count", "spark.sql.streaming.epochId")
    found = {}
    for number, line in enumerate(['{"id": 1, "amount": 2.5, "region": "eu"}', '{"id": 2, "region": "us"}']):
        (tmp_path / "in" / f"{number}.json").write_text(line)
        for name, table in tables.items():
            names = {"table": f"db.{name}", "mode": mode, "options": {}, "directory": str(tmp_path / "in")}
            names["checkpoint"] = str(tmp_path / name)
            run = ours(spark, WRITE, **names) if name == "mine" else theirs(official_runtime, WRITE, **names)
            snapshots = table.refresh().metadata.snapshots
            assert snapshots[-1].summary["spark.sql.streaming.queryId"] == run
            found[name] = [[s.summary.get(key) for key in keys] for s in snapshots]
    assert found["mine"] == found["other"]
    assert len(found["mine"]) == 2
    mine, other = (table.scan().to_arrow().sort_by("region") for table in tables.values())
    assert mine == other


def test_batch_that_one_committed_is_not_committed_again_by_the_other(
    spark: SparkSession, official_runtime: OfficialRuntime, lake: Lake, official: object, tmp_path: Path
) -> None:
    table = lake.create_table("db.orders", NULLABLE)
    (tmp_path / "in").mkdir()
    names = {"table": "db.orders", "mode": "append", "options": {}, "directory": str(tmp_path / "in")}
    names["checkpoint"] = str(tmp_path / "shared")

    def forget(number: int) -> None:
        (tmp_path / "shared" / "commits" / str(number)).unlink()
        (tmp_path / "shared" / "commits" / f".{number}.crc").unlink(missing_ok=True)

    (tmp_path / "in" / "0.json").write_text('{"id": 1, "amount": 2.5, "region": "eu"}')
    theirs(official_runtime, WRITE, **names)
    forget(0)
    ours(spark, WRITE, **names)
    (tmp_path / "in" / "1.json").write_text('{"id": 2, "amount": 2.5, "region": "eu"}')
    ours(spark, WRITE, **names)
    forget(1)
    theirs(official_runtime, WRITE, **names)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]
    assert len(table.metadata.snapshots) == 2
