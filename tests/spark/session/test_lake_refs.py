"""A lake and its refs side by side in one session: the same metadata files, and what each ref has of them."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import ConflictError, NotFoundError, RefusedError
from bergline.spark import Pipeline
from bergline.spark.audits import unique
from bergline.spark.pushdown.provenance import branch_reads
from bergline.spark.reads.scan import read
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def staging(spark: SparkSession, lake: Lake, orders: Table) -> Iterator[Lake]:
    """The lake at a branch, attached beside the lake itself; `db.orders` has rows 1 and 2 at both."""
    orders.append(order_rows(1, 2)).refs.create_branch("staging")
    at = lake.at("staging")
    bergline.spark.attach(spark, at, name="staging", default=False)
    yield at
    spark.catalog.clearCache()


def found(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


def of_branch(orders: Table, branch: str = "staging") -> list[int]:
    return sorted(ids(orders.refresh().scan(ref=branch).to_arrow()))


@pytest.mark.usefixtures("staging")
def test_each_ref_has_its_own_rows_whichever_was_read_before(spark: SparkSession, orders: Table) -> None:
    assert found(spark, "db.orders") == found(spark, "staging.db.orders") == [1, 2]
    kept = spark.table("staging.db.orders"), spark.table("db.orders"), spark.sql("SELECT * FROM staging.db.orders")
    spark.sql("INSERT INTO staging.db.orders VALUES (3, 1.0, 'eu')")
    assert (found(spark, "db.orders"), found(spark, "staging.db.orders")) == ([1, 2], [1, 2, 3])
    assert found(spark, "db.orders") == [1, 2]
    spark.sql("INSERT INTO db.orders VALUES (9, 1.0, 'eu')")
    assert (found(spark, "staging.db.orders"), found(spark, "db.orders")) == ([1, 2, 3], [1, 2, 9])
    assert [sorted(row.id for row in rows.collect()) for rows in kept] == [[1, 2, 3], [1, 2, 9], [1, 2, 3]]
    assert (of_branch(orders), of_branch(orders, "main")) == ([1, 2, 3], [1, 2, 9])


@pytest.mark.usefixtures("staging")
def test_refs_are_joined_in_one_query(spark: SparkSession) -> None:
    def joined() -> list[tuple]:
        query = "SELECT m.id, s.id FROM db.orders m FULL JOIN staging.db.orders s ON m.id = s.id"
        return sorted(map(tuple, spark.sql(query).collect()), key=str)

    frame = spark.table("db.orders").select("id").exceptAll(spark.table("staging.db.orders").select("id"))
    assert joined() == [(1, 1), (2, 2)]
    spark.sql("INSERT INTO db.orders VALUES (9, 1.0, 'eu')")
    spark.sql("INSERT INTO staging.db.orders VALUES (3, 1.0, 'eu')")
    assert joined() == [(1, 1), (2, 2), (9, None), (None, 3)]
    assert [row.id for row in frame.collect()] == [9]
    both = "SELECT count(*) FROM db.orders WHERE id NOT IN (SELECT id FROM staging.db.orders)"
    assert spark.sql(both).collect() == [(1,)]


@pytest.mark.usefixtures("staging")
def test_a_cached_table_is_that_of_its_ref_alone(spark: SparkSession) -> None:
    spark.sql("CACHE TABLE db.orders")
    assert spark.catalog.isCached("db.orders")
    assert not spark.catalog.isCached("staging.db.orders")
    frame = spark.table("staging.db.orders")
    assert "InMemoryTableScan" not in frame._jdf.queryExecution().executedPlan().toString()
    spark.sql("INSERT INTO staging.db.orders VALUES (3, 1.0, 'eu')")
    assert (found(spark, "db.orders"), found(spark, "staging.db.orders")) == ([1, 2], [1, 2, 3])
    spark.sql("CACHE TABLE staging.db.orders")
    spark.sql("UNCACHE TABLE db.orders")
    assert spark.catalog.isCached("staging.db.orders")
    spark.sql("DELETE FROM staging.db.orders WHERE id < 3")
    spark.sql("INSERT INTO db.orders VALUES (9, 1.0, 'eu')")
    assert (found(spark, "db.orders"), found(spark, "staging.db.orders")) == ([1, 2, 9], [3])


@pytest.mark.usefixtures("staging")
def test_every_change_of_rows_lands_on_the_branch_alone(spark: SparkSession, orders: Table) -> None:
    spark.sql("UPDATE staging.db.orders SET region = 'us' WHERE id = 1")
    spark.sql("DELETE FROM staging.db.orders WHERE id = 2")
    spark.sql(
        "MERGE INTO staging.db.orders t USING (SELECT id + 10 AS id, amount, region FROM db.orders) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    assert found(spark, "staging.db.orders") == of_branch(orders) == [1, 11, 12]
    spark.table("staging.db.orders").filter("id = 1").selectExpr("id + 20 AS id", "amount", "region").writeTo(
        "staging.db.orders"
    ).append()
    spark.sql("INSERT OVERWRITE staging.db.orders SELECT * FROM staging.db.orders WHERE id > 11")
    assert found(spark, "staging.db.orders") == of_branch(orders) == [12, 21]
    assert found(spark, "db.orders") == of_branch(orders, "main") == [1, 2]


@pytest.mark.usefixtures("staging")
def test_rows_that_were_read_at_another_ref_are_no_conflict(spark: SparkSession, orders: Table) -> None:
    spark.sql("INSERT INTO staging.db.orders VALUES (3, 1.0, 'eu')")
    spark.sql("INSERT OVERWRITE staging.db.orders SELECT * FROM db.orders")
    assert of_branch(orders) == [1, 2]
    spark.sql("INSERT INTO db.orders VALUES (9, 1.0, 'eu')")
    spark.sql("INSERT OVERWRITE db.orders SELECT * FROM staging.db.orders")
    assert of_branch(orders, "main") == [1, 2]


def test_a_kept_relation_says_which_branch_it_reads(spark: SparkSession, lake: Lake, staging: Lake) -> None:
    scans = [at.load_table("db.orders").scan() for at in (lake, staging, lake, staging)]
    reads = [found for scan in scans for found in branch_reads(read(scan, spark))]
    assert [found.branch for found in reads] == ["main", "staging", "main", "staging"]
    assert len({found.snapshot_id for found in reads}) == 1


@pytest.mark.parametrize("source", ["staging.db.orders", "db.orders.branch_staging"])
@pytest.mark.parametrize("written", ["staging.db.orders", "db.orders.branch_staging"])
def test_rows_that_were_read_of_the_branch_by_any_name_are_validated(
    spark: SparkSession, staging: Lake, source: str, written: str
) -> None:
    rows = spark.table(source)
    staging.load_table("db.orders").append(order_rows(3))
    with pytest.raises(ConflictError):
        rows.write.mode("overwrite").insertInto(written)


def test_a_branch_begins_with_what_was_read(spark: SparkSession, tmp_path: Path) -> None:
    with bergline.connect(f"file://{tmp_path}/objects", create=True) as lake:  # any table may join any branch here
        lake.create_namespace("db")
        lake.create_table("db.other", ORDERS).append(order_rows(1)).refs.create_branch("staging")
        orders = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        bergline.spark.attach(spark, lake, name="objects", default=False)
        rows = spark.table("`objects@staging`.db.orders")
        orders.append(order_rows(2))
        with pytest.raises(ConflictError):
            rows.write.mode("overwrite").insertInto("`objects@staging`.db.orders")
        spark.sql("INSERT INTO `objects@staging`.db.orders VALUES (3, 1.0, 'eu')")
        assert (of_branch(orders), of_branch(orders, "main")) == ([1, 2, 3], [1, 2])


def test_a_ref_is_named_behind_the_lake(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.refs.create_branch("a/b")
    spark.sql("INSERT INTO `lake@a/b`.db.orders VALUES (2, 1.0, 'eu')")
    spark.sql("INSERT INTO `lake@main`.db.orders VALUES (3, 1.0, 'eu')")
    query = "SELECT b.id FROM `lake@a/b`.db.orders b LEFT ANTI JOIN lake.db.orders m ON b.id = m.id"
    assert spark.sql(query).collect() == [(2,)]
    assert spark.sql("SELECT `lake@a/b`.db.orders.id FROM `lake@a/b`.db.orders WHERE id > 1").collect() == [(2,)]
    spark.sql("UPDATE `lake@a/b`.db.orders SET id = 5 WHERE id = 2")
    assert sorted(row.id for row in spark.table("`lake@a/b`.db.orders").collect()) == [1, 5]
    assert (found(spark, "db.orders"), found(spark, "`lake@v1`.db.orders")) == ([1, 3], [1])
    spark.sql("CALL `lake@a/b`.system.fast_forward('db.orders', 'copy', 'main')")
    assert of_branch(orders, "copy") == [1, 5]
    assert [c.name for c in spark.catalog.listCatalogs()] == ["spark_catalog", "lake"]
    assert [t.name for t in spark.catalog.listTables("`lake@a/b`.db")] == ["orders"]


def test_a_ref_is_used(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging")
    spark.sql("USE `lake@staging`")
    spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    spark.sql("USE `lake@staging`.db")
    assert (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()) == ("lake@staging", "db")
    assert found(spark, "orders") == [1, 2]
    spark.catalog.setCurrentCatalog("lake")
    assert (found(spark, "db.orders"), found(spark, "`lake@staging`.db.orders")) == ([1], [1, 2])
    spark.sql("CREATE VIEW db.big AS SELECT * FROM db.orders WHERE id > 1")
    assert (found(spark, "db.big"), found(spark, "`lake@staging`.db.big")) == ([], [2])


def test_a_ref_that_is_nowhere_lists_near_ones(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging")
    for statement in ("SELECT * FROM `lake@stagin`.db.orders", "USE `lake@stagin`"):
        with pytest.raises(IllegalArgumentException, match="no branch or tag `stagin`") as caught:
            spark.sql(statement)
        assert "did you mean `staging`?" in caught.value.hints
    with pytest.raises(AnalysisException):
        spark.table("`other@staging`.db.orders").collect()


@pytest.mark.parametrize("place", ["staging", "`lake@staging`"])
def test_names_are_the_same_at_all_refs(spark: SparkSession, staging: Lake, place: str) -> None:
    for statement in (
        f"DROP TABLE {place}.db.orders",
        f"DROP TABLE {place}.db.orders PURGE",
        f"ALTER TABLE {place}.db.orders RENAME TO db.other",
        f"DROP NAMESPACE {place}.db CASCADE",
        f"CREATE VIEW {place}.db.v AS SELECT 1 AS one",
    ):
        with pytest.raises(RefusedError, match="at branch `staging` of the lake") as caught:
            spark.sql(statement)
        assert isinstance(caught.value, IllegalArgumentException)
        assert "do it on the lake without a ref" in caught.value.hints
    assert staging.list_tables() == ["db.orders"]


@pytest.mark.parametrize("place", ["staging", "`lake@staging`"])
def test_a_table_may_be_created_on_the_branch_alone(spark: SparkSession, staging: Lake, lake: Lake, place: str) -> None:
    lake.branches.create("staging")
    spark.sql(f"CREATE TABLE {place}.db.new AS SELECT id FROM db.orders")
    spark.sql(f"INSERT INTO {place}.db.new SELECT id + 10 FROM {place}.db.new")
    assert found(spark, f"{place}.db.new") == [1, 2, 11, 12]
    assert (lake.list_tables(), staging.list_tables()) == (["db.orders"], ["db.new", "db.orders"])
    assert [t.name for t in spark.catalog.listTables("lake.db")] == ["orders"]
    assert found(spark, "db.new") == []
    lake.publish("staging")
    assert found(spark, "db.new") == [1, 2, 11, 12]


@pytest.mark.parametrize("ref", ["v1", None])
def test_a_tag_or_a_time_is_read_only(spark: SparkSession, orders: Table, ref: str | None) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    ref = dt.datetime.now(dt.UTC).isoformat() if ref is None else ref
    place = f"`lake@{ref}`.db.orders"
    assert found(spark, place) == [1]
    for statement in (
        f"INSERT INTO {place} VALUES (2, 1.0, 'eu')",
        f"UPDATE {place} SET id = 7",
        f"DELETE FROM {place} WHERE id = 1",
        f"TRUNCATE TABLE {place}",
    ):
        with pytest.raises(RefusedError, match="where nothing can be written"):
            spark.sql(statement)
    assert found(spark, "db.orders") == [1]


def test_a_lake_at_a_ref_is_configured(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging")
    bergline.spark.detach(spark)
    settings = {
        "lake.uri": f"sqlite:///{tmp_path}/catalog.db",
        "lake.default": "true",
        "staging.uri": f"sqlite:///{tmp_path}/catalog.db",
        "staging.ref": "staging",
    }
    try:
        for key, value in settings.items():
            spark.conf.set(f"spark.bergline.{key}", value)
        bergline.spark.attach(spark)
        spark.sql("INSERT INTO staging.db.orders VALUES (2, 1.0, 'eu')")
        assert (found(spark, "db.orders"), found(spark, "staging.db.orders")) == ([1], [1, 2])
        spark.sql("INSERT OVERWRITE staging.db.orders SELECT * FROM lake.db.orders")
        assert found(spark, "staging.db.orders") == [1]
        bergline.spark.detach(spark)
        spark.conf.set("spark.bergline.staging.ref", "stagin")
        with pytest.raises(NotFoundError, match="no branch or tag `stagin`") as caught:
            bergline.spark.attach(spark)
        assert "lake `staging` is configured by `spark.bergline.staging.*`" in caught.value.__notes__
    finally:
        for key in settings:
            spark.conf.unset(f"spark.bergline.{key}")


@pytest.mark.usefixtures("staging")
def test_rows_stream_from_a_ref_and_to_it(spark: SparkSession, orders: Table, tmp_path: Path) -> None:
    spark.sql("INSERT INTO staging.db.orders VALUES (3, 1.0, 'eu')")
    rows = spark.readStream.table("staging.db.orders").selectExpr("id + 10 AS id", "amount", "region")
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.toTable("staging.db.orders").awaitTermination()
    assert (of_branch(orders), of_branch(orders, "main")) == ([1, 2, 3, 11, 12, 13], [1, 2])


def test_a_pipeline_publishes_into_the_branch_of_its_lake(spark: SparkSession, staging: Lake, orders: Table) -> None:
    steps = {"more": "INSERT INTO staging.db.orders SELECT id + 10, amount, region FROM staging.db.orders"}
    pipeline = Pipeline(
        spark, staging, "nightly", tables=["db.orders"], steps=steps, audits=[unique("db.orders", "id")]
    )
    report = pipeline.run("1")
    assert report.status == "published", report
    assert (of_branch(orders), of_branch(orders, "main")) == ([1, 2, 11, 12], [1, 2])
    assert pipeline.run("1").status == "published before"
    proposing = Pipeline(spark, staging, "proposed", tables=["db.orders"], steps=steps, publish="pull request")
    number = proposing.run("1").pull_request
    assert number is not None
    request = staging.pull_requests.get(number)
    assert request.record.target == "staging"
    request.publish()
    assert (of_branch(orders), of_branch(orders, "main")) == ([1, 2, 11, 11, 12, 12, 21, 22], [1, 2])
