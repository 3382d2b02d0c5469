"""Errors of Spark about queries on lake tables show what the user wrote, not what Spark was sent."""

import re

import pytest
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    NumberFormatException,
    ParseException,
    PySparkException,
)
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark

_GENERATED = re.compile(r"_pyspark_|bergline[ _][0-9a-f]|bergline read|AS `orders`")


@pytest.fixture(autouse=True)
def tables(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    lake.create_table("db.items", ORDERS).append(order_rows(1))


def check_is_about(error: PySparkException, statement: str, part: str) -> None:
    """The error's contexts and text are of the statement, and the part of it is the one that was found."""
    assert not _GENERATED.search(str(error)), str(error)
    assert not _GENERATED.search(str(error.getMessageParameters()))
    (context,) = error.getQueryContext()
    assert (context.fragment(), context.startIndex()) == (part, statement.index(part))
    assert context.stopIndex() == statement.index(part) + len(part) - 1
    line = statement[: statement.index(part)].count("\n") + 1
    assert context.summary().startswith(f"== SQL (line {line}, position ")
    assert not _GENERATED.search(context.summary())


@pytest.mark.parametrize(
    ("statement", "condition", "part"),
    [
        ("SELECT nope FROM db.orders", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("SELECT id\nFROM lake.db.orders\nWHERE nope > 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("SELECT '{x}' FROM db.orders o, (SELECT bad FROM db.items) i", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "bad"),
        ("SELECT sum(id), region FROM db.orders", "MISSING_GROUP_BY", "SELECT sum(id), region FROM db.orders"),
        (
            "SELECT id FROM db.orders JOIN db.items ON orders.id = items.id",
            "AMBIGUOUS_REFERENCE",
            "id",
        ),
        (
            "SELECT id FROM db.orders WHERE id = 'x' + array(1)",
            "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            "'x' + array(1)",
        ),
        ("INSERT INTO db.orders SELECT nope, 1, '' FROM db.items", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("CREATE TABLE db.new USING iceberg AS SELECT nope FROM db.items", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
        ("CREATE TEMP VIEW v AS SELECT nope FROM db.items", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nope"),
    ],
)
def test_analysis_errors_are_about_the_text_as_written(
    spark: SparkSession, statement: str, condition: str, part: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(statement)
    assert (caught.value.getCondition(), bool(caught.value.getSqlState())) == (condition, True)
    check_is_about(caught.value, statement, part)
    before = statement[: statement.index(part)]
    place = f"line {before.count(chr(10)) + 1} pos {len(before) - before.rfind(chr(10)) - 1}"
    assert place in str(caught.value)


def test_column_that_is_qualified_by_the_table_is_found_in_the_text(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT id, db.orders.nope FROM db.orders")
    (context,) = caught.value.getQueryContext()
    assert context.stopIndex() == len("SELECT id, db.orders.nope") - 1
    assert not _GENERATED.search(str(caught.value))


def test_parse_errors_show_the_text_as_written(spark: SparkSession) -> None:
    statement = "SELECT id\n FROM db.orders\n TABLESAMPLE (x y)"
    with pytest.raises(ParseException) as caught:
        spark.sql(statement)
    assert not _GENERATED.search(str(caught.value)), str(caught.value)
    with pytest.raises(ParseException) as caught:
        spark.sql("SELECT id, FROM db.orders")
    text = str(caught.value)
    assert "Syntax error at or near '.'" in text  # Spark reads `FROM` as the name of a column
    assert "(line 1, pos 18)\n\n== SQL ==\nSELECT id, FROM db.orders\n------------------^^^\n" in text


@pytest.mark.parametrize(
    ("statement", "error", "part"),
    [
        ("SELECT o.id, 1 / (o.id - 1) FROM db.orders AS o", ArithmeticException, "1 / (o.id - 1)"),
        ("SELECT o.id FROM db.orders AS o WHERE CAST(region AS INT) = 1", NumberFormatException, "CAST(region AS INT)"),
    ],
)
def test_errors_of_rows_are_about_the_text_as_written(
    spark: SparkSession, statement: str, error: type[PySparkException], part: str
) -> None:
    frame = spark.sql(statement)
    for _ in range(3):
        spark.sql("SELECT o.id FROM db.items AS o").collect()
    with pytest.raises(error) as caught:
        frame.collect()
    check_is_about(caught.value, statement, part)
    assert caught.value.getQueryContext()[0].summary() in str(caught.value)


def test_errors_that_are_not_about_lake_tables_are_sparks_own(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT nope FROM range(3)")
    assert type(caught.value).__module__ == "pyspark.errors.exceptions.captured"
    assert type(caught.value).__mro__[1].__name__ == "CapturedException"


def test_frames_of_a_query_leave_no_views_behind(spark: SparkSession) -> None:
    before = {row.viewName for row in spark.sql("SHOW VIEWS").collect()}
    spark.sql("SELECT id FROM db.orders").collect()
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nope FROM db.orders")
    assert {row.viewName for row in spark.sql("SHOW VIEWS").collect()} == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE db.v (v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "CREATE TABLE db.v (s STRUCT<a: ARRAY<VARIANT>>) USING iceberg TBLPROPERTIES ('format-version' = '2')",
        "CREATE TABLE db.v USING iceberg TBLPROPERTIES ('format-version' = '2') AS SELECT parse_json('1') AS v",
        "ALTER TABLE db.items ADD COLUMN v VARIANT",
    ],
)
def test_variants_of_version_2_are_refused_before_anything_is_made(
    spark: SparkSession, lake: Lake, statement: str
) -> None:
    with pytest.raises(PySparkException, match="variant"):
        spark.sql(statement)
    assert not lake.table_exists("db.v")
    with pytest.raises(PySparkException, match="variant"):
        spark.range(1).selectExpr("parse_json('1') AS v").writeTo("db.v").create()
    assert not lake.table_exists("db.v")
