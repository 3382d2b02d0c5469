"""attach and detach: lakes of a session, and of those that Spark clones from it, as for `foreachBatch`."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.spark


def clone(spark: SparkSession) -> SparkSession:
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def run_stream(spark: SparkSession, directory: Path, each: Any) -> None:
    (directory / "in").mkdir()
    (directory / "in" / "one.json").write_text('{"id": 1, "amount": 2.5, "region": "eu"}\n')
    arriving = spark.readStream.schema("id BIGINT, amount DOUBLE, region STRING").json(str(directory / "in"))
    writer = arriving.writeStream.foreachBatch(each).option("checkpointLocation", str(directory / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_stream_writes_its_batches_to_lake_tables(
    spark: SparkSession, orders: Table, lake: Lake, tmp_path: Path
) -> None:
    spark.sql("USE db")
    counted = []

    def each(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        batch.createOrReplaceTempView("arrived")
        session.sql("INSERT INTO db.orders SELECT * FROM arrived")
        session.sql("INSERT INTO orders SELECT id + 1, amount, region FROM arrived")
        batch.selectExpr("id + 2 AS id", "amount", "region").writeTo("db.orders").append()
        batch.write.mode("append").saveAsTable("db.batches")
        batch.write.insertInto("db.batches")
        counted.append((number, session.table("db.orders").count(), session.catalog.currentDatabase()))

    run_stream(spark, tmp_path, each)
    assert counted == [(0, 3, "db")]
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2, 3]
    assert ids(lake.load_table("db.batches").scan().to_arrow()) == [1, 1]


def test_clone_has_the_lakes_of_its_session_until_that_is_detached(
    spark: SparkSession, orders: Table, tmp_path: Path
) -> None:
    orders.append(order_rows(1))
    other = clone(spark)
    assert other.table("db.orders").count() == 1
    assert clone(other).table("lake.db.orders").count() == 1
    other.sql("USE db")
    assert other.table("orders").count() == 1
    assert spark.catalog.currentDatabase() == "default"
    with bergline.connect(f"sqlite:///{tmp_path}/second/catalog.db", create=True) as second:
        second.create_namespace("db")
        second.create_table("db.orders", ORDERS).append(order_rows(1, 2))
        bergline.spark.attach(spark, second, name="second", default=False)
        assert other.table("second.db.orders").count() == 2
    bergline.spark.detach(spark)
    for session in (spark, other, clone(spark)):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.table("db.orders").count()


def test_clone_is_detached_alone_and_may_have_lakes_of_its_own(
    spark: SparkSession, orders: Table, tmp_path: Path
) -> None:
    first, second, unused = clone(spark), clone(spark), clone(spark)
    bergline.spark.detach(unused)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        unused.table("db.orders").count()
    assert first.table("db.orders").count() == second.table("db.orders").count() == 0
    bergline.spark.detach(first)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        first.table("db.orders").count()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        clone(first).table("db.orders").count()
    with bergline.connect(f"sqlite:///{tmp_path}/second/catalog.db", create=True) as own:
        own.create_namespace("own")
        own.create_table("own.orders", ORDERS)
        bergline.spark.attach(second, own, name="own", default=False)
        assert second.table("own.own.orders").count() == second.table("db.orders").count() == 0
        with pytest.raises(AnalysisException):
            spark.table("own.own.orders").count()
        bergline.spark.detach(second)
    assert spark.table("db.orders").count() == 0


def test_new_session_has_the_lakes_and_its_own_namespace_and_views(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("USE db")
    new = spark.newSession()
    assert new.catalog.currentDatabase() == "default"
    spark.sql("SELECT id FROM orders").createOrReplaceTempView("seen")
    assert [t.name for t in new.catalog.listTables() if t.isTemporary] == []
    new.sql("USE db")
    new.sql("INSERT INTO orders VALUES (2, 1.0, 'eu')")
    assert clone(new).table("orders").count() == new.newSession().table("db.orders").count() == 2
    spark.sql("USE lake")
    assert new.table("orders").count() == 2
    assert SparkSession.active().table("db.orders").count() == 2
    assert spark.range(1).sparkSession.table("db.orders").count() == 2
    below = new.newSession()
    bergline.spark.detach(spark)
    for session in (spark, new, below, clone(new)):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.table("db.orders").count()


def test_lakes_of_the_configuration_are_attached(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    settings = {
        "main.uri": f"sqlite:///{tmp_path}/catalog.db",
        "main.default": "true",
        "second.uri": f"sqlite:///{tmp_path}/second/catalog.db",
    }
    bergline.spark.detach(spark)
    with pytest.raises(InvalidInputError, match="found neither") as caught:
        bergline.spark.attach(spark)
    assert "set `spark.bergline.lake.uri`" in caught.value.hints
    with pytest.raises(InvalidInputError, match="expected a lake to be attached as 'second', found none"):
        bergline.spark.attach(spark, name="second")
    try:
        for key, value in settings.items():
            spark.conf.set(f"spark.bergline.{key}", value)
        with pytest.raises(NotFoundError, match="no such file"):
            bergline.spark.attach(spark)
        with pytest.raises(AnalysisException):
            spark.table("main.db.orders")
        spark.conf.set("spark.bergline.second.create", "true")
        assert bergline.spark.attach(bergline.spark.attach(spark)) is spark
        spark.sql("CREATE NAMESPACE second.db")
        spark.sql("CREATE TABLE second.db.items AS SELECT 1 AS id")
        assert spark.sql("SELECT * FROM db.orders, second.db.items").count() == 0
        new = spark.newSession()
        assert bergline.spark.session("second") is spark
        assert (spark.table("db.items").count(), new.table("main.db.orders").count()) == (1, 0)
        with pytest.raises(NotFoundError, match="no lake `secnd` in the session's configuration") as missing:
            bergline.spark.session("secnd")
        assert missing.value.hints == ("did you mean `second`?",)
        with pytest.raises(
            InvalidInputError, match=r"expected a free name for the lake, found `spark\.bergline\.main\.uri`"
        ):
            bergline.spark.session("main", uri="sqlite:///x.db")
        new.conf.set("spark.bergline.main.uri", settings["second.uri"])
        assert bergline.spark.attach(new).table("db.items").count() == 1  # the name was only inherited
        more = bergline.spark.session("third", uri=f"sqlite:///{tmp_path}/catalog.db")
        assert more.table("third.db.orders").count() == more.table("db.orders").count() == 0
    finally:
        for key in (*settings, "second.create"):
            spark.conf.unset(f"spark.bergline.{key}")


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def test_several_lakes_are_reached_by_name(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    with bergline.connect(f"sqlite:///{tmp_path}/other/catalog.db", create=True) as other:
        other.create_namespace("db")
        other.create_table("db.orders", ORDERS).append(order_rows(7))
        bergline.spark.attach(spark, other, name="other", default=False)
        assert query(spark, "SELECT id FROM db.orders") == [(1,)]
        assert query(spark, "SELECT a.id, b.id FROM db.orders a CROSS JOIN other.db.orders b") == [(1, 7)]
        with pytest.raises(InvalidInputError, match="another lake attached as `lake`"):
            bergline.spark.attach(spark, other, name="lake")


def test_lake_that_is_connected_again_takes_the_place_of_the_first(
    spark: SparkSession, lake: Lake, orders: Table, tmp_path: Path
) -> None:
    for _ in range(2):  # as a notebook's cell that is run twice
        again = bergline.connect(f"sqlite:///{tmp_path}/catalog.db")
        bergline.spark.attach(spark, again)
        again.load_table("db.orders").append(order_rows(1))
    lake.close()
    assert query(spark, "SELECT count(*) FROM db.orders") == [(2,)]
    again.close()


def test_name_of_a_closed_lake_is_free(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/other/catalog.db", create=True) as other:
        other.create_namespace("db")
        bergline.spark.attach(spark, other, name="other", default=False)
    with pytest.raises(InvalidInputError, match="expected an open lake, found one that was closed"):
        bergline.spark.attach(spark, other, name="again")
    for name in (5, ""):
        with pytest.raises(InvalidInputError, match=r"for the .*lake, found"):
            bergline.spark.attach(spark, lake, name=name)  # type: ignore[arg-type]
    with bergline.connect(f"sqlite:///{tmp_path}/other/catalog.db", create=True) as other:
        other.create_table("db.orders", ORDERS).append(order_rows(7))
        bergline.spark.attach(spark, other, name="other", default=False)
        assert query(spark, "SELECT id FROM other.db.orders") == [(7,)]


def test_other_sessions_are_untouched_and_detach_restores(
    spark_session: SparkSession, lake: Lake, orders: Table
) -> None:
    orders.append(order_rows(1))
    before = spark_session.newSession()
    spark = bergline.spark.attach(spark_session, lake)
    patched = SparkSession.sql
    for session in (before, clone(before), before.newSession()):
        for _ in range(2):
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
                session.sql("SELECT * FROM db.orders")
    assert spark.table("db.orders").count() == 1
    assert spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.threshold") == "32"
    bergline.spark.detach(spark)
    assert SparkSession.sql is not patched
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM db.orders")


def test_lake_in_memory_is_refused_by_attach(spark: SparkSession) -> None:
    with bergline.connect("memory:") as lake, pytest.raises(UnsupportedError, match="found them in memory"):
        bergline.spark.attach(spark, lake, name="mem")


def test_what_is_no_lake_is_refused_by_attach(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="expected a lake, found 'lake'"):
        bergline.spark.attach(spark, "lake")  # type: ignore[arg-type]


def test_a_commit_is_no_failure_where_spark_knows_no_such_place(spark: SparkSession) -> None:
    with bergline.connect("memory:") as other:
        other.create_namespace("db")
        table = other.create_table("db.t", ORDERS)
        table.set_location("memory://elsewhere")
        assert table.metadata.location == "memory://elsewhere"
