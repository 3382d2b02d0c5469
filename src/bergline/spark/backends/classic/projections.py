"""Frames made of others in a few calls: PySpark hands over columns one by one, and makes some calls for each."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.util import PythonEvalType

from bergline.spark.backends.classic.java_classes import new_object, scala_object, session_facts, static_member
from bergline.spark.runtime.arrow_tasks import ArrowFunction, after_imports

_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_BETWEEN = "\0"
"""What stands between texts that are handed over as one; a text that has it in it is handed over alone."""


def with_names(frame: DataFrame, names: Sequence[str], spark: SparkSession) -> DataFrame:
    """The frame with other names for its columns."""
    texts = _java_texts(names, spark)
    return frame.toDF(*names) if texts is None else ClassicDataFrame(frame._jdf.toDF(texts), spark)  # noqa: SLF001


def select_texts(frame: DataFrame, texts: Sequence[str], spark: SparkSession) -> DataFrame:
    """What SQL texts make of the frame's columns."""
    java = _java_texts(texts, spark)
    return frame.selectExpr(*texts) if java is None else ClassicDataFrame(frame._jdf.selectExpr(java), spark)  # noqa: SLF001


def projected(plan: Any, texts: Sequence[str], spark: SparkSession) -> Any:
    """A plan of what SQL texts make of the columns of another, neither of them analyzed."""
    if not texts:
        nothing = scala_object(spark, "scala.collection.immutable.Nil")
        return new_object(spark, _PROJECT, nothing, plan)
    made = session_facts(spark).parser.parsePlan(f"SELECT {', '.join(texts)}")
    return new_object(spark, _PROJECT, made.projectList(), plan)


def map_in_arrow(frame: DataFrame, run: ArrowFunction, schema: str, spark: SparkSession) -> DataFrame:
    """PySpark's own, which looks up each column by its name to tell Spark that the function needs it."""
    function: Any = pandas_udf(after_imports(run), schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)  # type: ignore[call-overload]
    java, called = frame._jdf, function._unwrapped._judf  # noqa: SLF001
    needed = called.builder(java.queryExecution().analyzed().output())
    return ClassicDataFrame(java.mapInArrow(called.fromUDFExpr(needed), False, None), spark)


def _java_texts(texts: Sequence[str], spark: SparkSession) -> Any:
    """An array of texts; None if it cannot be made by one call."""
    if not texts or any(_BETWEEN in text for text in texts):
        return None
    split = static_member(spark, "org.apache.commons.lang3.StringUtils", "splitByWholeSeparatorPreserveAllTokens")
    return split(_BETWEEN.join(texts), _BETWEEN)
