"""Changes as frames, as views and as `db.orders.changes`: the same rows as in Python."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.table.scans.changelog_scan import ChangelogRange
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def log(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """A table with all kinds of changes after the tag `start`."""
    version, mode = getattr(request, "param", ("3", "merge-on-read"))
    properties = {"format-version": version, "write.delete.mode": mode}
    table = lake.create_table("db.log", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 4, 5, region="us"))
    table.refs.create_tag("start")
    table.delete("id = 2").append(order_rows(2, 6))
    table.overwrite(order_rows(1, 7, 7).set_column(1, "amount", pa.array([-0.0, 0.0, None])), "id = 1")
    table.compact()
    add_deletes(table, equality_deletes(table, pa.table({"id": [7]}), [1], ("eu",)))
    table.overwrite(table.scan("region = 'us'").to_arrow().slice(1), "region = 'us'")
    return table


def counted(rows: pa.Table | DataFrame) -> Counter[str]:
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else [row.asDict(recursive=True) for row in rows.collect()]
    return Counter(str(sorted(row.items())) for row in listed)


@pytest.mark.parametrize("log", [("2", "copy-on-write"), ("3", "merge-on-read")], ids="-".join, indirect=True)
def test_a_frame_has_the_changes_that_python_has(spark: SparkSession, log: Table) -> None:
    options: list[dict[str, Any]] = [
        {"net_changes": False},
        {},
        {"identifier_columns": ["id", "amount"]},
        {"identifier_columns": ["id", "amount"], "net_changes": True},
    ]
    for some in options:
        changes = log.changes("start", **some)
        expected = changes.to_arrow()
        frame = bergline.spark.read(changes, spark)
        assert frame.columns == expected.column_names
        assert counted(frame) == counted(expected) != Counter()


def test_update_images_by_row_id(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.ids", ORDERS, properties={"format-version": "3"}).append(order_rows(1, 2, 3))
    table.refs.create_tag("start")
    table.update({"amount": "amount + 1"}, where="id < 3")
    changes = table.changes("start", compute_updates=True)
    assert [(r["_change_type"], r["id"], r["amount"]) for r in changes.to_arrow().to_pylist()] == [
        ("UPDATE_BEFORE", 1, 10.0),
        ("UPDATE_AFTER", 1, 11.0),
        ("UPDATE_BEFORE", 2, 20.0),
        ("UPDATE_AFTER", 2, 21.0),
    ]
    assert counted(bergline.spark.read(changes, spark)) == counted(changes.to_arrow())
    assert spark.sql("CALL system.create_changelog_view('db.ids', compute_updates => true)").collect()
    assert spark.sql("SELECT * FROM ids_changes WHERE _change_type = 'UPDATE_AFTER'").count() == 2


def test_states_of_which_neither_descends_from_the_other(spark: SparkSession, log: Table) -> None:
    log.append(order_rows(8), branch="dev").append(order_rows(9))
    changes = log.changes("main", "dev")
    assert counted(bergline.spark.read(changes, spark)) == counted(changes.to_arrow())


def test_the_changes_table_has_everything_that_snapshots_did(spark: SparkSession, log: Table) -> None:
    expected = log.scan_changes(ChangelogRange()).to_arrow()
    assert counted(spark.sql("SELECT * FROM db.log.changes")) == counted(expected)
    assert counted(spark.table("lake.db.log.changes")) == counted(expected)
    some = spark.sql("SELECT id FROM db.log.changes WHERE id > 5 AND _change_type = 'INSERT'")
    assert sorted(row.id for row in some.collect()) == [6, 7, 7]
    assert spark.sql("SELECT _change_ordinal FROM db.log.changes WHERE _file LIKE '%parquet'").count() > 0
    names = [row.col_name for row in spark.sql("DESCRIBE db.log.changes").collect()]
    assert names == [*ORDERS.names, "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert spark.sql("SELECT count(*) FROM db.log.changes").first()[0] == expected.num_rows  # type: ignore[index]


def test_options_choose_the_snapshots(spark: SparkSession, log: Table) -> None:
    line = [s.snapshot_id for s in log.metadata.snapshots]

    def read(**options: Any) -> list[int]:
        reader = spark.read.format("iceberg")
        for key, value in options.items():
            reader = reader.option(key.replace("_", "-"), value)
        return sorted({row._change_ordinal for row in reader.table("db.log.changes").collect()})

    assert read(start_snapshot_id=line[1], end_snapshot_id=line[3]) == [0, 1]
    assert read(start_tag="start", end_timestamp=log.metadata.snapshots[2].timestamp_ms) == [0]
    with pytest.raises(
        UnsupportedError, match=r"expected one of the options start-snapshot-id, .*, found `snapshot-id`"
    ):
        read(snapshot_id=line[0])
    with pytest.raises(InvalidInputError, match="expected a whole number for option `start-snapshot-id`"):
        read(start_snapshot_id="x")
    with pytest.raises(InvalidInputError, match="expected no version for `changes`"):
        spark.sql("SELECT * FROM db.log.changes VERSION AS OF 'start'")


def test_a_view_keeps_the_changes_that_it_was_made_of(spark: SparkSession, log: Table) -> None:
    rows = spark.sql("CALL system.create_changelog_view(table => 'db.log', net_changes => true)").collect()
    assert [row.asDict() for row in rows] == [{"changelog_view": "`log_changes`"}]
    expected = counted(log.changes(None).to_arrow())
    log.append(order_rows(100))
    assert counted(spark.sql("SELECT * FROM log_changes")) == expected
    start = log.metadata.ref("start").snapshot_id
    spark.sql(
        "CALL lake.system.create_changelog_view('db.log', 'mine', "
        f"map('start-snapshot-id', '{start}'), true, array('id', 'amount'), false)"
    )
    expected = counted(log.changes("start", identifier_columns=["id", "amount"]).to_arrow())
    assert counted(spark.sql("SELECT * FROM mine")) == expected


def test_a_session_on_a_branch_reads_its_changes(spark: SparkSession, log: Table) -> None:
    log.set_properties({"write.wap.enabled": "true"})
    log.append(order_rows(50), branch="audit")
    spark.conf.set("spark.wap.branch", "audit")
    assert spark.sql("SELECT * FROM db.log.changes WHERE id = 50").count() == 1
    spark.conf.unset("spark.wap.branch")
    assert spark.sql("SELECT * FROM db.log.changes WHERE id = 50").count() == 0


def test_what_cannot_be_a_changelog_view(spark: SparkSession, log: Table) -> None:
    def call(arguments: str) -> DataFrame:
        return spark.sql(f"CALL system.create_changelog_view({arguments})")

    with pytest.raises(NotFoundError, match="no column `nope` to identify rows by"):
        call("'db.log', identifier_columns => array('nope')")
    with pytest.raises(UnsupportedError, match="found `split-sise`"):
        call("'db.log', options => map('split-sise', '1')")
    with pytest.raises(NotFoundError, match="no snapshot with id 7"):
        call("'db.log', options => map('start-snapshot-id', '7')")
    with pytest.raises(InvalidInputError, match="expected a table, found `db"):
        call("'db.log.changes'")
    with pytest.raises(PySparkException):
        call("'db.log', changelog_view => 'no view'")
    log.overwrite(order_rows(70, region="us"), "region = 'us'")
    call("'db.log', 'doubled', identifier_columns => array('region')")
    with pytest.raises(PySparkException, match="expected rows that `region` identify to compute updates"):
        spark.sql("SELECT * FROM doubled").collect()


def test_values_that_spark_compares_otherwise(spark: SparkSession, lake: Lake) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "m": pa.array([[("a", 0.0)], None, [("b", None)]], pa.map_(pa.string(), pa.float64())),
            "s": pa.array([{"x": [0.0]}, {"x": [float("nan")]}, None], pa.struct([("x", pa.list_(pa.float32()))])),
            "b": pa.array([b"a", b"b", None]),
        }
    )
    table = lake.create_table("db.nested", rows.schema).append(rows)
    table.refs.create_tag("start")
    other = pa.array([[("a", -0.0)], None, [("b", None)]], rows.schema.field("m").type)
    table.overwrite(rows.set_column(1, "m", other))
    for options in ({"net_changes": False}, {}, {"identifier_columns": ["id"]}):
        changes = table.changes("start", **options)  # type: ignore[arg-type]
        assert ids(changes.to_arrow()) == [1, 1]
        assert sorted(row.id for row in bergline.spark.read(changes, spark).collect()) == [1, 1]
