"""What is checked over Spark Connect only, beside the smoke set."""

import datetime as dt
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812

import bergline
import bergline.spark
from bergline import Lake
from bergline.errors import InvalidInputError, RefusedError, UnsupportedError
from bergline.spark.reads import planning
from support.fixtures.rows import ORDERS, order_rows
from support.proxies.restricted_server import restricted_server
from support.proxies.restricting_proxy import MASKS, ROW_FILTER

TIMES = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def other_sessions_are_untouched(spark: Any, lake: Lake) -> None:
    lake.create_table("db.untouched", ORDERS).append(order_rows(1))
    other = spark.builder.remote(os.environ["SPARK_REMOTE"]).create()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        other.sql("SELECT * FROM db.untouched").collect()
    bergline.spark.attach(other, lake)
    assert other.table("db.untouched").count() == 1
    other.stop()
    with pytest.raises(InvalidInputError, match="found one that was stopped"):
        other.table("db.untouched")
    bergline.spark.detach(other)
    assert spark.table("db.untouched").count() == 1


def no_setting_of_a_session_is_switched(spark: Any, lake: Lake) -> None:
    lake.create_table("db.settings", ORDERS)
    asked, config = [], spark.client.config

    def recorded(operation: Any) -> Any:
        asked.append(operation.WhichOneof("op_type"))
        return config(operation)

    spark.client.config = recorded
    try:
        spark.sql("INSERT INTO db.settings VALUES (1L, 2, 'eu')")
        spark.range(20).selectExpr("id", "1.5D AS amount", "'eu' AS region").writeTo("db.settings").append()
        spark.sql("CREATE OR REPLACE TEMP VIEW settings AS SELECT id AS n FROM db.settings")
        assert spark.table("settings").count() == 21
        steps = {"copy": "INSERT INTO db.settings SELECT id + 100, amount, region FROM db.settings"}
        pipeline = bergline.spark.Pipeline(spark, lake, "settings", tables=["db.settings"], steps=steps)
        assert pipeline.run("1").status == "published"
    finally:
        del spark.client.config
        spark.catalog.dropTempView("settings")
    assert "get" in asked or "get_with_default" in asked
    assert not {"set", "unset"} & set(asked)


def many_files_are_looked_up_on_the_executors(spark: Any, lake: Lake) -> None:
    properties = {"read.data-planning-mode": "distributed", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.many_files", ORDERS, properties=properties)
    for first in range(0, 6, 2):
        table.append(order_rows(first, first + 1))
    table.delete("id = 3")
    frame = spark.table("db.many_files").where("id >= 2")
    assert "planned on the executors" in bergline.spark.explain_read(frame)
    assert sorted(row.id for row in frame.collect()) == [2, 4, 5]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planning, "MOST_IN_DRIVER", 1)
        frame = spark.table("db.many_files")
        assert "too many for the driver" in bergline.spark.explain_read(frame)
        assert sorted(row.id for row in frame.collect()) == [0, 1, 2, 4, 5]


def clones_have_the_lakes_of_their_session(spark: Any, lake: Lake) -> None:
    lake.create_table("db.cloned", ORDERS)
    if not hasattr(spark, "cloneSession"):  # Spark 4.0
        return
    clone = spark.cloneSession()
    assert clone.table("db.cloned").count() == 0
    clone.sql("INSERT INTO db.cloned (id) VALUES (1)")
    assert spark.table("db.cloned").count() == 1


def clones_made_in_a_step_write_to_its_branch(spark: Any, lake: Lake) -> None:
    if not hasattr(spark, "cloneSession"):  # Spark 4.0
        return
    table = lake.create_table("db.clone_steps", ORDERS)
    before, clones = spark.cloneSession(), []

    def step(run: Any) -> None:
        clones.append(run.spark.cloneSession())
        clones[0].sql("INSERT INTO db.clone_steps (id) VALUES (1)")
        before.sql("INSERT INTO db.clone_steps (id) VALUES (2)")

    pipeline = bergline.spark.Pipeline(spark, lake, "clones", tables=["db.clone_steps"], steps={"clone": step})
    assert pipeline.run("1", publish=False, merge=False).steps[0].rows == {"db.clone_steps": 1}
    assert table.refresh().scan(ref="clones-1").to_arrow().column("id").to_pylist() == [1]
    assert table.scan().to_arrow().column("id").to_pylist() == [2]
    with pytest.raises(RefusedError, match="cloned in step `clone` of pipeline clones, run 1, which has ended"):
        clones[0].sql("INSERT INTO db.clone_steps (id) VALUES (3)")


def last_detach_restores_the_classes(spark: Any, lake: Lake) -> None:
    threshold = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    patched = type(spark).sql
    bergline.spark.detach(spark)
    try:
        assert type(spark).sql is not patched
        assert spark.conf.get(threshold) == "32"
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            spark.sql("SELECT * FROM db.orders").collect()
    finally:
        bergline.spark.attach(spark, lake)
    assert spark.conf.get(threshold) != "32"


def moments_decide_only_where_no_zone_counts(spark: Any, lake: Lake) -> None:
    table = lake.create_table("db.moments", TIMES)
    moments = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2, 3)]
    for moment in moments:
        table.append(pa.Table.from_pylist([{"id": moment.day, "at": moment}], TIMES))
    frame = spark.table("db.moments")
    late = frame.where(F.col("at") > moments[1])
    assert "1 file" in bergline.spark.explain_read(late)
    assert [row.id for row in late.collect()] == [3]
    in_text = frame.where("at > TIMESTAMP '2026-01-02 00:00:00'")
    assert "3 files" in bergline.spark.explain_read(in_text)
    assert [row.id for row in in_text.collect()] == [3]
    with pytest.raises(UnsupportedError, match="cannot pick rows by the condition"):
        frame.writeTo("db.moments").overwrite("at > TIMESTAMP '2026-01-02 00:00:00'")
    spark.createDataFrame([(9,)], "id long").writeTo("db.moments").overwrite(F.col("at") > moments[1])
    assert sorted(row.id for row in spark.table("db.moments").collect()) == [1, 2, 9]


def plans_that_are_cut_are_not_guessed_at(spark: Any, lake: Lake) -> None:
    lake.create_table("db.cut", ORDERS).append(order_rows(1))
    frame, key = spark.table("db.cut"), "spark.sql.maxPlanStringLength"
    spark.conf.set(key, "100")
    try:
        with pytest.raises(UnsupportedError, match=key):
            frame.write.insertInto("db.cut", overwrite=True)
        frame.write.option("isolation-level", "none").insertInto("db.cut", overwrite=True)
        frame.write.insertInto("db.cut")
    finally:
        spark.conf.unset(key)
    assert spark.table("db.cut").count() == 2


def settings_are_heard(spark: Any, lake: Lake) -> None:
    lake.create_table("db.heard", ORDERS).append(order_rows(1))
    values = {
        "t": "db.${heard}",
        "heard": "heard",
        "spark.sql.sources.default": "iceberg",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.storeAssignmentPolicy": "STRICT",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    }
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        assert spark.sql("SELECT * FROM ${t} WHERE \"id\" = 1 AND '${env:PATH}' NOT LIKE '$%'").count() == 1
        assert spark.read.load("${t}").count() == 1
        spark.sql('ALTER TABLE ${t} ADD COLUMN "a t" TIMESTAMP')
        assert str(lake.load_table("db.heard").schema.fields[-1].type) == "timestamp"
        with pytest.raises(AnalysisException, match="expected `double`, found `decimal"):
            spark.sql("INSERT INTO ${spark:t} VALUES (1L, 1.5, '${env:no_such}', NULL)")
    finally:
        for name in values:
            spark.conf.unset(name)


def tables_whose_readers_are_restricted_are_not_read(spark: Any, lake: Lake) -> None:
    with tempfile.TemporaryDirectory() as directory, restricted_server(Path(directory)) as proxy:
        other = spark.builder.remote(os.environ["SPARK_REMOTE"]).create()
        with bergline.connect(proxy.uri) as restricted:
            bergline.spark.attach(other, restricted)
            assert other.table("db.people").count() == 4
            proxy.restrictions = ROW_FILTER | MASKS
            for text in (
                "SELECT * FROM db.people",
                "SELECT count(*) FROM db.people",
                "SELECT * FROM db.people.files",
                "UPDATE db.people SET name = 'x' WHERE id = 1",
                "INSERT INTO db.copy SELECT * FROM db.people",
            ):
                with pytest.raises(UnsupportedError, match="demands a row filter and column masks of its readers"):
                    other.sql(text).collect()
            with pytest.raises(UnsupportedError, match="demands a row filter and column masks of its readers"):
                other.table("db.people").where("id = 1").collect()
            other.sql("INSERT INTO db.people VALUES (3, 'Cy', 'EU')")
            other.stop()


CONNECT_CHECKS: dict[str, Callable[[Any, Lake], None]] = {
    check.__name__: check
    for check in (
        other_sessions_are_untouched,
        no_setting_of_a_session_is_switched,
        many_files_are_looked_up_on_the_executors,
        clones_have_the_lakes_of_their_session,
        clones_made_in_a_step_write_to_its_branch,
        last_detach_restores_the_classes,
        moments_decide_only_where_no_zone_counts,
        plans_that_are_cut_are_not_guessed_at,
        settings_are_heard,
        tables_whose_readers_are_restricted_are_not_read,
    )
}
