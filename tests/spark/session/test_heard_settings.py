"""Settings of a session that change what is stored, or what a text means: we do what Spark does by them."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.errors import BerglineError
from bergline.spark.backends.choose import backend_of
from bergline.spark.backends.classic.java_classes import scala_object
from bergline.spark.statements.session_text import session_text
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark

_POLICY = "spark.sql.storeAssignmentPolicy"
_NTZ = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}
_DOUBLE_QUOTED = {"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"}
_CASE = {"spark.sql.caseSensitive": "true"}
_PAGE = Path(__file__).parents[3] / "docs/reference/spark-settings.md"


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in values:
            spark.conf.unset(name)


def wide(spark: SparkSession) -> Any:
    """A row for the narrow table, whose number and time are of wider types."""
    return spark.sql("SELECT 5L AS i, TIMESTAMP '2020-01-02 03:04:05' AS d, 'x' AS s")


@pytest.fixture
def narrow(spark: SparkSession, lake: Lake) -> Table:
    spark.sql("CREATE TABLE db.n (i INT, d DATE, s STRING) USING iceberg")
    spark.sql("INSERT INTO db.n VALUES (1, DATE '2020-01-01', 'a')")
    return lake.load_table("db.n")


WRITES: dict[str, Callable[[SparkSession], Any]] = {
    "insert": lambda spark: spark.sql("INSERT INTO db.n SELECT 5L, DATE '2020-01-02', 'x'"),
    "a time": lambda spark: spark.sql("INSERT INTO db.n SELECT 5, TIMESTAMP '2020-01-02 03:04:05', 'x'"),
    "by name": lambda spark: spark.sql("INSERT INTO db.n BY NAME SELECT 5L AS i"),
    "overwrite": lambda spark: spark.sql("INSERT OVERWRITE db.n SELECT 5L, DATE '2020-01-02', 'x'"),
    "update": lambda spark: spark.sql("UPDATE db.n SET i = 5L"),
    "update of nothing": lambda spark: spark.sql("UPDATE db.n SET d = TIMESTAMP '2020-01-02 03:04:05' WHERE i = 9"),
    "merge": lambda spark: spark.sql(
        "MERGE INTO db.n USING (SELECT 1 AS k, 5L AS v) u ON i = k WHEN MATCHED THEN UPDATE SET i = v"
    ),
    "merge star": lambda spark: spark.sql(
        "MERGE INTO db.n USING (SELECT 7L AS i, NULL AS d, 'z' AS s) u ON n.i = u.i WHEN NOT MATCHED THEN INSERT *"
    ),
    "writeTo": lambda spark: wide(spark).writeTo("db.n").append(),
    "overwritePartitions": lambda spark: wide(spark).writeTo("db.n").overwritePartitions(),
    "insertInto": lambda spark: wide(spark).write.insertInto("db.n"),
    "saveAsTable": lambda spark: wide(spark).write.mode("append").saveAsTable("db.n"),
    "mergeInto": lambda spark: (
        wide(spark).alias("u").mergeInto("db.n", F.expr("u.i = n.i")).whenNotMatched().insertAll().merge()
    ),
}


def test_what_may_lose_values_is_refused_where_the_policy_is_strict(spark: SparkSession, narrow: Table) -> None:
    with settings(spark, {_POLICY: "strict"}):
        for what, write in WRITES.items():
            with pytest.raises(AnalysisException, match=r"expected `(int|date)`, found `(bigint|timestamp)`") as raised:
                write(spark)
            assert raised.value.getCondition() == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST", what
            assert isinstance(raised.value, BerglineError)
        with pytest.raises(AnalysisException, match="expected `date`, found `void` for column `d`"):
            spark.sql("INSERT INTO db.n VALUES (5, NULL, 'x')")
        assert narrow.refresh().scan().to_arrow().num_rows == 1
        spark.sql("INSERT INTO db.n VALUES (CAST(2 AS SMALLINT), DEFAULT, 3)")
        spark.sql("UPDATE db.n SET s = 4, d = DEFAULT WHERE i = 1")
        spark.sql("CREATE TABLE db.new USING iceberg AS SELECT CAST(1 AS TINYINT) AS x")
    assert sorted(tuple(row) for row in spark.table("db.n").collect()) == [(1, None, "4"), (2, None, "3")]


def test_legacy_policy_is_refused_where_values_would_be_cast(spark: SparkSession, narrow: Table) -> None:
    with settings(spark, {_POLICY: "LEGACY"}):
        for what, write in WRITES.items():
            with pytest.raises(AnalysisException, match="found LEGACY") as raised:
                write(spark)
            assert raised.value.getCondition() == "_LEGACY_ERROR_TEMP_1000", what
        spark.table("db.n").writeTo("db.n").append()
        spark.sql("MERGE INTO db.n USING (SELECT 9 AS k) u ON i = k WHEN MATCHED THEN DELETE")
        spark.sql("CREATE TABLE db.new USING iceberg AS SELECT CAST(1 AS TINYINT) AS x")
    assert narrow.refresh().scan().to_arrow().num_rows == 2


def test_timestamp_is_of_the_type_that_the_session_says(spark: SparkSession, lake: Lake) -> None:
    def types() -> str:
        return ", ".join(f"{f.name} {f.type}" for f in lake.load_table("db.t").schema.fields)

    with settings(spark, _NTZ):
        spark.sql("CREATE TABLE db.t (a TIMESTAMP, b TIMESTAMP_LTZ, c ARRAY<TIMESTAMP>) USING iceberg")
        assert types() == "a timestamp, b timestamptz, c list<timestamp>"
        spark.sql("ALTER TABLE db.t ADD COLUMN d TIMESTAMP")
        spark.sql("ALTER TABLE db.t ALTER COLUMN a TYPE TIMESTAMP")
        with pytest.raises(BerglineError):
            spark.sql("ALTER TABLE db.t ALTER COLUMN b TYPE TIMESTAMP")
        assert types().endswith("d timestamp")
        spark.sql("ALTER TABLE db.t REPLACE COLUMNS (e TIMESTAMP, b TIMESTAMP_LTZ)")
        assert types() == "e timestamp, b timestamptz"
        spark.sql("INSERT INTO db.t SELECT TIMESTAMP '2020-01-01 00:00:00', TIMESTAMP_LTZ '2020-01-01 00:00:00'")
        spark.sql("UPDATE db.t SET b = TIMESTAMP '2020-02-01 00:00:00' WHERE e = TIMESTAMP '2020-01-01 00:00:00'")
        (row,) = spark.sql("SELECT * FROM db.t TIMESTAMP AS OF now() + INTERVAL 1 DAY").collect()
        assert (row.e.month, row.b.month) == (1, 2)
        spark.sql("BEGIN CREATE OR REPLACE TABLE db.t (f TIMESTAMP) USING iceberg; END")
        assert types() == "f timestamp"
        spark.sql("CREATE OR REPLACE TABLE db.t USING iceberg AS SELECT CAST('2020-01-01' AS TIMESTAMP) AS g")
        assert types() == "g timestamp"
    spark.sql("ALTER TABLE db.t ADD COLUMN h TIMESTAMP")
    assert types() == "g timestamp, h timestamptz"


def test_names_of_columns_are_exact_where_the_session_is_case_sensitive(spark: SparkSession, narrow: Table) -> None:
    row = spark.sql("SELECT 5 AS I, DATE '2020-01-02' AS d, 'x' AS s")
    with settings(spark, _CASE):
        for write in (
            lambda: spark.sql("INSERT INTO db.n (I) VALUES (5)"),
            lambda: spark.sql("INSERT INTO db.n BY NAME SELECT 5 AS I"),
            lambda: spark.sql("UPDATE db.n SET I = 5"),
            lambda: spark.sql("MERGE INTO db.n USING (SELECT 1 AS k) u ON i = k WHEN MATCHED THEN UPDATE SET I = 5"),
            lambda: spark.sql(
                "MERGE INTO db.n USING (SELECT 1 AS i, DATE '2020-01-02' AS D, 's' AS s) u ON n.i = u.i "
                "WHEN MATCHED THEN UPDATE SET *"
            ),
            lambda: spark.sql("ALTER TABLE db.n DROP COLUMN I"),
            lambda: spark.sql("ALTER TABLE db.n RENAME COLUMN I TO j"),
            lambda: spark.sql("ALTER TABLE db.n ALTER COLUMN I COMMENT 'x'"),
            lambda: row.writeTo("db.n").append(),
            lambda: (
                row.alias("u").mergeInto("db.n", F.expr("u.I = n.i")).whenMatched().update({"S": F.lit("y")}).merge()
            ),
        ):
            with pytest.raises(AnalysisException):
                write()
    assert narrow.refresh().metadata == narrow.metadata
    spark.sql("UPDATE db.n SET I = 5")
    row.writeTo("db.n").append()
    assert [r.i for r in spark.table("db.n").collect()] == [5, 5]


def test_columns_without_a_value_are_refused_where_the_session_says_so(spark: SparkSession, narrow: Table) -> None:
    with settings(spark, {"spark.sql.defaultColumn.useNullsForMissingDefaultValues": "false"}):
        for write in (
            lambda: spark.sql("INSERT INTO db.n (i) VALUES (5)"),
            lambda: spark.range(1).selectExpr("CAST(id AS INT) AS i").writeTo("db.n").append(),
        ):
            with pytest.raises(AnalysisException, match="expected a value for the column `d`, found none") as raised:
                write()
            assert raised.value.getCondition() == "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA"
    spark.sql("INSERT INTO db.n (i) VALUES (5)")
    assert narrow.refresh().scan().to_arrow().num_rows == 2


def test_variables_in_a_text_are_read_as_spark_reads_them(
    spark: SparkSession, lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.append(order_rows(1, 2))
    names = {"t": "db.${table}", "table": "orders", "col": "amount", "db": "db", "self": "${self}", "one": "1"}
    with settings(spark, names):
        assert spark.sql("SELECT * FROM ${t}").count() == 2
        assert spark.sql("SELECT * FROM ${spark:t} WHERE id = ${hiveconf:one} OR ${sparkconf:col} > 0").count() == 2
        assert spark.sql("SELECT * FROM ${t} WHERE region = '${nothing}'").count() == 0
        spark.sql("INSERT INTO ${t} VALUES (3, 30.0, '${env:unknown}')")
        spark.sql("UPDATE ${hivevar:db}.orders SET ${col} = 1 WHERE id = 3")
        spark.sql("ALTER TABLE ${t} SET TBLPROPERTIES ('p' = '${table} ${system:java.specification.version}')")
        spark.sql("EXECUTE IMMEDIATE 'DELETE FROM $' || '{t} WHERE id = 1'")
        spark.sql("CREATE VIEW db.v AS SELECT id FROM ${t}")
        spark.sql("BEGIN INSERT INTO ${t} VALUES (4, 4.0, 'eu'); END")
        assert spark.table("${t}").count() == 3
        assert spark.catalog.tableExists("${t}")
        assert spark.catalog.tableExists("orders", "${db}")
        assert [column.name for column in spark.catalog.listColumns("${t}")] == ["id", "amount", "region"]
        assert not spark.catalog.isCached("${t}")
        spark.table("${db}.orders").where("id = 4").writeTo("${t}").append()
        with pytest.raises(AnalysisException) as raised:
            spark.sql("SELECT 1 FROM ${t}\nWHERE no_such > ${one}")
        assert re.search(r"line 2,? pos 6", str(raised.value))
        with pytest.raises(PySparkException, match="Circular reference"):
            spark.sql("SELECT * FROM db.orders WHERE region = '${self}'")
        with settings(spark, {"spark.sql.variable.substitute": "false"}), pytest.raises(PySparkException):
            spark.sql("SELECT * FROM ${t}")
    orders = orders.refresh()
    assert orders.properties["p"].startswith("orders ")
    assert not orders.properties["p"].endswith("}")
    assert sorted(orders.scan().to_arrow()["region"].to_pylist()) == ["${env:unknown}", "eu", "eu", "eu"]
    assert lake.load_view("db.v").sql() == "SELECT id FROM db.orders"


@pytest.mark.parametrize(
    "text",
    [
        "${a} ${spark:a} ${sparkconf:a} ${hivevar:a} ${hiveconf:a} ${no} ${no:a} ${env:PATH} ${env:no} ${system:no}",
        "${spark.sql.shuffle.partitions} ${spark.sql.session.timeZone} ${spark.sql.sources.default} ${b}$1\\",
        "${system:java.version} ${b${a}} ${ } ${} $${a} {${a}} ${a:b:c} ${c}",
    ],
)
def test_variables_have_the_values_that_spark_gives_them(spark: SparkSession, text: str) -> None:
    with settings(spark, {"a": "x", "b": "${a}'\"\\1$1", "c": "\u00e9${no}"}):
        theirs = spark.sparkContext._jvm.org.apache.spark.sql.internal.VariableSubstitution()
        assert session_text(text, backend_of(spark)).text == theirs.substitute(text)


def test_double_quotes_are_names_where_the_session_says_so(spark: SparkSession, lake: Lake) -> None:
    with settings(spark, _DOUBLE_QUOTED):
        spark.sql("""CREATE TABLE "db"."o d" ("a b" INT COMMENT 'it is "a"', "q""q" STRING) USING iceberg""")
        spark.sql("""INSERT INTO "db"."o d" ("a b", "q""q") VALUES (1, '"x"'), (2, 'y')""")
        spark.sql("""UPDATE "db"."o d" SET "a b" = 3 WHERE "q""q" = 'y'""")
        spark.sql("""MERGE INTO "db"."o d" t USING (SELECT 1 AS "k") u ON t."a b" = u."k" WHEN MATCHED THEN DELETE""")
        rows = spark.sql("""SELECT "a b" AS "n", '"' AS s FROM "db"."o d" WHERE "a b" > 0""")
        assert [row.asDict() for row in rows.collect()] == [{"n": 3, "s": '"'}]
        assert spark.table('"db"."o d"').count() == 1
        assert spark.catalog.getTable('"db"."o d"').name == "o d"
        spark.sql('SET bergline.quoted="as it is"')
        assert spark.conf.get("bergline.quoted") == '"as it is"'
    spark.conf.unset("bergline.quoted")
    assert [(f.name, f.doc) for f in lake.load_table("db.o d").schema.fields] == [("a b", 'it is "a"'), ('q"q', None)]
    assert spark.sql('SELECT "a b" AS s FROM db.`o d`').collect()[0].s == "a b"


def test_strings_are_read_as_the_session_says(spark: SparkSession, lake: Lake, orders: Table) -> None:
    for number, values in enumerate(
        (
            {},
            {"spark.sql.parser.escapedStringLiterals": "true"},
            {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
        )
    ):
        with settings(spark, values):
            literal = r"'a\tb''c'"
            spark.sql(f"ALTER TABLE db.orders SET TBLPROPERTIES ('p{number}' = {literal})")
            assert orders.refresh().properties[f"p{number}"] == spark.sql(f"SELECT {literal}").collect()[0][0]


def test_values_of_partition_are_texts_where_the_session_says_so(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.p (i INT, p STRING) USING iceberg PARTITIONED BY (p)")
    for setting in ("keepPartitionSpecAsStringLiteral", "parseNullPartitionSpecAsStringLiteral"):
        with settings(spark, {f"spark.sql.legacy.{setting}": "true"}):
            spark.sql("INSERT INTO db.p PARTITION (p = 05) SELECT 1")
            spark.sql("INSERT INTO db.p PARTITION (p = null) SELECT 2")
    rows = [row.p for row in spark.table("db.p").collect()]
    assert sorted(rows) == ["05", "5", "null", "null"]


def test_time_travel_options_have_the_names_that_the_session_says(spark: SparkSession, orders: Table) -> None:
    first = orders.append(order_rows(1)).current_snapshot
    orders.append(order_rows(2))
    assert first is not None
    with settings(spark, {"spark.sql.timeTravelVersionKey": "at"}):
        assert spark.read.option("at", first.snapshot_id).table("db.orders").count() == 1
        assert spark.sql(f"SELECT * FROM db.orders WITH ('at' = '{first.snapshot_id}')").count() == 1


def test_expressions_of_row_changes_are_read_as_the_session_says(spark: SparkSession, narrow: Table) -> None:
    with settings(spark, {"spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true"}):
        spark.sql("UPDATE db.n SET s = typeof(1e3) WHERE typeof(1e0) = 'decimal(1,0)'")
        spark.sql(
            "MERGE INTO db.n USING (SELECT 2 AS k) u ON i = k WHEN NOT MATCHED THEN INSERT (s) VALUES (typeof(1e1))"
        )
    assert sorted(row.s for row in spark.table("db.n").collect()) == ["decimal(2,0)", "decimal(4,0)"]


def test_the_default_source_may_be_iceberg(spark: SparkSession, narrow: Table) -> None:
    with settings(spark, {"spark.sql.sources.default": "iceberg"}):
        spark.read.load("db.n").write.mode("append").save("db.n")
        assert spark.read.load("db.n").count() == 2
    with settings(spark, {"spark.sql.sources.default": "json"}), pytest.raises(BerglineError):
        spark.table("db.n").write.saveAsTable("db.new")


def test_scripts_are_refused_where_the_session_says_so(spark: SparkSession, narrow: Table) -> None:
    with settings(spark, {"spark.sql.scripting.enabled": "false"}), pytest.raises(Py4JJavaError, match="SQL_SCRIPTING"):
        spark.sql("BEGIN DELETE FROM db.n WHERE true; END")
    assert spark.table("db.n").count() == 1


def test_settings_on_the_page_are_settings_of_spark(spark: SparkSession) -> None:
    entries = scala_object(spark, "org.apache.spark.sql.internal.SQLConf").getConfigEntries()
    known = {entry.key() for entry in entries.toArray()}
    named = set(re.findall(r"`(spark\.sql\.[\w.]+\*?)`", _PAGE.read_text()))
    with_star = {name for name in named if name.endswith("*")}
    assert named - with_star - known == set()
    assert [name for name in with_star if not any(key.startswith(name[:-1]) for key in known)] == []
