"""The smoke set: what must work wherever Spark runs. Each check is a plain function of a session and its lake.

Classic sessions, Spark Connect, a cluster and other versions of PySpark run the same functions. A check makes tables of
its own in namespace `db` and puts the session's settings back, so that all can share one lake.
"""

import contextlib
import datetime as dt
import io
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.logger import PySparkLogger
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import partitioning

import bergline.spark
from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.spark.audits import check, in_range, not_null, query, references, row_count, unique
from bergline.spark.reads import relations
from support.fixtures.other_formats import write_file
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.streams import run_query

Check = Callable[[Any, Lake], None]
CHECKS: dict[str, Check] = {}
"""All of them by name."""


def smoke_check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


@smoke_check
def every_type_comes_back_as_it_was_written(spark: Any, lake: Lake) -> None:
    spark.sql("""CREATE TABLE db.wide (
        id BIGINT NOT NULL, flag BOOLEAN, i INT, f FLOAT, d DOUBLE, dec DECIMAL(10, 2), day DATE, ts TIMESTAMP,
        ntz TIMESTAMP_NTZ, s STRING, bin BINARY, list ARRAY<INT>, who STRUCT<name: STRING, age: INT>, m MAP<STRING, INT>
    ) USING iceberg PARTITIONED BY (days(ts), bucket(4, id), truncate(2, s))""")
    values = (
        "1, true, 2, CAST(1.5 AS FLOAT), 2.5D, 3.25, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05', "
        "TIMESTAMP_NTZ '2026-01-02 03:04:05', 'text', X'00ff', array(1, null), named_struct('name', 'x', 'age', null), "
        "map('k', 7)"
    )
    spark.sql(f"INSERT INTO db.wide VALUES ({values})")
    spark.sql("INSERT INTO db.wide (id) VALUES (2)")
    first, second = spark.sql("SELECT * FROM db.wide ORDER BY id").collect()
    assert tuple(first) == tuple(spark.sql(f"SELECT {values}").collect()[0])
    assert tuple(second) == (2, *[None] * 13)


@smoke_check
def types_that_spark_lacks_and_variants_come_back(spark: Any, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.v (id INT, v VARIANT, g GEOMETRY(4326)) TBLPROPERTIES ('format-version' = '3')")
    spark.sql("INSERT INTO db.v VALUES (1, parse_json('{\"a\": [1]}'), X'0101000000000000000000F03F0000000000000040')")
    spark.sql("SELECT 2 AS id, parse_json('\"x\"') AS v").writeTo("db.v").append()
    assert _rows(spark, "SELECT id, to_json(v), g IS NULL FROM db.v") == [(1, '{"a":[1]}', False), (2, '"x"', True)]
    assert _rows(spark, "SELECT id FROM db.v WHERE variant_get(v, '$.a[0]', 'int') = 1") == [(1,)]
    assert _rows(spark, "SELECT count(*) FROM db.v") == [(2,)]
    schema = pa.schema([("id", pa.int32()), ("at", pa.time64("us")), ("n", pa.timestamp("ns"))])
    lake.create_table("db.n", schema, properties={"format-version": "3"}).append(
        pa.table({"id": [1, 2], "n": pa.array([999, 1000], pa.timestamp("ns"))})
    )
    spark.sql("INSERT INTO db.n (id, at) VALUES (3, '10:20:30.5')")
    zero = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
    assert _rows(spark, f"SELECT id FROM db.n WHERE n = {zero}") == [(1,)]
    assert _ids(spark.table("db.n").where("at = '10:20:30.5'")) == [3]


@smoke_check
def queries_of_every_shape_find_their_tables(spark: Any, lake: Lake) -> None:
    _orders(lake, "shapes").append(order_rows(1, 2, 3))
    spark.createDataFrame([(1, "one"), (2, "two")], "id long, word string").createOrReplaceTempView("words")
    assert _rows(spark, "WITH q AS (SELECT id FROM db.shapes WHERE id > 1) SELECT * FROM q") == [(2,), (3,)]
    assert _rows(spark, "SELECT w.word FROM lake.db.shapes o JOIN words w ON o.id = w.id") == [("one",), ("two",)]
    assert _rows(spark, "SELECT count(*) FROM db.shapes WHERE id IN (SELECT id FROM words)") == [(2,)]
    assert _rows(spark, "SELECT '{x}', db.shapes.id FROM db.shapes WHERE shapes.id = 3 -- {y}") == [("{x}", 3)]
    assert _rows(spark, "SELECT id FROM `db`.`shapes` UNION ALL SELECT -id FROM db.shapes WHERE id = 1")[0] == (-1,)
    assert _rows(spark, "SELECT a.id FROM db.shapes a JOIN db.shapes b ON a.id = b.id + 1") == [(2,), (3,)]


@smoke_check
def merge_changes_rows_by_every_clause(spark: Any, lake: Lake) -> None:
    _orders(lake, "merged").append(order_rows(1, 2, 3, 4))
    spark.createDataFrame([(1, 1.0), (2, None), (9, 9.0)], "id long, amount double").createOrReplaceTempView("changes")
    spark.sql(
        "MERGE INTO db.merged AS t USING changes AS s ON t.id = s.id AND t.region = 'eu' "
        "WHEN MATCHED AND s.amount IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET amount = s.amount + :more "
        "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (id, amount) "
        "WHEN NOT MATCHED BY SOURCE AND id = 4 THEN DELETE",
        args={"more": 1},
    )
    assert [row[0] for row in _rows(spark, "SELECT id FROM db.merged")] == [1, 3, 9]
    assert _rows(spark, "SELECT amount FROM db.merged WHERE id IN (1, 9)") == [(2.0,), (9.0,)]
    with pytest.raises(InvalidInputError, match="expected at most one source row"):
        spark.sql(
            "MERGE INTO db.merged AS t USING (SELECT 1L AS id UNION ALL SELECT 1L) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET amount = 0"
        )
    source = spark.createDataFrame([(3, "x"), (7, "y")], "id long, region string").alias("s")
    (
        source.mergeInto("db.merged", F.col("merged.id") == F.col("s.id"))
        .whenMatched()
        .update({"region": F.col("s.region")})
        .whenNotMatched()
        .insert({"id": F.col("id"), "region": F.lit("new")})
        .whenNotMatchedBySource(F.col("id") == 9)
        .delete()
        .merge()
    )
    found = spark.sql("SELECT id, region FROM db.merged WHERE id <> 1 ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(3, "x"), (7, "new")]


@smoke_check
def parameters_are_filled_in(spark: Any, lake: Lake) -> None:
    _orders(lake, "parameters").append(order_rows(1, 2, 3))
    assert [r.id for r in spark.sql("SELECT id FROM db.parameters WHERE id = :x", args={"x": 2}).collect()] == [2]
    assert [r.id for r in spark.sql("SELECT id FROM db.parameters WHERE id = ?", args=[3]).collect()] == [3]


@smoke_check
def readers_take_versions(spark: Any, lake: Lake) -> None:
    table = _orders(lake, "versions").append(order_rows(1)).append(order_rows(2))
    first, second = table.metadata.snapshots
    table.refs.create_tag("v1", at=first.snapshot_id)
    table.append(order_rows(3), branch="dev")
    expected = {
        ("branch", "dev"): [1, 2, 3],
        ("tag", "v1"): [1],
        ("snapshot-id", str(first.snapshot_id)): [1],
        ("as-of-timestamp", str(second.timestamp_ms)): [1, 2],
        ("versionAsOf", "v1"): [1],
        ("timestampAsOf", "2099-01-01 00:00:00"): [1, 2],
    }
    reader = {key: spark.read.format("iceberg").option(*key).load("db.versions") for key in expected}
    assert {key: _ids(frame) for key, frame in reader.items()} == expected
    assert _ids(spark.read.option("branch", "dev").table("db.versions")) == [1, 2, 3]
    assert _ids(spark.read.load("db.versions", format="iceberg", branch="dev")) == [1, 2, 3]
    assert _ids(spark.table("db.versions.tag_v1")) == [1]


@smoke_check
def statements_take_versions(spark: Any, lake: Lake) -> None:
    table = _orders(lake, "travel").append(order_rows(1)).append(order_rows(2))
    first, second = table.metadata.snapshots
    table.refs.create_tag("v1", at=first.snapshot_id)
    table.append(order_rows(3), branch="dev")
    expected = {
        f"db.travel VERSION AS OF {first.snapshot_id}": [1],
        "db.travel VERSION AS OF 'v1'": [1],
        "db.travel.branch_dev": [1, 2, 3],
        f"db.travel.at_timestamp_{second.timestamp_ms}": [1, 2],
        "db.travel TIMESTAMP AS OF '2099-01-01 00:00:00'": [1, 2],
    }
    assert {text: _ids(spark.sql(f"SELECT * FROM {text}")) for text in expected} == expected


@smoke_check
def frames_follow_their_tables_in_classic_sessions(spark: Any, lake: Lake) -> None:
    table = _orders(lake, "pinned").append(order_rows(1))
    frames = [spark.table("db.pinned"), spark.sql("SELECT * FROM db.pinned")]
    frames[0].createOrReplaceTempView("pinned")
    table.append(order_rows(2))
    seen = [1] if "SPARK_REMOTE" in os.environ else [1, 2]
    assert [_ids(frame) for frame in (*frames, spark.table("pinned"))] == [seen] * 3
    assert _ids(spark.table("db.pinned")) == [1, 2]


@smoke_check
def frames_are_appended_by_name_and_to_branches(spark: Any, lake: Lake) -> None:
    _orders(lake, "appended")
    frame = spark.createDataFrame([("us", 1)], "region string, id int")
    frame.writeTo("db.appended").append()
    frame.writeTo("db.appended").option("branch", "dev").append()
    frame.writeTo("db.appended.branch_dev").append()
    assert _rows(spark, "SELECT * FROM db.appended") == [(1, None, "us")]
    assert spark.table("db.appended.branch_dev").count() == 3


@smoke_check
def frames_overwrite_what_a_condition_says(spark: Any, lake: Lake) -> None:
    _regions(lake, "conditions")
    _frame(spark, 9).writeTo("db.conditions").overwrite(F.col("region") == "eu")
    assert _rows(spark, "SELECT id, region FROM db.conditions") == [(3, "us"), (9, "eu")]
    _frame(spark, 4, 5, 6).writeTo("db.conditions").append()
    _frame(spark, 7).writeTo("db.conditions").overwrite((F.col("id") >= 5) & F.col("region").isin("eu", "us"))
    assert _ids(spark.table("db.conditions")) == [3, 4, 7]
    _frame(spark, 8).writeTo("db.conditions").overwrite("id BETWEEN 3 AND 4 OR region IS NULL")
    assert _ids(spark.table("db.conditions")) == [7, 8]
    with pytest.raises(UnsupportedError, match="cannot pick rows by the condition"):
        _frame(spark, 10).writeTo("db.conditions").overwrite(F.length("region") == 2)
    _frame(spark, 1).writeTo("db.conditions").overwrite(F.lit(True))
    assert _ids(spark.table("db.conditions")) == [1]


@smoke_check
def frames_overwrite_their_partitions(spark: Any, lake: Lake) -> None:
    _regions(lake, "partitions")
    _frame(spark, 9).writeTo("db.partitions").overwritePartitions()
    assert _rows(spark, "SELECT id, region FROM db.partitions") == [(3, "us"), (9, "eu")]


@smoke_check
def overwrites_are_validated_from_what_they_read(spark: Any, lake: Lake) -> None:
    table = _regions(lake, "validated")
    spark.table("db.validated").createOrReplaceTempView("validated_view")
    seen = spark.table("db.validated")
    joined = spark.sql("SELECT v.* FROM db.validated v JOIN validated_view w ON v.id = w.id WHERE v.id > 0")
    cached = seen.where("id > 1").cache()
    table.append(order_rows(4))
    for frame in (joined, cached):
        with pytest.raises(ConflictError):
            frame.write.insertInto("db.validated", overwrite=True)
    with pytest.raises(ConflictError):
        seen.writeTo("db.validated").overwrite(F.col("region") == "eu")
    with pytest.raises(ConflictError):
        spark.table("validated_view").writeTo("db.validated").overwritePartitions()
    with pytest.raises(ConflictError):
        spark.sql("CREATE OR REPLACE TABLE db.validated USING iceberg AS SELECT * FROM validated_view")
    cached.unpersist()
    assert _ids(spark.table("db.validated")) == [1, 2, 3, 4]
    spark.sql("INSERT OVERWRITE db.validated SELECT * FROM db.validated WHERE id > 1")
    assert _ids(spark.table("db.validated")) == [2, 3, 4]


@smoke_check
def frames_create_and_replace_tables(spark: Any, lake: Lake) -> None:
    frame = spark.sql("SELECT 1 AS id, 'a' AS s, TIMESTAMP '2026-01-02 03:04:05' AS ts")
    writer = frame.writeTo("db.made").using("iceberg").tableProperty("owner", "me")
    writer.partitionedBy(partitioning.days("ts"), partitioning.bucket(4, "id"), F.col("s")).create()
    table = lake.load_table("db.made")
    assert [str(f.transform) for f in table.spec.fields] == ["day", "bucket[4]", "identity"]
    assert table.properties["owner"] == "me"
    assert spark.table("db.made").collect() == frame.collect()
    with pytest.raises(AlreadyExistsError):
        frame.writeTo("db.made").create()
    spark.range(2).writeTo("db.made").replace()
    assert _ids(spark.table("db.made")) == [0, 1]
    spark.range(1).writeTo("db.made").createOrReplace()
    assert _ids(spark.table("db.made")) == [0]


@smoke_check
def frames_are_inserted_and_saved(spark: Any, lake: Lake) -> None:
    _regions(lake, "saved")
    _frame(spark, 4).write.insertInto("db.saved")
    assert _ids(spark.table("db.saved")) == [1, 2, 3, 4]
    _frame(spark, 5).write.option("branch", "dev").insertInto("db.saved")
    assert _ids(spark.table("db.saved.branch_dev")) == [1, 2, 3, 4, 5]
    _frame(spark, 6).write.insertInto("db.saved", overwrite=True)
    assert _ids(spark.table("db.saved")) == [6]
    _frame(spark, 7).write.mode("append").saveAsTable("db.saved")
    _frame(spark, 8).write.format("iceberg").mode("append").save("db.saved")
    assert _ids(spark.table("db.saved")) == [6, 7, 8]
    with pytest.raises(AlreadyExistsError):
        _frame(spark, 9).write.saveAsTable("db.saved")
    _frame(spark, 9).write.saveAsTable("db.saved_new", partitionBy="region")
    assert [f.name for f in lake.load_table("db.saved_new").spec.fields] == ["region"]


@smoke_check
def statements_insert_in_every_form(spark: Any, lake: Lake) -> None:
    _regions(lake, "inserted")
    spark.sql("INSERT INTO db.inserted BY NAME SELECT 'us' AS region, 4L AS id")
    spark.sql("INSERT INTO db.inserted (region, id) VALUES ('eu', 5)")
    assert _ids(spark.table("db.inserted")) == [1, 2, 3, 4, 5]
    spark.sql("INSERT OVERWRITE db.inserted PARTITION (region = 'us') SELECT 6L, 1.0D")
    assert _rows(spark, "SELECT id, region FROM db.inserted WHERE region = 'us'") == [(6, "us")]
    with _setting(spark, "spark.sql.sources.partitionOverwriteMode", "dynamic"):
        spark.sql("INSERT OVERWRITE db.inserted VALUES (7, 1.0, 'us')")
    assert _ids(spark.table("db.inserted")) == [1, 2, 5, 7]
    spark.sql("INSERT INTO db.inserted REPLACE WHERE id < 5 VALUES (8, 1.0, 'eu')")
    assert _ids(spark.table("db.inserted")) == [5, 7, 8]


@smoke_check
def tables_are_made_of_queries(spark: Any, lake: Lake) -> None:
    _orders(lake, "queried").append(order_rows(1, 2))
    spark.sql("CREATE TABLE db.copied USING iceberg PARTITIONED BY (region) AS SELECT * FROM db.queried")
    assert _ids(spark.table("db.copied")) == [1, 2]
    spark.sql("CREATE OR REPLACE TABLE db.copied USING iceberg AS SELECT id FROM db.queried WHERE id = 2")
    assert _rows(spark, "SELECT * FROM db.copied") == [(2,)]


@smoke_check
def tables_are_altered_and_described(spark: Any, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.altered (id BIGINT, word STRING) USING iceberg")
    spark.sql("INSERT INTO db.altered VALUES (1, 'a')")
    spark.sql("ALTER TABLE db.altered RENAME COLUMN word TO text")
    spark.sql("ALTER TABLE db.altered ADD COLUMN n INT")
    spark.sql("ALTER TABLE db.altered SET TBLPROPERTIES ('x' = 'y')")
    assert _rows(spark, "SELECT * FROM db.altered") == [(1, "a", None)]
    assert [r.col_name for r in spark.sql("DESCRIBE db.altered").collect()][:3] == ["id", "text", "n"]
    assert ("x", "y") in _rows(spark, "SHOW TBLPROPERTIES db.altered")
    assert "altered" in [r.tableName for r in spark.sql("SHOW TABLES IN db").collect()]
    spark.sql("DROP TABLE db.altered")
    assert not lake.table_exists("db.altered")


@smoke_check
def branches_are_made_and_moved_by_statements(spark: Any, lake: Lake) -> None:
    _orders(lake, "moved").append(order_rows(1))
    spark.sql("ALTER TABLE db.moved CREATE BRANCH staging RETAIN 3 SNAPSHOTS")
    spark.sql("INSERT INTO db.moved.branch_staging VALUES (2, 1.0, 'eu')")
    assert _ids(spark.table("db.moved")) == [1]
    (moved,) = spark.sql("CALL system.fast_forward('db.moved', 'main', 'staging')").collect()
    assert moved.branch_updated == "main"
    assert _ids(spark.table("db.moved")) == [1, 2]


@smoke_check
def session_writes_to_its_wap_branch(spark: Any, lake: Lake) -> None:
    _orders(lake, "wap").append(order_rows(1))
    with _setting(spark, "spark.wap.branch", "audit"):
        assert _ids(spark.table("db.wap")) == [1]
        spark.sql("INSERT INTO db.wap VALUES (2, 1.0, 'eu')")
        assert _ids(spark.table("db.wap")) == [1, 2]
        assert _ids(spark.sql("SELECT * FROM db.wap VERSION AS OF 'main'")) == [1]
    assert _ids(spark.table("db.wap")) == [1]


@smoke_check
def catalog_lists_lakes(spark: Any, lake: Lake) -> None:
    _orders(lake, "listed")
    assert "db" in [d.name for d in spark.catalog.listDatabases()]
    assert "listed" in [t.name for t in spark.catalog.listTables("db")]
    assert spark.catalog.tableExists("db.listed")
    assert not spark.catalog.tableExists("db.not_listed")
    assert spark.catalog.getTable("db.listed").namespace == ["db"]
    assert [c.name for c in spark.catalog.listColumns("db.listed")] == ["id", "amount", "region"]
    spark.catalog.setCurrentDatabase("db")
    try:
        assert spark.catalog.currentDatabase() == "db"
        assert spark.table("listed").count() == 0
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")
    assert spark.catalog.currentDatabase() == "default"


@smoke_check
def temporary_views_come_first(spark: Any, lake: Lake) -> None:
    _orders(lake, "seen").append(order_rows(1))
    spark.sql("USE db")
    try:
        assert _ids(spark.sql("SELECT * FROM seen")) == [1]
        spark.range(7, 8).createOrReplaceTempView("seen")
        assert _ids(spark.sql("SELECT * FROM seen")) == [7]
        assert _ids(spark.sql("SELECT * FROM db.seen")) == [1]
    finally:
        spark.catalog.dropTempView("seen")
        spark.sql("USE spark_catalog.default")


@smoke_check
def views_of_the_lake_are_created_and_read(spark: Any, lake: Lake) -> None:
    _orders(lake, "viewed").append(order_rows(1, 2))
    spark.sql("CREATE VIEW db.some_viewed (n, place COMMENT 'x') AS SELECT id, region FROM db.viewed WHERE id > 1")
    assert _rows(spark, "SELECT n, place FROM db.some_viewed WHERE n < 5") == [(2, "eu")]
    assert spark.table("db.some_viewed").columns == ["n", "place"]
    assert lake.load_view("db.some_viewed").properties["spark.query-column-names"] == "id,region"
    spark.sql("ALTER TABLE db.viewed RENAME COLUMN region TO r")
    with pytest.raises(NotFoundError, match=r"no column `region` any more in `db\.viewed`"):
        spark.sql("SELECT * FROM db.some_viewed")
    spark.sql("DROP VIEW db.some_viewed")


@smoke_check
def metadata_tables_and_columns_are_read(spark: Any, lake: Lake) -> None:
    table = _orders(lake, "inspected").append(order_rows(1)).append(order_rows(2))
    table.refs.create_tag("v1")
    assert _rows(spark, "SELECT name, type FROM db.inspected.refs") == [("main", "BRANCH"), ("v1", "TAG")]
    assert spark.table("db.inspected.snapshots").count() == 2
    assert _rows(spark, "SELECT sum(record_count) FROM db.inspected.files") == [(2,)]
    assert _rows(spark, "SELECT id, _pos FROM db.inspected WHERE id = 2") == [(2, 0)]
    paths = {p.file.file_path for p in table.scan().plan().files}
    frame = spark.table("db.inspected")
    assert {row[0] for row in frame.select("_file").collect()} == paths
    assert sorted(map(tuple, frame.filter("_pos = 0").filter(frame.id > 1).collect())) == [(2, 20.0, "eu")]


@smoke_check
def deleted_rows_are_gone_for_both_readers(spark: Any, lake: Lake) -> None:
    properties = {"write.delete.mode": "merge-on-read"}
    for version in ("2", "3"):
        name = f"db.deleted_{version}"
        table = lake.create_table(name, ORDERS, properties={**properties, "format-version": version})
        table.append(order_rows(*range(10))).delete("id = 3 OR id = 5")
        expected = [0, 1, 2, 4, 6, 7, 8, 9]
        assert "native with deletes" in bergline.spark.explain_read(spark.table(name))
        assert _ids(spark.table(name)) == expected
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN amount TO price")
        assert "native with deletes" in bergline.spark.explain_read(spark.table(name))
        assert _ids(spark.table(name)) == expected
        assert _rows(spark, f"SELECT price FROM {name} WHERE id = 4") == [(40.0,)]
        odd = pa.schema([("id", pa.int64()), ("order id", pa.int64())])  # Spark's reader gets no such names
        table = lake.create_table(f"{name}_odd", odd, properties={**properties, "format-version": version})
        table.append([{"id": n, "order id": n} for n in range(10)]).delete("id = 3 OR id = 5")
        assert "arrow" in bergline.spark.explain_read(spark.table(f"{name}_odd"))
        assert _ids(spark.table(f"{name}_odd")) == expected


@smoke_check
def files_of_every_format_are_read(spark: Any, lake: Lake) -> None:
    table = lake.create_table("db.formats", ORDERS).append(order_rows(1))
    table.append_files([write_file(table, kind, table.schema, order_rows(n)) for n, kind in ((2, "ORC"), (3, "AVRO"))])
    assert _rows(spark, "SELECT id, amount FROM db.formats WHERE region = 'eu' ORDER BY id") == [
        (1, 10.0),
        (2, 20.0),
        (3, 30.0),
    ]


@smoke_check
def rows_are_deleted_and_updated(spark: Any, lake: Lake) -> None:
    for version, mode in (("2", "copy-on-write"), ("3", "merge-on-read")):
        name = f"db.changed_{version}"
        modes = {f"write.{command}.mode": mode for command in ("delete", "update")}
        table = lake.create_table(name, ORDERS, properties={"format-version": version} | modes)
        table.append(order_rows(1, 2, 3, 4)).append(order_rows(5, 6))
        spark.sql(f"DELETE FROM {name} WHERE id = 2")
        spark.sql(f"DELETE FROM {name} o WHERE o.id % 5 = 0 AND o.id IN (SELECT id FROM {name})")
        spark.sql(f"UPDATE {name} SET amount = amount + id, region = DEFAULT WHERE id + 0 > 3")
        found = [tuple(row) for row in spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()]
        assert found == [(1, 10.0, "eu"), (3, 30.0, "eu"), (4, 44.0, None), (6, 66.0, None)]
        for text, kind in (
            (f"UPDATE {name} SET nope = 1", NotFoundError),
            (f"UPDATE {name} SET amount = 'x'", InvalidInputError),
            (f"DELETE FROM {name} WHERE rand() < 0.5", InvalidInputError),
            (f"DELETE FROM {name} WHERE nope = 1", AnalysisException),
        ):
            with pytest.raises(kind):
                spark.sql(text)
        spark.sql(f"TRUNCATE TABLE {name}")
        assert spark.table(name).count() == 0


@smoke_check
def filters_on_frames_prune_files_and_lose_no_rows(spark: Any, lake: Lake) -> None:
    columns = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("s", pa.string())])
    table = lake.create_table("db.pruned", columns)
    for n in range(4):
        table.append(pa.Table.from_pylist([{"id": n, "day": dt.date(2026, 1, 1 + n), "s": f"text{n}"}], columns))
    frame = spark.table("db.pruned")
    conditions = {
        "equal": (F.col("id") == 2, [2]),
        "of the frame": (frame.id > 1, [2, 3]),
        "mirrored": (F.lit(1) >= frame["id"], [0, 1]),
        "two": ((F.col("id") > 0) & (F.col("id") < 3), [1, 2]),
        "either": ((F.col("id") == 0) | (F.col("s") == "text3"), [0, 3]),
        "among": (F.col("id").isin(1, 3), [1, 3]),
        "between": (F.col("day").between(dt.date(2026, 1, 2), dt.date(2026, 1, 3)), [1, 2]),
        "not": (~(F.col("id") < 3), [3]),
        "null": (F.col("id").isNull(), []),
        "prefix": (F.col("s").startswith("text1"), [1]),
        "in part": ((F.col("id") == 1) & (F.length("s") == 5), [1]),
    }
    for name, (condition, expected) in conditions.items():
        found = frame.filter(condition)
        assert _files_read(found) == len(expected), name
        assert _ids(found) == expected, name
    for text in ("id = 2", "pruned.id = 2", "id + 0 = 2", "CAST(id AS STRING) = '2'"):
        assert _ids(frame.where(text)) == [2], text
    assert _files_read(frame.where(F.length("s") == 5)) == 4
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(relations, "MOST_FILES_UNFILTERED", -1)
        relations.KEPT.clear()
        for text, files in {
            "SELECT * FROM db.pruned WHERE id = 2 AND s LIKE 'text%'": 1,
            "SELECT p.id FROM db.pruned AS p WHERE p.day > DATE '2026-01-02' OR id = 0": 3,
            "WITH q AS (SELECT * FROM db.pruned WHERE NOT id IN (1, 2)) SELECT * FROM q": 2,
            "SELECT id FROM (SELECT * FROM db.pruned LIMIT 100) WHERE id = 2": 4,
        }.items():
            assert _files_read(spark.sql(text)) == files, text
    few = frame.filter(frame.id < 3).filter(frame.id > 0)
    assert _files_read(few) == 2
    assert sorted(map(tuple, few.select(frame.id, few["s"]).collect())) == [(1, "text1"), (2, "text2")]
    assert few.union(frame.filter("id = 3")).count() == 3
    assert few.columns == frame.columns == ["id", "day", "s"]
    assert few.schema == frame.schema


@smoke_check
def stored_values_never_change(spark: Any, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.small (i INT, d DECIMAL(4, 2), l ARRAY<INT>) USING iceberg")
    for ansi in ("true", "false"):
        with _setting(spark, "spark.sql.ansi.enabled", ansi):
            for values in ("3000000000, 1, NULL", "1, 1000, NULL", "1, 1, array(3000000000)"):
                with pytest.raises(Exception, match=r"(?i)overflow|out of range|NUMERIC_VALUE"):
                    spark.sql(f"INSERT INTO db.small VALUES ({values})")
            assert spark.conf.get("spark.sql.ansi.enabled") == ansi
    assert lake.load_table("db.small").current_snapshot is None
    with _setting(spark, "spark.sql.ansi.enabled", "false"):
        spark.sql("INSERT INTO db.small VALUES (5L, 1.5D, array(6L, NULL))")
    assert _rows(spark, "SELECT i, CAST(d AS STRING), l FROM db.small") == [(5, "1.50", [6, None])]


@smoke_check
def rows_of_partitions_meet_in_few_files(spark: Any, lake: Lake) -> None:
    frame = spark.range(0, 10_000, 1, 4).selectExpr("id", "id % 3 AS part")
    frame.writeTo("db.many").partitionedBy(F.col("part")).create()
    table = lake.load_table("db.many")
    assert len(table.scan().plan().files) == 3
    assert _rows(spark, "SELECT part, count(*) FROM db.many GROUP BY part") == [(0, 3334), (1, 3333), (2, 3333)]
    assert spark.table("db.many").where("part = 1").agg(F.sum("id")).collect()[0][0] == sum(range(1, 10_000, 3))


@smoke_check
def data_files_are_rewritten_by_statements(spark: Any, lake: Lake) -> None:
    properties = {"format-version": "3"}
    table = lake.create_table("db.rewritten", ORDERS, partition_by=["region"], properties=properties)
    for i in range(5):
        table.append(order_rows(i, 20 - i)).append(order_rows(i + 50, region="us"))
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(columns=columns).to_arrow().sort_by("id")
    calls = {
        "": (10, 2),
        ", sort_order => 'id DESC', options => map('rewrite-all', 'true')": (2, 2),
        ", sort_order => 'zorder(id, amount)', options => map('rewrite-all', 'true')": (2, 2),
        ", where => 'region = \\'eu\\'', options => map('rewrite-all', 'true')": (1, 1),
    }
    for arguments, counts in calls.items():
        (row,) = _rows(spark, f"CALL system.rewrite_data_files(table => 'db.rewritten'{arguments})")
        assert row[:2] == counts, arguments
        assert table.refresh().scan(columns=columns).to_arrow().sort_by("id") == before


@smoke_check
def pipeline_audits_and_publishes_two_tables(spark: Any, lake: Lake) -> None:
    whole = pa.int64()
    lake.create_table("db.run_orders", pa.schema([("id", whole), ("amount", whole)]))
    lake.create_table("db.run_items", pa.schema([("id", whole), ("order_id", whole)]))
    audits = [
        row_count("db.run_orders", at_least=1),
        not_null("db.run_orders", "id"),
        unique("db.run_orders", "id"),
        in_range("db.run_orders", "amount", at_least=0),
        references("db.run_items", "order_id", "db.run_orders", "id"),
        query("no large ones", "SELECT * FROM db.run_orders WHERE amount > 1000"),
        check("has two", lambda run: run.table("db.run_orders").count() == 2),
    ]

    def pipeline(amount: int) -> bergline.spark.Pipeline:
        steps: dict[str, Any] = {
            "orders": f"INSERT INTO db.run_orders VALUES (2, 20), (3, {amount})",
            "items": lambda run: run.sql("INSERT INTO db.run_items SELECT id * 10, id FROM db.run_orders"),
        }
        tables = ["db.run_orders", "db.run_items"]
        return bergline.spark.Pipeline(spark, lake, "daily", tables=tables, steps=steps, audits=audits)

    failed = pipeline(-1).run("1")
    assert [a.audit for a in failed.audits if not a.passed] == [audits[3].name]
    assert _ids(spark.table("db.run_orders")) == []
    report = pipeline(30).run("2", tag="v1")
    assert (report.status, all(a.passed for a in report.audits)) == ("published", True)
    assert _ids(spark.table("db.run_orders.tag_v1")) == [2, 3]
    assert _ids(spark.table("db.run_items")) == [20, 30]


@smoke_check
def what_is_not_ours_passes_through(spark: Any, lake: Lake) -> None:
    assert spark.sql("SELECT 1 AS one").collect()[0].one == 1
    assert spark.sql("SELECT {n} AS n", n=5).collect()[0].n == 5
    assert spark.sql("SHOW TABLES").columns == ["namespace", "tableName", "isTemporary"]
    _orders(lake, "ours").append(order_rows(1))
    spark.sql("CREATE TABLE default.plain (id BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO default.plain VALUES (1)")
        spark.sql("INSERT INTO default.plain SELECT id + 1 FROM db.ours")
        spark.range(3, 4).write.insertInto("default.plain")
        spark.range(4, 5).write.mode("append").saveAsTable("default.plain")
        assert _ids(spark.table("default.plain")) == _ids(spark.read.table("default.plain")) == [1, 2, 3, 4]
        assert spark.catalog.getTable("default.plain").tableType == "MANAGED"
    finally:
        spark.sql("DROP TABLE default.plain")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nowhere.orders").collect()
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELEC 1").collect()


@smoke_check
def changes_are_rows_in_views_and_tables(spark: Any, lake: Lake) -> None:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.log", ORDERS, properties=properties).append(order_rows(1, 2))
    table.refs.create_tag("start")
    table.delete("id = 1").overwrite(order_rows(2).set_column(1, "amount", pa.array([7.0])), "id = 2")
    (row,) = spark.sql("CALL system.create_changelog_view('db.log', identifier_columns => array('id'))").collect()
    assert tuple(row) == ("`log_changes`",)
    found = "SELECT id, amount, _change_type FROM log_changes WHERE _change_ordinal > 0"
    expected = [(1, 10.0, "DELETE"), (2, 20.0, "UPDATE_BEFORE"), (2, 7.0, "UPDATE_AFTER")]
    assert _rows(spark, found) == expected
    table.append(order_rows(3))
    assert _rows(spark, found) == expected  # a view keeps what it was made of
    spark.sql("CALL system.create_changelog_view('db.log', 'net', map('start-tag', 'start'), net_changes => true)")
    assert _rows(spark, "SELECT id, _change_type FROM net") == [
        (1, "DELETE"),
        (2, "DELETE"),
        (2, "INSERT"),
        (3, "INSERT"),
    ]
    assert spark.sql("SELECT count(*) FROM db.log.changes WHERE _change_type = 'DELETE'").collect()[0][0] == 2
    assert spark.read.option("start-tag", "start").table("db.log.changes").count() == 4
    assert bergline.spark.read(table.changes("start"), spark).count() == 4


@smoke_check
def our_errors_are_raised_at_once_as_sparks_classes(spark: Any, lake: Lake) -> None:
    _orders(lake, "refused").append(order_rows(1)).refs.create_tag("v1")
    with pytest.raises(AnalysisException, match=r"no table `db\.refusd`") as caught:
        spark.sql("SELECT * FROM db.refusd")
    assert isinstance(caught.value, NotFoundError)
    with pytest.raises(ParseException, match="expected"):
        spark.sql("ALTER TABLE db.refused CREATE BRANCH")
    with pytest.raises(InvalidInputError, match="id"):
        spark.createDataFrame([("x",)], "id string").writeTo("db.refused").append()
    with pytest.raises(NotFoundError, match="nope"):
        spark.createDataFrame([(1,)], "nope int").writeTo("db.refused").append()
    with pytest.raises(RefusedError, match="v1"):
        spark.range(1).writeTo("db.refused").option("branch", "v1").append()
    with pytest.raises(UnsupportedError, match="option"):
        spark.range(1).writeTo("db.refused").option("nope", "x")
    assert len(lake.load_table("db.refused").metadata.snapshots) == 1


@smoke_check
def errors_and_their_log_show_tables_by_their_names(spark: Any, lake: Lake) -> None:
    _orders(lake, "shown").append(order_rows(1))
    logged, logger = io.StringIO(), PySparkLogger.getLogger("SQLQueryContextLogger")
    handler = logging.StreamHandler(logged)
    logger.addHandler(handler)
    try:
        with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN") as caught:
            spark.sql("SELECT nosuch FROM db.shown").collect()
    finally:
        logger.removeHandler(handler)
    for text in str(caught.value), logged.getvalue():
        assert "SubqueryAlias" in text
        assert "shown" in text or "_pyspark_connect_temp_view" in text
        assert "bergline read" not in text


@smoke_check
def streams_read_and_write_tables(spark: Any, lake: Lake) -> None:
    orders = lake.create_table("db.arriving", ORDERS).append(order_rows(1)).append(order_rows(2))
    directory = tempfile.mkdtemp()

    def run(checkpoint: str) -> str:
        arriving = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table("db.arriving")
        writer = arriving.writeStream.option("checkpointLocation", f"{directory}/{checkpoint}")
        return str(run_query(lambda: writer.trigger(availableNow=True).toTable("db.arrived")).id)

    first = run("one")
    orders.append(order_rows(3))
    assert run("one") == first
    copy = lake.load_table("db.arrived")
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    found = [
        (s.summary["spark.sql.streaming.queryId"], s.summary["spark.sql.streaming.epochId"])
        for s in copy.metadata.snapshots
    ]
    assert found == [(first, "0"), (first, "1")]
    (Path(directory) / "one" / "commits" / "1").unlink()  # as if it had been killed there
    (Path(directory) / "one" / "commits" / ".1.crc").unlink(missing_ok=True)
    run("one")
    assert len(copy.refresh().metadata.snapshots) == 2
    with pytest.raises(UnsupportedError, match="expected the output mode append or complete"):
        spark.readStream.table("db.arriving").writeStream.option("checkpointLocation", directory).outputMode(
            "update"
        ).toTable("db.arrived")


def _orders(lake: Lake, name: str) -> Table:
    return lake.create_table(f"db.{name}", ORDERS)


def _regions(lake: Lake, name: str) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table(f"db.{name}", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def _frame(spark: Any, *ids: int) -> Any:
    return spark.createDataFrame(order_rows(*ids))


def _rows(spark: Any, text: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=str)


def _ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def _files_read(frame: Any) -> int:
    """How many files a frame looks at."""
    return int(bergline.spark.explain_read(frame).split(":")[1].split()[0].replace(",", ""))


@contextlib.contextmanager
def _setting(spark: Any, key: str, value: str) -> Iterator[None]:
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key)
