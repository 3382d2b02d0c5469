"""Branches, tags and expiry in SQL, from their creation to their end, on a plain PySpark session."""

import re
import time

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import RefusedError
from support.fixtures.rows import ids

pytestmark = pytest.mark.spark


@pytest.fixture
def catalog(spark: SparkSession, lake: Lake) -> Lake:
    """A lake with `db.orders`, which holds one order."""
    spark.sql("CREATE TABLE db.orders (id BIGINT, amount DOUBLE) USING iceberg")
    spark.sql("INSERT INTO db.orders VALUES (1, 10.0)")
    return lake


def order_ids(spark: SparkSession) -> list[int]:
    return sorted(row.id for row in spark.sql("SELECT * FROM db.orders").collect())


def test_branch_lifecycle(spark: SparkSession, catalog: Lake) -> None:
    # -- Create branch
    spark.sql("ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS;")
    assert catalog.load_table("db.orders").refs["staging"].min_snapshots_to_keep == 3

    # -- Write to branch (Spark)
    spark.conf.set("spark.wap.branch", "staging")
    spark.sql("INSERT INTO db.orders VALUES (2, 20.0)")

    # -- Read from branch
    spark.conf.set("spark.wap.branch", "staging")
    assert sorted(row.id for row in spark.sql("SELECT * FROM db.orders").collect()) == [1, 2]

    spark.conf.unset("spark.wap.branch")
    assert order_ids(spark) == [1]

    # -- Fast-forward (merge branch to main by moving the main pointer)
    before = catalog.load_table("db.orders").refs["main"].snapshot_id
    moved = spark.sql("CALL system.fast_forward('db.orders', 'main', 'staging');")
    assert moved.columns == ["branch_updated", "previous_ref", "updated_ref"]
    staging = catalog.load_table("db.orders").refs["staging"].snapshot_id
    assert [tuple(row) for row in moved.collect()] == [("main", before, staging)]
    assert order_ids(spark) == [1, 2]

    # -- Drop branch (doesn't delete data — only the reference)
    files = _data_files(catalog)
    spark.sql("ALTER TABLE db.orders DROP BRANCH staging;")
    assert set(catalog.load_table("db.orders").refs) == {"main"}
    assert _data_files(catalog) == files
    assert order_ids(spark) == [1, 2]


def test_branch_keeps_at_least_the_snapshots_it_retains(spark: SparkSession, catalog: Lake) -> None:
    spark.sql("ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS")
    spark.conf.set("spark.wap.branch", "staging")
    for number in range(2, 7):
        spark.sql(f"INSERT INTO db.orders VALUES ({number}, 1.0)")
    spark.sql("CALL system.expire_snapshots(table => 'db.orders', older_than => now(), retain_last => 1)")
    table = catalog.load_table("db.orders")
    kept = [s.snapshot_id for s in table.metadata.ancestors(table.refs["staging"].snapshot_id)]
    assert len(kept) == 3
    assert order_ids(spark) == [1, 2, 3, 4, 5, 6]


def test_main_always_exists_and_cannot_be_deleted(spark: SparkSession, catalog: Lake) -> None:
    with pytest.raises(RefusedError, match="cannot drop branch `main`") as caught:
        spark.sql("ALTER TABLE db.orders DROP BRANCH main")
    assert isinstance(caught.value, IllegalArgumentException)
    assert "main" in catalog.load_table("db.orders").refs


def test_tag_lifecycle(spark: SparkSession, catalog: Lake) -> None:
    first = catalog.load_table("db.orders").metadata.current_snapshot_id
    spark.sql("INSERT INTO db.orders VALUES (2, 20.0)")

    # -- Create a tag on the current snapshot
    spark.sql("ALTER TABLE db.orders CREATE TAG `v2-release`;")

    # -- Create a tag on a specific snapshot (historical tagging)
    text = """ALTER TABLE db.orders CREATE TAG `2026-q1-final`
AS OF VERSION 8027658604211071520;"""
    spark.sql(text.replace("8027658604211071520", str(first)))

    # -- Read from a tag
    spark.conf.set("spark.wap.branch", "2026-q1-final")
    rows = spark.sql("SELECT * FROM db.orders")  # -- reads the tagged snapshot
    assert [row.id for row in rows.collect()] == [1]
    with pytest.raises(RefusedError, match="`2026-q1-final`: it is a tag, and tags do not move") as caught:
        spark.sql("INSERT INTO db.orders VALUES (3, 30.0)")
    assert isinstance(caught.value, IllegalArgumentException)
    spark.conf.unset("spark.wap.branch")
    assert order_ids(spark) == [1, 2]

    # -- Drop a tag
    spark.sql("ALTER TABLE db.orders DROP TAG `v2-release`;")
    assert set(catalog.load_table("db.orders").refs) == {"main", "2026-q1-final"}


def test_tag_on_an_unknown_snapshot_is_refused(spark: SparkSession, catalog: Lake) -> None:
    with pytest.raises(IllegalArgumentException, match="no snapshot with id 8027658604211071520"):
        spark.sql("ALTER TABLE db.orders CREATE TAG `2026-q1-final` AS OF VERSION 8027658604211071520")


def test_referenced_snapshot_is_never_expired(spark: SparkSession, catalog: Lake) -> None:
    spark.sql("ALTER TABLE db.orders CREATE TAG `compliance-checkpoint-2026-05`")
    for number in (2, 3):
        spark.sql(f"INSERT OVERWRITE db.orders VALUES ({number}, 1.0)")
    time.sleep(0.002)
    answer = spark.sql("CALL system.expire_snapshots('db.orders', now(), 1)").collect()
    assert answer[0].deleted_data_files_count == 1
    spark.conf.set("spark.wap.branch", "compliance-checkpoint-2026-05")
    assert order_ids(spark) == [1]
    spark.conf.unset("spark.wap.branch")
    assert order_ids(spark) == [3]

    spark.sql("ALTER TABLE db.orders DROP TAG `compliance-checkpoint-2026-05`")
    spark.sql("CALL system.expire_snapshots('db.orders', now(), 1)")
    assert len(catalog.load_table("db.orders").metadata.snapshots) == 1
    assert len(_data_files(catalog)) == 1


def test_listing_references(spark: SparkSession, catalog: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    spark.sql("ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS")
    spark.sql("ALTER TABLE db.orders CREATE TAG `v2.0-release` RETAIN 365 DAYS")
    head = catalog.load_table("db.orders").metadata.current_snapshot_id

    # -- Spark: list all snapshot references for a table
    refs = spark.sql("SELECT * FROM db.orders.refs;")
    assert refs.columns == [
        "name",
        "type",
        "snapshot_id",
        "max_reference_age_in_ms",
        "min_snapshots_to_keep",
        "max_snapshot_age_in_ms",
    ]
    assert sorted(tuple(row) for row in refs.collect()) == [
        ("main", "BRANCH", head, None, None, None),
        ("staging", "BRANCH", head, None, 3, None),
        ("v2.0-release", "TAG", head, 31536000000, None, None),
    ]

    table = catalog.load_table("db.orders")

    for ref_name, ref in table.metadata.refs.items():
        print(f"{ref_name}: type={ref.snapshot_ref_type}, snapshot={ref.snapshot_id}")  # noqa: T201

    assert capsys.readouterr().out.splitlines() == [
        f"main: type=branch, snapshot={head}",
        f"staging: type=branch, snapshot={head}",
        f"v2.0-release: type=tag, snapshot={head}",
    ]


def test_insert_overwrite_and_the_snapshots_table(spark: SparkSession, catalog: Lake) -> None:
    spark.sql("INSERT OVERWRITE db.orders SELECT id + 10, amount FROM db.orders")
    assert order_ids(spark) == [11]
    snapshots = spark.sql("SELECT * FROM db.orders.snapshots")
    assert snapshots.columns == ["committed_at", "snapshot_id", "parent_id", "operation", "manifest_list", "summary"]
    first, second = sorted(snapshots.collect(), key=lambda row: row.committed_at)
    assert (first.operation, second.operation) == ("append", "overwrite")
    assert second.parent_id == first.snapshot_id
    assert second.summary["deleted-data-files"] == "1"


def test_metadata_files_are_immutable_and_one_pointer_names_the_current_one(spark: SparkSession, catalog: Lake) -> None:
    before = catalog.load_table("db.orders")
    content = before.io.read(before.metadata_location)
    spark.sql("INSERT INTO db.orders VALUES (2, 20.0)")
    after = catalog.load_table("db.orders")
    assert before.io.read(before.metadata_location) == content
    versions = [int(re.search(r"/(\d+)-[^/]*$", t.metadata_location)[1]) for t in (before, after)]  # type: ignore[index]
    assert versions[1] == versions[0] + 1
    assert after.metadata.metadata_log[-1].metadata_file == before.metadata_location
    assert ids(after.scan().to_arrow()) == [1, 2]


def _data_files(lake: Lake) -> list[str]:
    table: Table = lake.load_table("db.orders")
    return [f for f in table.io.list(table.location) if f.endswith(".parquet")]
