"""The official Iceberg Spark runtime and bergline on one catalog: the same tables, the same answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.scan.manifests import load_entries, load_manifest_list
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialError, OfficialRuntime

pytestmark = pytest.mark.official

Official = Callable[[str], list[tuple[Any, ...]]]

WIDE_COLUMNS = (
    "id BIGINT NOT NULL, flag BOOLEAN, i INT, f FLOAT, d DOUBLE, dec DECIMAL(12, 3), day DATE, tz TIMESTAMP, "
    "ts TIMESTAMP_NTZ, s STRING, bin BINARY, list ARRAY<INT>, who STRUCT<name: STRING, tags: ARRAY<STRING>>, "
    "m MAP<STRING, DOUBLE>"
)
PARTITIONING = "PARTITIONED BY (days(tz), bucket(4, id), truncate(3, s), flag, dec)"
WIDE_ROWS = """
    (1L, true, -7, CAST(1.5 AS FLOAT), CAST('NaN' AS DOUBLE), CAST(-12.345 AS DECIMAL(12, 3)), DATE '2026-01-02',
     TIMESTAMP '2026-01-02 03:04:05.678901', TIMESTAMP_NTZ '1969-01-02 03:04:05', 'long text, ünïcode 🧊, that is cut',
     X'00ff00ff', array(1, null, 3), named_struct('name', 'x', 'tags', array('a', null)), map('k', -0.0D)),
    (2L, null, null, null, -0.0D, null, null, null, null, null, null, array(), null, map()),
    (3L, false, 2147483647, CAST('-Infinity' AS FLOAT), 1e300D, CAST(0.001 AS DECIMAL(12, 3)), DATE '1969-12-31',
     TIMESTAMP '1969-12-31 23:59:59', null, '', X'', null, named_struct('name', null, 'tags', null), null)"""
METRICS = (
    "partition, record_count, value_counts, null_value_counts, nan_value_counts, "
    "transform_values(lower_bounds, (k, v) -> hex(v)), transform_values(upper_bounds, (k, v) -> hex(v))"
)


def strings(rows: list[Any]) -> list[str]:
    """Rows as text: both sides show values the same way, and NaN equals itself."""
    return sorted(repr([str(v) for v in row]) for row in rows)


@pytest.mark.parametrize("partitioning", ["", PARTITIONING], ids=["unpartitioned", "partitioned"])
def test_each_reads_every_type_that_the_other_writes(
    spark: SparkSession, official: Official, partitioning: str
) -> None:
    spark.sql(f"CREATE TABLE db.ours ({WIDE_COLUMNS}) USING iceberg {partitioning}")
    spark.sql(f"INSERT INTO db.ours VALUES {WIDE_ROWS}")
    official(f"CREATE TABLE db.theirs ({WIDE_COLUMNS}) USING iceberg {partitioning}")
    official(f"INSERT INTO db.theirs VALUES {WIDE_ROWS}")
    shown = "id, flag, i, f, d, dec, day, tz, ts, s, hex(bin), list, to_json(who), to_json(m)"
    expected = strings(official(f"SELECT {shown} FROM db.theirs"))
    assert len(expected) == 3
    assert strings(official(f"SELECT {shown} FROM db.ours")) == expected
    for table in ("ours", "theirs"):
        assert strings([list(r) for r in spark.sql(f"SELECT {shown} FROM db.{table}").collect()]) == expected


def test_metrics_and_bounds_equal_the_official_ones(spark: SparkSession, official: Official) -> None:
    """Per column, the same counts and the same bytes; columns inside lists and maps have none on either side."""
    columns = METRICS.removeprefix("partition, ")
    spark.sql(f"CREATE TABLE db.ours ({WIDE_COLUMNS}) USING iceberg")
    spark.sql(f"INSERT INTO db.ours SELECT /*+ COALESCE(1) */ * FROM VALUES {WIDE_ROWS}")
    official(f"CREATE TABLE db.theirs ({WIDE_COLUMNS}) USING iceberg")
    official(f"INSERT INTO db.theirs SELECT /*+ COALESCE(1) */ * FROM VALUES {WIDE_ROWS}")
    ours = official(f"SELECT {columns} FROM db.ours.files")
    theirs = official(f"SELECT {columns} FROM db.theirs.files")
    assert len(ours) == len(theirs) == 1
    names = ["record_count", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]
    assert dict(zip(names, ours[0], strict=True)) == dict(zip(names, theirs[0], strict=True))


def test_official_reads_main_branch_tag_and_metadata_tables(
    spark: SparkSession, official: Official, orders: Table
) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1", max_ref_age_ms=1000)
    orders.append(order_rows(2)).append(order_rows(3), branch="dev").overwrite(order_rows(4))
    orders.refs.set_retention("dev", min_snapshots_to_keep=3, max_snapshot_age_ms=5)
    for version, expected in {"main": [4], "dev": [1, 2, 3], "v1": [1]}.items():
        query = f"SELECT id FROM db.orders VERSION AS OF '{version}'"
        assert sorted(official(query)) == [(i,) for i in expected]
        assert sorted(tuple(r) for r in spark.sql(query).collect()) == [(i,) for i in expected]
    for table in ("refs", "snapshots", "history"):
        ours = [list(row) for row in spark.sql(f"SELECT * FROM db.orders.{table}").collect()]
        assert strings(ours) == strings(official(f"SELECT * FROM db.orders.{table}"))


def test_we_read_branches_tags_and_overwrites_of_the_official_runtime(official: Official, lake: Lake) -> None:
    official("CREATE TABLE db.t (id BIGINT, region STRING) USING iceberg PARTITIONED BY (region)")
    official("INSERT INTO db.t VALUES (1, 'eu'), (2, 'us')")
    official("ALTER TABLE db.t CREATE TAG v1")
    official("ALTER TABLE db.t CREATE BRANCH dev WITH SNAPSHOT RETENTION 3 SNAPSHOTS")
    official("INSERT INTO db.t.branch_dev VALUES (3, 'eu')")
    official("INSERT OVERWRITE db.t SELECT 4, 'eu'")
    official("DELETE FROM db.t.branch_dev WHERE region = 'us'")
    table = lake.load_table("db.t")
    assert {n: ids(table.scan(ref=n).to_arrow()) for n in table.refs} == {"main": [4], "dev": [1, 3], "v1": [1, 2]}
    assert table.refs["dev"].min_snapshots_to_keep == 3
    assert len(table.scan("region = 'us'", ref="v1").plan().files) == 1


def test_writers_take_turns_and_nothing_is_lost(spark: SparkSession, official: Official, orders: Table) -> None:
    for number in range(0, 6, 3):
        orders.append(order_rows(number))
        official(f"INSERT INTO db.orders VALUES ({number + 1}, 1.0, 'eu')")
        spark.sql(f"INSERT INTO db.orders VALUES ({number + 2}, 1.0, 'eu')")
    assert sorted(official("SELECT id FROM db.orders")) == [(i,) for i in range(6)]
    assert ids(orders.refresh().scan().to_arrow()) == list(range(6))
    assert [s.sequence_number for s in orders.metadata.snapshots] == [1, 2, 3, 4, 5, 6]


def test_entries_resolve_to_the_same_numbers(official: Official, lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    table.append_files(written_files(table, order_rows(1)) + written_files(table, order_rows(2, region="us")))
    official("INSERT INTO db.parts VALUES (3, 1.0, 'us')")
    table.refresh().replace_partitions(written_files(table, order_rows(4, region="us")))
    official("CALL system.rewrite_manifests('db.parts')")
    table.refresh().append(order_rows(5))
    head = table.current_snapshot
    assert head is not None
    ours = [
        (int(e.status), e.snapshot_id, e.sequence_number, e.file_sequence_number, e.data_file.file_path)
        for m in load_manifest_list(table.io, head)
        for e in load_entries(table.io, m, table.metadata)
    ]
    query = (
        "SELECT status, snapshot_id, sequence_number, file_sequence_number, data_file.file_path FROM db.parts.entries"
    )
    assert sorted(ours) == sorted(official(query))
    assert {n for s, _, n, _, _ in ours if s == 0} == {1, 3}


def test_official_expires_and_fast_forwards_what_we_wrote(official: Official, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev", min_snapshots_to_keep=2)
    orders.append(order_rows(2), branch="dev").append(order_rows(3), branch="dev")
    official("CALL system.fast_forward('db.orders', 'main', 'dev')")
    official(
        "CALL system.expire_snapshots(table => 'db.orders', older_than => TIMESTAMP '2099-01-01', retain_last => 1)"
    )
    orders.refresh()
    assert len(orders.metadata.snapshots) == 2
    assert ids(orders.scan().to_arrow()) == [1, 2, 3]


@pytest.mark.parametrize("retain_last", [1, 2])
def test_expiry_keeps_the_same_snapshots_and_deletes_as_many_files(
    spark: SparkSession, official: Official, lake: Lake, retain_last: int
) -> None:
    answers = {}
    for name in ("ours", "theirs"):
        table = lake.create_table(f"db.{name}", ORDERS)
        table.append(order_rows(1)).overwrite(order_rows(2))
        table.refs.create_tag("pin")
        table.append(order_rows(3), branch="dev").overwrite(order_rows(4)).append(order_rows(5))
        table.refs.create_branch("old", at=table.metadata.snapshots[0].snapshot_id, max_ref_age_ms=1)
        call = (
            f"CALL system.expire_snapshots(table => 'db.{name}', older_than => TIMESTAMP '2099-01-01', "
            f"retain_last => {retain_last})"
        )
        before = [s.snapshot_id for s in table.metadata.snapshots]
        counts = tuple(spark.sql(call).collect()[0]) if name == "ours" else official(call)[0]
        left = lake.load_table(f"db.{name}")
        kept = [before.index(s.snapshot_id) for s in left.metadata.snapshots]
        answers[name] = (counts, kept, sorted(left.refs), [len(left.io.list(left.location + d)) for d in ("/data",)])
    assert answers["ours"] == answers["theirs"]


MERGE_ON_READ = ", ".join(f"'write.{op}.mode'='merge-on-read'" for op in ("delete", "update", "merge"))


@pytest.mark.kinds(2)
@pytest.mark.parametrize("partitioning", ["", "PARTITIONED BY (region)", "PARTITIONED BY (bucket(2, id))"])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_deletes_of_the_official_runtime_are_applied(
    spark: SparkSession, official: Official, lake: Lake, partitioning: str, granularity: str
) -> None:
    properties = f"{MERGE_ON_READ}, 'write.delete.granularity'='{granularity}'"
    columns = "id BIGINT, amount DOUBLE, region STRING"
    official(f"CREATE TABLE db.t ({columns}) USING iceberg {partitioning} TBLPROPERTIES ({properties})")
    official("INSERT INTO db.t SELECT id, id * 1.0, if(id % 2 = 0, 'eu', 'us') FROM range(20)")
    official("DELETE FROM db.t WHERE id IN (3, 4)")
    official("INSERT INTO db.t VALUES (3, 33.0, 'eu')")
    official("UPDATE db.t SET amount = -1.0 WHERE id IN (5, 6)")
    official("ALTER TABLE db.t CREATE TAG before_merge")
    official(
        "MERGE INTO db.t USING (SELECT 7L AS id UNION ALL SELECT 100L) s ON db.t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, amount, region) VALUES (s.id, 0.0, 'eu')"
    )
    official("ALTER TABLE db.t RENAME COLUMN amount TO price")
    table = lake.load_table("db.t")
    assert any(planned.deletes for planned in table.scan().plan().files)
    for version in ("main", "before_merge"):
        expected = sorted(official(f"SELECT * FROM db.t VERSION AS OF '{version}'"))
        assert sorted(tuple(r.values()) for r in table.scan(ref=version).to_arrow().to_pylist()) == expected
        assert (
            sorted(tuple(r) for r in spark.sql(f"SELECT * FROM db.t VERSION AS OF '{version}'").collect()) == expected
        )
    table.append(pa.table({"id": [200]}))
    assert sorted(official("SELECT id FROM db.t")) == sorted(
        tuple(r) for r in spark.sql("SELECT id FROM db.t").collect()
    )


ADD_EQUALITY_DELETES = """
jvm = spark._jvm
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "db.t")
ids = spark.sparkContext._gateway.new_array(jvm.int, {count})
for i, field_id in enumerate({ids}):
    ids[i] = field_id
file = (
    jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec()).ofEqualityDeletes(ids)
    .withPath({path!r}).withFormat("PARQUET").withFileSizeInBytes({size}).withRecordCount({rows}).build()
)
table.newRowDelta().addDeletes(file).commit()
"""


def test_equality_deletes_are_applied_to_older_rows_only(
    spark: SparkSession, official: Official, official_runtime: OfficialRuntime, lake: Lake, tmp_path: Path
) -> None:
    """Written with pyarrow and committed by Java's own API, as Flink does it."""
    table = lake.create_table("db.t", ORDERS)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, region="us"))
    with_null = pa.table({"id": [5], "amount": pa.array([None], pa.float64()), "region": ["eu"]})
    table.append(with_null)
    deletes = {
        "by-id": ([1], pa.table({"id": [2, 4]})),
        "by-both": ([2, 3], pa.table({"amount": pa.array([None, 10.0], pa.float64()), "region": ["eu", "us"]})),
    }
    for name, (field_ids, rows) in deletes.items():
        schema = pa.schema(
            [f.with_metadata({"PARQUET:field_id": str(i)}) for f, i in zip(rows.schema, field_ids, strict=True)]
        )
        path = tmp_path / f"{name}.parquet"
        pq.write_table(rows.cast(schema), path)
        code = ADD_EQUALITY_DELETES.format(
            count=len(field_ids), ids=field_ids, path=f"file://{path}", size=path.stat().st_size, rows=rows.num_rows
        )
        official_runtime.python(code)
    table.refresh().append(order_rows(2))
    expected = sorted(official("SELECT id FROM db.t"))
    assert expected == [(1,), (2,), (3,)]
    assert ids(table.scan().to_arrow()) == [1, 2, 3]
    assert sorted(tuple(r) for r in spark.sql("SELECT id FROM db.t").collect()) == expected
    assert ids(table.scan("region = 'eu'", columns=["id"]).to_arrow()) == [1, 2, 3]


def test_official_refuses_the_short_form_of_retention(official: Official, orders: Table) -> None:
    """The difference that docs/differences.md names: bergline accepts the short form."""
    orders.append(order_rows(1))
    with pytest.raises(OfficialError, match="SNAPSHOTS"):
        official("ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS")
