"""The same changelogs from the official runtime and from bergline: rows, ordinals and snapshots as multisets."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import BerglineError
from support.servers.peers import OfficialError

pytestmark = pytest.mark.spark

Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def history(official: Sql, lake: Lake) -> list[int]:
    """A table that the official runtime changes, copy-on-write, and the snapshots of it."""
    official(
        "CREATE TABLE db.log (id INT, data STRING, age DOUBLE) USING iceberg PARTITIONED BY (bucket(2, id)) "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'copy-on-write', "
        "'write.update.mode' = 'copy-on-write', 'write.merge.mode' = 'copy-on-write')"
    )
    official("INSERT INTO db.log VALUES (1, 'a', 1.5), (2, 'b', null), (3, 'c', 3.0), (3, 'c', 3.0), (4, null, 4.0)")
    official("UPDATE db.log SET data = 'bb' WHERE id = 2")
    official("INSERT INTO db.log VALUES (5, 'e', 5.0), (1, 'a', 1.5)")
    official("DELETE FROM db.log WHERE id = 3")
    official("CALL system.rewrite_data_files(table => 'db.log', options => map('rewrite-all', 'true'))")
    official("ALTER TABLE db.log ADD COLUMN note STRING")
    official("UPDATE db.log SET data = 'b', note = 'x' WHERE id = 2")
    official("INSERT OVERWRITE db.log SELECT id, data, age, note FROM db.log WHERE id <> 4")
    official("INSERT INTO db.log VALUES (3, 'c', 3.0, null)")
    return [s.snapshot_id for s in lake.load_table("db.log").metadata.snapshots]


def rows(found: Any) -> Counter[str]:
    return Counter(str([repr(v) for v in row]) for row in found)


def views(spark: SparkSession, official: Sql, arguments: str) -> tuple[Counter[str], Counter[str]]:
    """The changes that both give for the same call."""
    call = f"CALL system.create_changelog_view('db.log'{arguments})"
    ours = [tuple(row) for row in spark.sql(call).collect()]
    assert ours == official(call)
    (name,) = ours[0]
    return rows(tuple(row) for row in spark.sql(f"SELECT * FROM {name}").collect()), rows(
        official(f"SELECT * FROM {name}")
    )


def read_officially(official: Sql, call: str) -> None:
    official(call)
    official("SELECT * FROM log_changes")


def test_changelogs_are_the_official_ones(spark: SparkSession, official: Sql, history: list[int]) -> None:
    first, second, *_, last = history
    for arguments in (
        "",
        ", net_changes => true",
        f", options => map('start-snapshot-id', '{history[3]}'), identifier_columns => array('id')",
        f", options => map('start-snapshot-id', '{second}')",
        f", 'mine', options => map('start-snapshot-id', '{first}', 'end-snapshot-id', '{history[4]}')",
        f", options => map('start-snapshot-id', '{first}', 'end-snapshot-id', '{last}'), net_changes => true",
    ):
        ours, theirs = views(spark, official, arguments)
        assert ours == theirs != Counter(), arguments


def test_the_changes_table_is_the_official_one(
    spark: SparkSession, official: Sql, history: list[int], lake: Lake
) -> None:
    query = "SELECT * FROM db.log.changes"
    assert rows(tuple(row) for row in spark.sql(query).collect()) == rows(official(query))
    query = "SELECT _change_type, count(*) FROM db.log.changes WHERE id > 2 GROUP BY 1"
    assert rows(tuple(row) for row in spark.sql(query).collect()) == rows(official(query))
    query = "DESCRIBE db.log.changes"
    assert [tuple(row)[:2] for row in spark.sql(query).collect()] == [row[:2] for row in official(query)][:7]
    times = [s.timestamp_ms for s in lake.load_table("db.log").metadata.snapshots]
    for start, end in ((times[0], times[3]), (times[0] - 1, times[1] + 1), (times[2], times[-1]), (1, times[0] - 1)):
        options = f", options => map('start-timestamp', '{start}', 'end-timestamp', '{end}')"
        ours, theirs = views(spark, official, options)
        assert ours == theirs


def test_what_both_refuse(spark: SparkSession, official: Sql, history: list[int]) -> None:
    first, _, third, *_ = history
    for arguments, message in (
        (", compute_updates => true", "expected identifier columns to compute update images by, found none"),
        (", options => map('start-snapshot-id', '1', 'start-timestamp', '1')", "expected one start of a changelog"),
        (", options => map('start-timestamp', '5', 'end-timestamp', '4')", "expected a start time before the end time"),
        (
            f", options => map('start-snapshot-id', '{third}', 'end-snapshot-id', '{first}')",
            f"expected a snapshot that descends from {third}",
        ),
        (", options => map('end-snapshot-id', '1')", "no snapshot with id 1"),
    ):
        call = f"CALL system.create_changelog_view(table => 'db.log'{arguments})"
        with pytest.raises(BerglineError, match=message):
            spark.sql(call)
        with pytest.raises(OfficialError):  # some only when the view is read
            read_officially(official, call)


@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_that_the_official_runtime_refuses_are_changes_here(
    spark: SparkSession, official: Sql, lake: Lake, version: str
) -> None:
    modes = ", ".join(f"'write.{command}.mode' = 'merge-on-read'" for command in ("delete", "update", "merge"))
    official(
        f"CREATE TABLE db.mor (id INT, x INT) USING iceberg TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    official("INSERT INTO db.mor VALUES (1, 1), (2, 2), (3, 3)")
    official("DELETE FROM db.mor WHERE id = 1")
    official("UPDATE db.mor SET x = x + 1 WHERE id > 1")
    official("CALL system.rewrite_data_files(table => 'db.mor', options => map('rewrite-all', 'true'))")
    official("DELETE FROM db.mor WHERE id = 3")
    with pytest.raises(OfficialError, match="Delete files are currently not supported in changelog scans"):
        official("SELECT * FROM db.mor.changes")
    spark.sql("CALL system.create_changelog_view('db.mor')")
    found = spark.sql("SELECT id, x, _change_type, _change_ordinal FROM mor_changes WHERE _change_ordinal > 0")
    assert sorted(tuple(row) for row in found.collect()) == [
        (1, 1, "DELETE", 1),
        (2, 2, "DELETE", 2),
        (2, 3, "INSERT", 2),
        (3, 3, "DELETE", 2),
        (3, 4, "DELETE", 3),
        (3, 4, "INSERT", 2),
    ]
    if version == "3":
        spark.sql("CALL system.create_changelog_view('db.mor', compute_updates => true)")
        images = spark.sql("SELECT id, x, _change_type FROM mor_changes WHERE _change_ordinal = 2")
        assert sorted(tuple(row) for row in images.collect()) == [
            (2, 2, "UPDATE_BEFORE"),
            (2, 3, "UPDATE_AFTER"),
            (3, 3, "UPDATE_BEFORE"),
            (3, 4, "UPDATE_AFTER"),
        ]
