"""Statements in an attached session that change or show tables: names, USE, CREATE … AS, what Spark users catch."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.types.types import INT, STRING, DecimalType
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple]:
    return [tuple(row) for row in spark.sql(text).collect()]


@pytest.fixture
def other(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """A second lake, attached by name."""
    with bergline.connect(f"sqlite:///{tmp_path}/other/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS).append(order_rows(7))
        bergline.spark.attach(spark, lake, name="other", default=False)
        yield lake


def test_use_gives_names_without_a_namespace_theirs(spark: SparkSession, orders: Table, lake: Lake) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("USE db")
    assert rows(spark, "SHOW CURRENT NAMESPACE") == [("lake", "db")]
    assert rows(spark, "SHOW TABLES") == [("db", "orders", False)]
    spark.sql("INSERT INTO orders VALUES (3, 1.0, 'eu')")
    assert rows(spark, "SELECT count(*) FROM orders WHERE orders.id > 1") == [(2,)]
    assert rows(spark, "WITH orders AS (SELECT id FROM orders WHERE id = 1) SELECT * FROM orders") == [(1,)]
    assert rows(spark, "SELECT type FROM orders.refs") == [("BRANCH",)]
    assert spark.table("orders").count() == 3
    spark.sql("ALTER TABLE orders CREATE TAG v1")
    spark.sql("ALTER TABLE orders ADD COLUMN note STRING")
    spark.sql("CREATE TABLE items AS SELECT id FROM orders VERSION AS OF 'v1'")
    assert lake.list_tables("db") == ["db.items", "db.orders"]
    spark.range(1).createOrReplaceTempView("orders")
    try:
        assert rows(spark, "SELECT * FROM orders") == [(0,)]
    finally:
        spark.catalog.dropTempView("orders")
    with pytest.raises(NotFoundError, match=r"no table `db\.ordres`") as caught:
        spark.sql("SELECT * FROM ordres")
    assert isinstance(caught.value, AnalysisException)
    spark.sql("DELETE FROM orders")
    assert rows(spark, "SELECT * FROM orders") == []
    spark.sql("USE default")
    assert rows(spark, "SHOW CURRENT NAMESPACE") == [("spark_catalog", "default")]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM orders")


def test_use_of_another_lake_is_for_this_session_until_it_is_detached(
    spark: SparkSession, orders: Table, other: Lake
) -> None:
    orders.append(order_rows(1))
    spark.sql("USE other")
    assert rows(spark, "SELECT id FROM db.orders") == [(7,)]
    assert rows(spark, "SHOW NAMESPACES") == [("db",)]
    assert rows(spark, "SELECT id FROM lake.db.orders") == [(1,)]
    spark.sql("CREATE NAMESPACE fresh")
    assert other.namespace_exists("fresh")
    bergline.spark.detach(spark)
    bergline.spark.attach(spark, other, name="other")
    assert rows(spark, "SHOW CURRENT NAMESPACE") == [("spark_catalog", "default")]


def test_namespaces_of_spark_and_of_the_lake_are_both_named_until_one_is_used(spark: SparkSession) -> None:
    assert rows(spark, "SHOW NAMESPACES") == [("db",), ("default",)]
    assert rows(spark, "SHOW DATABASES LIKE 'def*'") == [("default",)]
    assert rows(spark, "SHOW NAMESPACES IN lake") == [("db",)]
    assert rows(spark, "SHOW NAMESPACES IN spark_catalog") == [("default",)]
    spark.sql("USE lake")
    assert rows(spark, "SHOW NAMESPACES") == [("db",)]
    spark.sql("USE spark_catalog")
    spark.sql("CREATE NAMESPACE spark_catalog.own")
    try:
        assert [row for row in rows(spark, "SHOW TABLES IN own") if row[0]] == []  # the others are temporary views
        spark.sql("CREATE TABLE own.t (id INT) USING parquet")
        assert rows(spark, "DESCRIBE own.t") == [("id", "int", None)]
    finally:
        spark.sql("DROP NAMESPACE own CASCADE")


def test_create_as_takes_columns_and_rows_of_a_query(spark: SparkSession, orders: Table, lake: Lake) -> None:
    orders.append(order_rows(1, 2, 3))
    spark.sql(
        "CREATE TABLE db.copy USING iceberg PARTITIONED BY (bucket(2, id)) COMMENT 'c' TBLPROPERTIES ('k' = 'v') AS "
        "WITH q AS (SELECT * FROM db.orders WHERE id > 1) "
        "SELECT CAST(id AS INT) AS id, CAST(amount AS DECIMAL(9, 2)) AS price, struct(region) AS place FROM q"
    )
    table = lake.load_table("db.copy")
    assert [(f.name, f.required) for f in table.schema.fields] == [("id", False), ("price", False), ("place", False)]
    assert [table.schema.names[n].type for n in ("id", "price", "place.region")] == [INT, DecimalType(9, 2), STRING]
    assert (table.properties["comment"], table.properties["k"]) == ("c", "v")
    assert sorted(rows(spark, "SELECT id, place.region FROM db.copy")) == [(2, "eu"), (3, "eu")]
    assert len(rows(spark, "SHOW PARTITIONS db.copy")) == len({f.file.partition for f in table.scan().plan().files})
    spark.sql("CREATE TABLE IF NOT EXISTS db.copy AS SELECT 1 / 0 AS never")
    with pytest.raises(AlreadyExistsError, match=r"table `db\.copy` exists already"):
        spark.sql("CREATE TABLE db.copy AS SELECT 1 AS x")


def test_replace_keeps_the_history_and_reads_the_table_itself(spark: SparkSession, orders: Table, lake: Lake) -> None:
    orders.append(order_rows(1, 2)).refs.create_tag("old")
    spark.sql("CREATE OR REPLACE TABLE db.orders AS SELECT id + 10 AS id FROM db.orders")
    assert sorted(rows(spark, "SELECT * FROM db.orders")) == [(11,), (12,)]
    assert spark.table("db.orders.tag_old").count() == 2
    spark.sql("REPLACE TABLE db.orders (a INT, b STRING) PARTITIONED BY (a)")
    assert rows(spark, "SELECT * FROM db.orders") == []
    assert len(lake.load_table("db.orders").metadata.snapshots) == 2
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        spark.sql("REPLACE TABLE db.nope AS SELECT 1 AS x")


def test_create_as_that_fails_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql("CREATE TABLE db.bad AS SELECT id / (id - 5) AS x FROM range(10)")
    with pytest.raises(UnsupportedError, match=r"found `interval.*` in column `x`"):
        spark.sql("CREATE TABLE db.bad AS SELECT INTERVAL 1 DAY AS x")
    assert lake.list_tables("db") == []
    home = Path(lake.catalog.default_location(bergline.catalog.identifiers.TableName(("db",), "bad"))[7:])
    assert not [f for f in home.rglob("*") if f.is_file()]


def test_lake_tables_are_copied_into_sparks_own(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("CREATE TABLE default.copied USING parquet AS SELECT id FROM db.orders")
    try:
        assert sorted(rows(spark, "SELECT * FROM default.copied")) == [(1,), (2,)]
    finally:
        spark.sql("DROP TABLE default.copied")


def test_tables_and_namespaces_are_the_users(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE NAMESPACE mine COMMENT 'words'")
    spark.sql("CREATE TABLE mine.t (id INT)")
    user = spark.sparkContext.sparkUser()
    assert lake.load_table("mine.t").properties["owner"] == user
    assert rows(spark, "DESCRIBE NAMESPACE mine") == [
        ("Catalog Name", "lake"),
        ("Namespace Name", "mine"),
        ("Comment", "words"),
        ("Owner", user),
    ]
    spark.sql("DROP NAMESPACE mine CASCADE")
    assert not lake.namespace_exists("mine")


@pytest.mark.parametrize(
    ("statement", "theirs", "message"),
    [
        ("CREATE TABLE db.t (id FOO)", ParseException, "expected a type that Iceberg has"),
        ("CREATE TABLE db.t (id INT) PARTITIONED BY (idd)", AnalysisException, "no column `idd`"),
        ("CREATE TABLE db.t (id INT", ParseException, "expected `NOT NULL`.*line 1, column 26"),
        ("ALTER TABLE db.orders RENAME COLUMN amonut TO x", AnalysisException, "no column `amonut`"),
        ("ALTER TABLE db.orders ALTER COLUMN id TYPE INT", AnalysisException, "types only widen"),
        ("ALTER TABLE db.orders.refs ADD COLUMN x INT", IllegalArgumentException, "expected a table, found"),
        ("DESCRIBE db.orders amonut", AnalysisException, "no column `amonut`"),
        ("DESCRIBE db.ordres", AnalysisException, r"no table `db\.ordres`"),
        ("SHOW CREATE TABLE lake.db.ordres", AnalysisException, r"no table `db\.ordres`"),
        ("DROP NAMESPACE db", AnalysisException, "it is not empty"),
        ("SHOW TABLES IN nope", AnalysisException, "SCHEMA_NOT_FOUND"),
        ("SHOW TABLES IN lake.nope", AnalysisException, "no namespace `nope`"),
    ],
)
def test_bad_statements_are_one_error_that_spark_users_catch(
    spark: SparkSession, orders: Table, statement: str, theirs: type[Exception], message: str
) -> None:
    before = orders.metadata_location
    with pytest.raises(theirs, match=message) as caught:
        spark.sql(statement)
    assert isinstance(caught.value, BerglineError) != ("SQLSTATE" in str(caught.value))
    assert orders.refresh().metadata_location == before


def test_near_names_are_listed(spark: SparkSession, orders: Table) -> None:
    for statement in ("DESCRIBE db.ordres", "ALTER TABLE db.orders DROP COLUMN amonut"):
        with pytest.raises(NotFoundError) as caught:
            spark.sql(statement)
        assert any("did you mean" in hint for hint in caught.value.hints)


def test_names_that_say_a_catalog_of_sparks_are_sparks(spark: SparkSession, orders: Table) -> None:
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        spark.sql("DESCRIBE spark_catalog.db.orders")
    with pytest.raises(InvalidInputError, match="expected a namespace, found the lake"):
        spark.sql("DESCRIBE NAMESPACE lake")


def test_columns_may_have_dots_in_their_names(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id BIGINT, s STRUCT<a: INT>) USING iceberg")
    spark.sql("INSERT INTO db.t VALUES (1, named_struct('a', 1))")
    spark.sql("ALTER TABLE db.t ADD COLUMNS (`x.y` INT AFTER id, s.`u.v` STRING, `p.q` STRUCT<r: INT>)")
    spark.sql("ALTER TABLE db.t ADD COLUMN `p.q`.`a.b` INT")
    spark.sql("INSERT INTO db.t (id, `x.y`) VALUES (2, 20)")
    spark.sql("UPDATE db.t SET t.`x.y` = 10, s.`u.v` = 'w' WHERE id = 1")
    spark.sql(
        "MERGE INTO db.t USING (SELECT 30 AS `x.y`) AS c ON t.`x.y` = c.`x.y` "
        "WHEN NOT MATCHED THEN INSERT (`x.y`) VALUES (c.`x.y`)"
    )
    spark.sql("ALTER TABLE db.t ALTER COLUMN `x.y` TYPE BIGINT")
    spark.sql("ALTER TABLE db.t ALTER COLUMN s.`u.v` COMMENT 'words', `x.y` FIRST")
    spark.sql("ALTER TABLE db.t RENAME COLUMN `x.y` TO `x.z`")
    spark.sql("ALTER TABLE db.t ADD PARTITION FIELD bucket(4, `x.z`)")
    spark.sql("ALTER TABLE db.t WRITE ORDERED BY `x.z`")
    spark.sql("ALTER TABLE db.t DROP COLUMN `p.q`.`a.b`")
    spark.sql("DELETE FROM db.t WHERE `x.z` = 20")
    assert rows(spark, "SELECT `x.z`, s.`u.v`, `p.q` FROM db.t ORDER BY 1") == [(10, "w", None), (30, None, None)]
    assert str(lake.load_table("db.t").schema.find("p.q").type) == "struct<r: int>"
    created = rows(spark, "SHOW CREATE TABLE db.t")[0][0]
    assert "`x.z` BIGINT" in created
    assert "bucket(4, `x.z`)" in created
    with pytest.raises(AlreadyExistsError, match=r"column `x\.z` exists already"):
        spark.sql("ALTER TABLE db.t ADD COLUMN `X.z` INT")
    with pytest.raises(NotFoundError, match="no column `x`"):
        spark.sql("ALTER TABLE db.t ADD COLUMN x.a INT")
