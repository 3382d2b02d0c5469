"""An attached session: reads, writes, names, and everything that is not ours."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException, UnsupportedOperationException
from pyspark.errors import IllegalArgumentException as SparkIllegalArgument
from pyspark.sql import SparkSession
from rows import ORDERS, ids, order_rows

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    SqlSyntaxError,
    UnsupportedError,
)

pytestmark = pytest.mark.spark

NESTED = """CREATE TABLE db.wide (
    id BIGINT NOT NULL, flag BOOLEAN, i INT, f FLOAT, d DOUBLE, dec DECIMAL(10, 2), day DATE, ts TIMESTAMP,
    ntz TIMESTAMP_NTZ, s STRING, bin BINARY, list ARRAY<INT>, who STRUCT<name: STRING, age: INT>, m MAP<STRING, BIGINT>
) USING iceberg PARTITIONED BY (days(ts), bucket(4, id), truncate(2, s))"""
WIDE_ROW = (
    "1, true, 2, CAST(1.5 AS FLOAT), 2.5D, 3.25, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05', "
    "TIMESTAMP_NTZ '2026-01-02 03:04:05', 'text', X'00ff', array(1, null), named_struct('name', 'x', 'age', null), "
    "map('k', 7L)"
)


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def test_every_type_comes_back_as_it_was_written(spark: SparkSession, lake: Lake) -> None:
    spark.sql(NESTED)
    spark.sql(f"INSERT INTO db.wide VALUES ({WIDE_ROW})")
    spark.sql("INSERT INTO db.wide (id) VALUES (2)")
    expected = spark.sql(f"SELECT {WIDE_ROW}").collect()[0]
    first, second = spark.sql("SELECT * FROM db.wide ORDER BY id").collect()
    assert tuple(first) == tuple(expected)
    assert tuple(second) == (2, *[None] * 13)
    arrow = lake.load_table("db.wide").scan("id = 1").to_arrow().to_pylist()[0]
    assert (arrow["who"], arrow["list"], arrow["m"]) == ({"name": "x", "age": None}, [1, None], [("k", 7)])


def test_arrow_and_spark_write_and_read_the_same_table(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("INSERT INTO db.orders VALUES (3, 30.0, 'us')")
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2, 3]
    assert query(spark, "SELECT id, region FROM db.orders") == [(1, "eu"), (2, "eu"), (3, "us")]


def test_queries_of_every_shape_find_their_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    spark.createDataFrame([(1, "one"), (2, "two")], "id long, word string").createOrReplaceTempView("words")
    assert query(spark, "WITH q AS (SELECT id FROM db.orders WHERE id > 1) SELECT * FROM q") == [(2,), (3,)]
    assert query(spark, "SELECT w.word FROM lake.db.orders o JOIN words w ON o.id = w.id") == [("one",), ("two",)]
    assert query(spark, "SELECT count(*) FROM db.orders WHERE id IN (SELECT id FROM words)") == [(2,)]
    assert query(spark, "SELECT '{x}', db.orders.id FROM db.orders WHERE orders.id = 3 -- {y}") == [("{x}", 3)]
    assert query(spark, "SELECT id FROM `db`.`orders` UNION ALL SELECT -id FROM db.orders WHERE id = 1")[0] == (-1,)
    assert [r.id for r in spark.sql("SELECT id FROM db.orders WHERE id = :x", args={"x": 2}).collect()] == [2]
    assert [r.id for r in spark.sql("SELECT id FROM db.orders WHERE id = ?", args=[3]).collect()] == [3]
    assert spark.table("db.orders").where("amount > 15").count() == 2
    assert spark.read.table("db.orders").count() == 3


def test_time_travel_by_clause_and_by_name(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    first, second = orders.metadata.snapshots
    orders.refs.create_tag("v1", at=first.snapshot_id)
    orders.append(order_rows(3), branch="dev")
    expected = {
        f"db.orders VERSION AS OF {first.snapshot_id}": [1],
        f"db.orders VERSION AS OF '{first.snapshot_id}'": [1],
        "db.orders VERSION AS OF 'v1'": [1],
        "db.orders FOR VERSION AS OF 'dev'": [1, 2, 3],
        "db.orders.tag_v1": [1],
        "db.orders.branch_dev": [1, 2, 3],
        f"db.orders.snapshot_id_{second.snapshot_id}": [1, 2],
        f"db.orders.at_timestamp_{second.timestamp_ms}": [1, 2],
        "db.orders TIMESTAMP AS OF '2099-01-01 00:00:00'": [1, 2],
        f"db.orders TIMESTAMP AS OF timestamp_millis({first.timestamp_ms}) + INTERVAL '0' SECOND AS o": [1],
        "db.orders TIMESTAMP AS OF (SELECT max(committed_at) FROM db.orders.snapshots) WHERE id > 1": [2],
    }
    assert {k: [r[0] for r in query(spark, f"SELECT id FROM {k}")] for k in expected} == expected
    text, when = "SELECT id FROM db.orders TIMESTAMP AS OF :when::timestamp WHERE id < :less", "2099-01-01"
    assert [r.id for r in spark.sql(text, args={"when": when, "less": 2}).collect()] == [1]
    with pytest.raises(UnsupportedError, match=r"expected a parameter with a name after AS OF, found `\?`"):
        spark.sql("SELECT id FROM db.orders TIMESTAMP AS OF ?", args=[when])
    with pytest.raises(InvalidInputError, match="expected a time after AS OF, found NULL"):
        spark.sql("SELECT id FROM db.orders TIMESTAMP AS OF CAST(NULL AS DATE)")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql("SELECT id FROM db.orders TIMESTAMP AS OF id")


def test_wap_branch_is_created_by_the_first_write_and_read_if_it_exists(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.conf.set("spark.wap.branch", "audit")
    assert query(spark, "SELECT id FROM db.orders") == [(1,)]
    spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    assert query(spark, "SELECT id FROM db.orders") == [(1,), (2,)]
    assert query(spark, "SELECT id FROM db.orders VERSION AS OF 'main'") == [(1,)]
    assert query(spark, "SELECT id FROM db.orders.branch_main") == [(1,)]


def test_table_can_opt_out_of_wap(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).set_properties({"write.wap.enabled": "false"})
    spark.conf.set("spark.wap.branch", "audit")
    spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    assert set(orders.refresh().refs) == {"main"}


def test_dynamic_overwrite_replaces_partitions(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("db.parts", ORDERS, partition_by=["region"]).append(order_rows(1)).append(
        order_rows(2, region="us")
    )
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql("INSERT OVERWRITE db.parts VALUES (3, 1.0, 'us')")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert query(spark, "SELECT id FROM db.parts") == [(1,), (3,)]


def test_dataframes_write_by_name_and_to_branches(spark: SparkSession, orders: Table) -> None:
    frame = spark.createDataFrame([("us", 1)], "region string, id int")
    frame.writeTo("db.orders").append()
    frame.writeTo("db.orders").option("branch", "dev").append()
    frame.writeTo("db.orders.branch_dev").append()
    assert query(spark, "SELECT * FROM db.orders") == [(1, None, "us")]
    assert spark.table("db.orders.branch_dev").count() == 3
    frame.writeTo("db.orders").overwritePartitions()
    assert spark.table("db.orders").count() == 1


def test_numbers_are_stored_exactly_or_not_at_all(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.small (i INT, d DECIMAL(4, 2)) USING iceberg")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(Exception, match=r"overflow|CAST_OVERFLOW"):
            spark.sql("INSERT INTO db.small VALUES (3000000000, 1)")
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert lake.load_table("db.small").current_snapshot is None
    assert not [f for f in lake.load_table("db.small").io.list(lake.load_table("db.small").location) if "parquet" in f]


def test_what_is_not_ours_passes_through(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.sql("SELECT 1 AS one").collect()[0].one == 1
    assert spark.sql("SELECT {n} AS n", n=5).collect()[0].n == 5
    spark.range(3).createOrReplaceTempView("numbers")
    assert spark.table("numbers").count() == 3
    assert spark.sql("SHOW TABLES").columns == ["namespace", "tableName", "isTemporary"]
    spark.sql("CREATE TABLE default.plain (id BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO default.plain VALUES (1)")
        assert query(spark, "SELECT * FROM default.plain") == [(1,)]
    finally:
        spark.sql("DROP TABLE default.plain")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nowhere.orders")
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELEC 1")


def test_lake_rows_can_go_into_sparks_own_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("CREATE TABLE default.copy (id BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO default.copy SELECT id FROM db.orders")
        assert query(spark, "SELECT * FROM default.copy") == [(1,), (2,)]
        spark.sql("INSERT OVERWRITE default.copy SELECT id FROM db.orders WHERE id > 1")
        assert query(spark, "SELECT * FROM default.copy") == [(2,)]
        spark.sql("CREATE TABLE default.other USING parquet AS SELECT id FROM db.orders WHERE id < 2")
        assert query(spark, "SELECT * FROM default.other") == [(1,)]
    finally:
        spark.sql("DROP TABLE default.copy")
        spark.sql("DROP TABLE IF EXISTS default.other")


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


@pytest.mark.parametrize(
    "use",
    [
        lambda spark: spark.sql(5),
        lambda spark: spark.table(5),
        lambda spark: spark.read.table(5),
        lambda spark: spark.range(1).writeTo(5),
        lambda spark: spark.range(1).write.insertInto(5),
        lambda spark: spark.range(1).write.saveAsTable(5),
        lambda spark: spark.catalog.tableExists(5),
        lambda spark: spark.catalog.listColumns(5),
        lambda _: bergline.spark.detach(5),
    ],
)
def test_what_is_no_text_is_refused(spark: SparkSession, use: Callable[[SparkSession], Any]) -> None:
    with pytest.raises(BerglineError, match="expected "):
        use(spark)


def test_temporary_views_are_made_in_several_threads(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))

    def make(place: int) -> int:
        for _ in range(3):
            spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW thread_{place} AS SELECT * FROM db.orders")
        return spark.table(f"thread_{place}").count()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == [1] * 4
    for place in range(4):
        spark.catalog.dropTempView(f"thread_{place}")
    assert spark.conf.get("spark.sql.legacy.storeAnalyzedPlanForView", None) is None


def test_lake_in_use_without_a_namespace_lists_no_tables(spark: SparkSession, orders: Table) -> None:
    spark.sql("USE lake")
    assert spark.catalog.listTables() == []
    assert [table.name for table in spark.catalog.listTables("db")] == ["orders"]


def test_other_sessions_are_untouched_and_detach_restores(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    patched = SparkSession.sql
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.newSession().sql("SELECT * FROM db.orders")
    assert spark.table("db.orders").count() == 1
    assert spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.threshold") == "32"
    bergline.spark.detach(spark)
    assert SparkSession.sql is not patched
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM db.orders")


def test_planned_scan_is_a_dataframe(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    scan = orders.scan("id > 1", columns=["id"])
    assert len(scan.plan().files) == 1
    assert [tuple(r) for r in bergline.spark.read(scan, spark).collect()] == [(2,)]


def test_rows_of_a_filtered_scan_are_filtered_on_spark_too(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    assert sorted(r.id for r in bergline.spark.read(orders.scan("id >= 2"), spark).collect()) == [2, 3]


@pytest.mark.parametrize(
    ("statement", "ours", "theirs", "message"),
    [
        ("SELECT * FROM db.ordres", NotFoundError, AnalysisException, r"no table `db\.ordres`"),
        ("SELECT * FROM db.orders.snapshot", NotFoundError, AnalysisException, "no metadata table `snapshot`"),
        (
            "SELECT * FROM db.orders VERSION AS OF 'nope'",
            NotFoundError,
            SparkIllegalArgument,
            "no branch or tag `nope`",
        ),
        ("SELECT * FROM db.orders VERSION AS OF 999", NotFoundError, SparkIllegalArgument, "no snapshot with id 999"),
        ("SELECT * FROM db.orders TIMESTAMP AS OF '2001-01-01'", NotFoundError, SparkIllegalArgument, "no snapshot at"),
        (
            "SELECT * FROM db.orders.branch_v1 VERSION AS OF 'v1'",
            InvalidInputError,
            SparkIllegalArgument,
            "one version",
        ),
        ("SELECT FROM WHERE db.orders", SqlSyntaxError, ParseException, "line 1, column 17"),
        ("SELECT * FROM db.orders WHERE (", SqlSyntaxError, ParseException, "cannot read the statement"),
        ("INSERT INTO db.orders VALUES (1)", InvalidInputError, SparkIllegalArgument, "expected 3 columns"),
        (
            "INSERT INTO db.orders VALUES ('x', 1.0, 'eu')",
            InvalidInputError,
            SparkIllegalArgument,
            "expected `bigint`, found `string` for column `id`",
        ),
        (
            "INSERT INTO db.orders VALUES (null, 1.0, 'eu')",
            InvalidInputError,
            SparkIllegalArgument,
            "required column `id`, found 1 null$",
        ),
        ("INSERT INTO db.orders (amount) VALUES (1)", InvalidInputError, SparkIllegalArgument, "required column `id`"),
        ("INSERT INTO db.orders (id, nope) VALUES (1, 2)", NotFoundError, AnalysisException, "no column `nope`"),
        ("INSERT INTO db.orders.tag_v1 VALUES (1, 1.0, 'x')", RefusedError, SparkIllegalArgument, "it is a tag"),
        (
            "INSERT INTO db.orders.at_timestamp_9 VALUES (1, 1.0, 'x')",
            RefusedError,
            SparkIllegalArgument,
            "time travel",
        ),
        ("INSERT INTO db.orders.branch_v1 VALUES (1, 1.0, 'x')", RefusedError, SparkIllegalArgument, "it is a tag"),
        ("INSERT INTO db.orders.branch_x VALUES (1, 1.0, 'x')", NotFoundError, SparkIllegalArgument, "no branch `x`"),
        ("INSERT INTO db.orders.refs VALUES (1, 1.0, 'x')", RefusedError, SparkIllegalArgument, "metadata tables"),
        ("INSERT INTO db.nope VALUES (1)", NotFoundError, AnalysisException, r"no table `db\.nope`"),
        ("DELETE FROM db.orders WHERE id = 1", UnsupportedError, UnsupportedOperationException, "cannot run DELETE"),
        ("UPDATE db.orders SET id = 1", UnsupportedError, UnsupportedOperationException, "cannot run UPDATE"),
        (
            "MERGE INTO db.orders o USING (SELECT 1 AS id) n ON o.id = n.id WHEN MATCHED THEN DELETE",
            UnsupportedError,
            UnsupportedOperationException,
            "cannot run MERGE",
        ),
        ("TRUNCATE TABLE db.orders", UnsupportedError, UnsupportedOperationException, "cannot run TRUNCATE"),
        ("DELETE FROM db.ordres WHERE id = 1", NotFoundError, AnalysisException, r"no table `db\.ordres`"),
        ("CREATE TABLE db.orders (id INT) USING iceberg", BerglineError, AnalysisException, "exists already"),
        ("CREATE TABLE nope.t (id INT) USING iceberg", NotFoundError, AnalysisException, "no namespace `nope`"),
        ("CALL system.expire_snapshot('db.orders')", NotFoundError, AnalysisException, "no procedure"),
    ],
)
def test_bad_input_is_one_clear_error_and_changes_nothing(
    spark: SparkSession,
    orders: Table,
    statement: str,
    ours: type[Exception],
    theirs: type[Exception],
    message: str,
) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    before, files = orders.metadata_location, orders.io.list(orders.location)
    with pytest.raises(ours, match=message) as caught:
        spark.sql(statement)
    assert isinstance(caught.value, theirs)
    assert orders.refresh().metadata_location == before
    assert orders.io.list(orders.location) == files


def test_frame_that_does_not_fit_is_refused(spark: SparkSession, orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no column `colour`"):
        spark.createDataFrame([(1, "red")], "id long, colour string").writeTo("db.orders").append()
    assert orders.refresh().current_snapshot is None


def test_missing_data_file_names_the_file(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    path = orders.scan().plan().files[0].file.file_path
    Path(path.removeprefix("file://")).unlink()
    with pytest.raises(Exception, match=path.rsplit("/", 1)[-1]):
        spark.sql("SELECT * FROM db.orders").collect()
    with pytest.raises(NotFoundError, match="no file"):
        orders.scan().to_arrow()


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("branch", "dev", [1, 2]),
        ("tag", "v1", [1]),
        ("versionAsOf", "v1", [1]),
        ("snapshot-id", "the id of v1", [1]),
        ("timestampAsOf", "2099-01-01", [1, 3]),
        ("as-of-timestamp", "the time of v1", [1]),
        ("as-of-timestamp", "4070908800000", [1, 3]),
    ],
)
def test_reader_options_choose_the_version(
    spark: SparkSession, orders: Table, key: str, value: str, expected: list[int]
) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.append(order_rows(2), branch="dev").append(order_rows(3))
    v1 = orders.metadata.snapshots[0]
    value = value.replace("the id of v1", str(v1.snapshot_id)).replace("the time of v1", str(v1.timestamp_ms))
    assert sorted(r.id for r in spark.read.option(key, value).table("db.orders").collect()) == expected
    assert sorted(r.id for r in spark.read.options(**{key: value}).table("db.orders").collect()) == expected


def test_reader_options_that_are_not_understood_are_refused(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(UnsupportedError, match="found `brnach`"):
        spark.read.option("brnach", "dev").table("db.orders")
    with pytest.raises(InvalidInputError, match="one version"):
        spark.read.option("branch", "dev").option("tag", "v1").table("db.orders")
    with pytest.raises(NotFoundError, match="no snapshot at or before 2001-01-01"):
        spark.read.option("timestampAsOf", "2001-01-01").table("db.orders")
    spark.range(2).createOrReplaceTempView("numbers")
    assert spark.read.option("anything", "goes").table("numbers").count() == 2


def test_dataframe_writes_raise_what_spark_users_catch(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    frame = spark.createDataFrame([(1,)], "id long")
    for wrong in ("", None, "v1"):
        with pytest.raises(SparkIllegalArgument):
            frame.writeTo("db.orders").option("branch", wrong).append()
    with pytest.raises(UnsupportedOperationException, match="found `brnch`"):
        frame.writeTo("db.orders").option("brnch", "x")
    with pytest.raises(AnalysisException, match="no column `x`"):
        frame.toDF("x").writeTo("db.orders").append()
    with pytest.raises(AnalysisException, match=r"no table `db\.new`"):
        frame.writeTo("db.new").append()
    assert set(orders.refresh().refs) == {"main", "v1"}
    assert len(orders.metadata.snapshots) == 1


def test_columns_that_differ_only_in_case_are_refused_in_sql(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="found `id` and `ID`"):
        spark.sql("CREATE TABLE db.t (id INT, ID INT) USING iceberg")
    assert lake.list_tables("db") == []


def test_lake_in_memory_is_refused_by_attach(spark: SparkSession) -> None:
    with bergline.connect("memory:") as lake, pytest.raises(UnsupportedError, match="found them in memory"):
        bergline.spark.attach(spark, lake, name="mem")


def test_procedures_take_parameters(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    named = spark.sql("CALL system.ancestors_of(table => :t)", args={"t": "db.orders"}).collect()
    placed = spark.sql("CALL system.ancestors_of(?, ?)", args=["db.orders", named[0].snapshot_id]).collect()
    assert [row.snapshot_id for row in placed] == [orders.refresh().refs["main"].snapshot_id]
    with pytest.raises(InvalidInputError, match=r"expected a value in `args` for `:t`, found none"):
        spark.sql("CALL system.ancestors_of(:t)", args={"table": "db.orders"})


def test_what_is_no_lake_is_refused_by_attach(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="expected a lake, found 'lake'"):
        bergline.spark.attach(spark, "lake")  # type: ignore[arg-type]


@pytest.mark.parametrize("keyword", ["DELETE FROM", "UPDATE", "MERGE INTO", "TRUNCATE TABLE"])
def test_statements_that_are_not_there_yet_say_what_to_do_instead(
    spark: SparkSession, orders: Table, keyword: str
) -> None:
    rest = {
        "DELETE FROM": "WHERE id = 1",
        "UPDATE": "SET id = 1",
        "MERGE INTO": "USING range(3) AS s ON orders.id = s.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE": "",
    }[keyword]
    with pytest.raises(UnsupportedError) as caught:
        spark.sql(f"{keyword} {orders.name} {rest}")
    assert "INSERT" in caught.value.hints[0]


def test_explain_read_names_the_table_and_what_it_cannot_explain(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    assert bergline.spark.explain_read(spark.table("db.orders").where("id = 1")).startswith("db.orders: 1 file of ")
    assert bergline.spark.explain_read(spark.sql("SELECT * FROM db.orders")).startswith("db.orders: 1 file of ")
    with pytest.raises(InvalidInputError, match=r"expected a DataFrame or a scan to explain, found 'db\.orders'"):
        bergline.spark.explain_read("db.orders")  # type: ignore[arg-type]
    for other in (spark.range(3), spark.table("db.orders.files")):
        with pytest.raises(InvalidInputError, match="expected a frame that reads a lake table, found one of something"):
            bergline.spark.explain_read(other)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELEC * FROM db.orders", "expected `SELECT`, found `SELEC` at line 1, column 1"),
        ("INSRT INTO db.orders VALUES (1)", "expected `INSERT`, found `INSRT` at line 1, column 1"),
        ("ALTER TABLE db.orders CRAETE BRANCH x", "expected `ADD`, .* found `CRAETE` at line 1, column 23"),
        ("CREATE VIEW v AS SELECT * FROM db.orders", r"cannot run CREATE VIEW with `db\.orders` yet"),
        ("CREATE TABLE db.t (id INT) STORED AS ORC", "cannot create `db.t` with"),
        (
            "CALL nosuch.system.fast_forward('db.orders', 'zz', 'main')",
            r"does not support procedures|UNRESOLVED_ROUTINE",
        ),
        ("ALTER TABLE db.orders CREATE BRANCH b-1", "back-quotes around the name"),
        ("SELECT * FROM db.orders VERSION AS OF dev", "expected a literal after AS OF"),
    ],
)
def test_mistyped_and_unsupported_statements_say_what_is_wrong(
    spark: SparkSession, orders: Table, statement: str, message: str
) -> None:
    orders.append(order_rows(1))
    with pytest.raises(PySparkException, match=message):
        spark.sql(statement)
    assert set(orders.refresh().refs) == {"main"}
