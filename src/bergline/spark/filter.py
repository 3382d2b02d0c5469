"""A bound predicate as a Spark condition, with the same three-valued logic."""

import datetime as dt
from typing import Any, assert_never

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.expressions.predicate import (
    COMPARE,
    Always,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from bergline.format.schema import Schema
from bergline.format.types import DATE, TIMESTAMP, TIMESTAMPTZ, IcebergType

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (a day zero for values without a zone)


def spark_filter(predicate: Predicate, schema: Schema) -> Column:
    """The condition that keeps the rows for which the predicate is true."""
    match predicate:
        case Always(value):
            return F.lit(value).cast("boolean")
        case Comparison(column, op, literal):
            compared: Any = COMPARE[op](_column(column, schema), _literal(literal, schema.names[column].type))
            return compared  # type: ignore[no-any-return]
        case IsIn(column, literals):
            if not literals:  # false for every value; Spark's own answer for null depends on a setting
                return _column(column, schema) != _column(column, schema)
            type_ = schema.names[column].type
            return _column(column, schema).isin([_literal(v, type_) for v in literals])
        case StartsWith(column, prefix):
            return _column(column, schema).startswith(prefix)
        case IsNan(column):
            return _column(column, schema) == F.lit(float("nan"))
        case IsNull(column):
            return _column(column, schema).isNull()
        case Not(child):
            return ~spark_filter(child, schema)
        case And(left, right):
            return spark_filter(left, schema) & spark_filter(right, schema)
        case Or(left, right):
            return spark_filter(left, schema) | spark_filter(right, schema)
        case _:
            assert_never(predicate)


def _column(name: str, schema: Schema) -> Column:
    return F.col(".".join(f"`{part.replace('`', '``')}`" for part in schema.paths[schema.names[name].id]))


def _literal(value: Any, type_: IcebergType) -> Column:
    """A plain value as a literal of the column's type, whatever the session's time zone."""
    if type_ == DATE:
        return F.lit((_EPOCH + dt.timedelta(days=value)).date())
    if type_ == TIMESTAMPTZ:
        return F.timestamp_micros(F.lit(value))
    if type_ == TIMESTAMP:
        return F.lit((_EPOCH + dt.timedelta(microseconds=value)).isoformat(sep=" ")).cast("timestamp_ntz")
    return F.lit(value)  # Spark widens the narrower side, so that nothing is rounded
