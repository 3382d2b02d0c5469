"""A condition on a table's columns as a filter that keeps exactly the same rows, or not at all."""

import contextlib
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.expressions.bound_filter import BoundFilter, bind_filter
from bergline.expressions.predicate import ALWAYS_TRUE, Always, Predicate
from bergline.format.schema.schema import Schema
from bergline.spark.pushdown.catalyst import class_of, exact_predicate
from bergline.spark.pushdown.connect_conditions import exact_part
from bergline.spark.pushdown.pushed_filters import placeholder
from bergline.spark.runtime.connect import over_connect
from bergline.spark.runtime.types import spark_type


def exact_condition(spark: SparkSession, schema: Schema, condition: Column | str) -> BoundFilter:
    """What a column or SQL text means, worked out by Spark: its names, casts and time zone count.

    Over Spark Connect, which does not tell, only what means the same whatever the settings are.

    UnsupportedError for what filters cannot say: rows must not go by a condition that is only nearly right.
    """
    if over_connect(spark):
        predicate = exact_part(condition, schema, spark.client)  # type: ignore[operator]
    else:
        frame = placeholder(spark, _known_to_spark(schema)).where(condition)
        plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  (only the optimizer knows)
        predicate = _of_plan(plan, schema)
    if predicate is None:
        shown = condition if isinstance(condition, str) else str(condition)
        raise UnsupportedError(
            f"cannot replace rows by the condition `{shown}`",
            hints=[
                "compare columns with values: =, <, <=, >, >=, <=>, IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR, NOT"
            ],
        )
    return bind_filter(predicate, schema)


def _known_to_spark(schema: Schema) -> T.StructType:
    """The columns that Spark has types for: no condition can be about others."""
    columns = T.StructType()
    for field in schema.fields:
        with contextlib.suppress(UnsupportedError):
            columns.add(field.name, spark_type(field.type, field.name))
    return columns


def _of_plan(plan: Any, schema: Schema) -> Predicate | None:
    match class_of(plan):
        case "Filter":
            return exact_predicate(plan.condition(), schema)
        case "LocalRelation":  # nothing can be true
            return Always(False)
        case "LogicalRDD":
            return ALWAYS_TRUE
    return None
