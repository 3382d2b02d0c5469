"""An attached session: reads, writes, names, and everything that is not ours."""

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException, SparkRuntimeException
from pyspark.errors import IllegalArgumentException as SparkIllegalArgument
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import (
    BerglineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.spark


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


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
        ("SELECT * FROM db.orders WHERE (", ParseException, ParseException, "PARSE_SYNTAX_ERROR"),
        ("SELECT * FROM db.orders VERSION AS OF dev", ParseException, ParseException, "PARSE_SYNTAX_ERROR"),
        ("INSERT INTO db.orders VALUES (1)", InvalidInputError, AnalysisException, "expected 3 columns"),
        (
            "INSERT INTO db.orders VALUES ('x', 1.0, 'eu')",
            InvalidInputError,
            AnalysisException,
            "expected `bigint`, found `string` for column `id`",
        ),
        (
            "INSERT INTO db.orders VALUES (null, 1.0, 'eu')",
            InvalidInputError,
            SparkRuntimeException,
            "required column `id`, found 1 null$",
        ),
        ("INSERT INTO db.orders (amount) VALUES (1)", InvalidInputError, AnalysisException, "required column `id`"),
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
        ("UPDATE db.orders SET nope = 1", NotFoundError, AnalysisException, "no column `nope`"),
        (
            "MSCK REPAIR TABLE db.orders",
            UnsupportedError,
            AnalysisException,
            "cannot run MSCK",
        ),
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


def test_columns_that_differ_only_in_case_are_refused_in_sql(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="found `id` and `ID`"):
        spark.sql("CREATE TABLE db.t (id INT, ID INT) USING iceberg")
    assert lake.list_tables("db") == []


def test_procedures_take_parameters(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    named = spark.sql("CALL system.ancestors_of(table => :t)", args={"t": "db.orders"}).collect()
    placed = spark.sql("CALL system.ancestors_of(?, ?)", args=["db.orders", named[0].snapshot_id]).collect()
    assert [row.snapshot_id for row in placed] == [orders.refresh().refs["main"].snapshot_id]
    with pytest.raises(InvalidInputError, match=r"expected a value in `args` for `:t`, found none"):
        spark.sql("CALL system.ancestors_of(:t)", args={"table": "db.orders"})


def test_statements_that_are_not_there_yet_say_what_to_do_instead(spark: SparkSession, orders: Table) -> None:
    with pytest.raises(UnsupportedError) as caught:
        spark.sql(f"MERGE INTO spark_catalog.default.t USING {orders.name} o ON t.id = o.id WHEN MATCHED THEN DELETE")
    assert "temporary view" in caught.value.hints[0]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELEC * FROM db.orders", "expected `SELECT`, found `SELEC` at line 1, column 1"),
        ("INSRT INTO db.orders VALUES (1)", "expected `INSERT`, found `INSRT` at line 1, column 1"),
        ("ALTER TABLE db.orders CRAETE BRANCH x", "expected `ADD`, .* found `CRAETE` at line 1, column 23"),
        ("CREATE VIEW v AS SELECT * FROM db.orders", r"a view of `db\.orders`, found `v`"),
        ("CREATE TABLE db.t (id INT) STORED AS ORC", "cannot create `db.t` with"),
        (
            "CALL nosuch.system.fast_forward('db.orders', 'zz', 'main')",
            r"does not support procedures|UNRESOLVED_ROUTINE",
        ),
        ("ALTER TABLE db.orders CREATE BRANCH b-1", "back-quotes around the name"),
    ],
)
def test_mistyped_and_unsupported_statements_say_what_is_wrong(
    spark: SparkSession, orders: Table, statement: str, message: str
) -> None:
    orders.append(order_rows(1))
    with pytest.raises(PySparkException, match=message):
        spark.sql(statement)
    assert set(orders.refresh().refs) == {"main"}
