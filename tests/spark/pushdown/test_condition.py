"""Conditions as filters that keep exactly the same rows."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.expressions.bound_filter import BoundFilter
from bergline.expressions.evaluate import evaluate
from bergline.format.schema.schema import Schema
from bergline.spark.pushdown.condition import exact_condition, exact_equality

pytestmark = pytest.mark.spark

NUMBERS = (1, 2, 3, None)


@pytest.fixture
def schema(lake: Lake) -> Schema:
    return lake.create_table("db.t", pa.schema([("n", pa.int64()), ("s", pa.string()), ("t", pa.time64("us"))])).schema


def kept(row_filter: BoundFilter) -> list[int | None]:
    return [n for n in NUMBERS if evaluate(row_filter.predicate, {"n": n}.__getitem__)]


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("n = 3", [3]),
        ("N > 2 - 1", [2, 3]),
        ("n = '3' OR n <=> NULL", [3, None]),
        ("true", [1, 2, 3, None]),
        ("n = 1 AND 1 = 2", []),
    ],
)
def test_condition_keeps_the_rows_that_spark_keeps(
    spark_session: SparkSession, schema: Schema, condition: str, numbers: list[int | None]
) -> None:
    assert kept(exact_condition(spark_session, schema, condition)) == numbers
    assert kept(exact_condition(spark_session, schema, F.expr(condition))) == numbers


def test_equality_takes_constants_and_nulls(spark_session: SparkSession, schema: Schema) -> None:
    assert kept(exact_equality(spark_session, schema, {"n": F.lit("2").cast("bigint") + 1})) == [3]
    assert kept(exact_equality(spark_session, schema, {"n": F.lit(None).cast("bigint")})) == [None]


def test_what_filters_cannot_say_is_refused(spark_session: SparkSession, schema: Schema) -> None:
    for condition in ("length(s) = 3", F.length("s") == 3):
        with pytest.raises(UnsupportedError, match=r"cannot pick rows by the condition `.*length\(s\)"):
            exact_condition(spark_session, schema, condition)
