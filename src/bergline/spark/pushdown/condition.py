"""A condition on a table's columns as a filter that keeps exactly the same rows, or not at all."""

import functools
from collections.abc import Mapping

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.expressions.bound_filter import BoundFilter, bind_filter
from bergline.expressions.predicate import Predicate
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted
from bergline.spark.backends.choose import backend_of


def exact_condition(
    spark: SparkSession, schema: Schema, condition: Column | str, *, alias: str | None = None
) -> BoundFilter:
    """What a column or SQL text means, as Spark resolves it: its names, casts and time zone count.

    Columns may be qualified by the alias. Over Spark Connect, which resolves nothing for us, only conditions count that
    mean the same under all settings.

    UnsupportedError for what filters cannot express: a condition that is only nearly right would delete other rows.
    """
    return _bound(backend_of(spark).exact_predicate(condition, schema, alias), schema, condition)


def exact_equality(spark: SparkSession, schema: Schema, values: Mapping[str, Column]) -> BoundFilter:
    """The rows whose columns have these constant values, or null where the value is null; there must be some.

    UnsupportedError as above.
    """
    predicate = backend_of(spark).equality_predicate(values, schema)
    equal = [F.col(back_quoted(name)).eqNullSafe(value) for name, value in values.items()]
    return _bound(predicate, schema, functools.reduce(Column.__and__, equal))


def _bound(predicate: Predicate | None, schema: Schema, condition: Column | str) -> BoundFilter:
    if predicate is None:
        shown = condition if isinstance(condition, str) else str(condition)
        raise UnsupportedError(
            f"cannot pick rows by the condition `{shown}`",
            hints=[
                "compare columns with values: =, <, <=, >, >=, <=>, IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR, NOT"
            ],
        )
    return bind_filter(predicate, schema)
