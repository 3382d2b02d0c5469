"""A bound predicate as a Spark condition, with the same three-valued logic."""

from decimal import Decimal
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
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, TIMESTAMP, TIMESTAMPTZ, UUID, IcebergType
from bergline.spark.runtime.columns import column_at

_MICROS_PER_DAY = 86_400_000_000


def spark_filter(predicate: Predicate, schema: Schema) -> Column:
    """The condition that keeps the rows for which the predicate is true."""
    match predicate:
        case Always(value):
            return F.lit(value).cast("boolean")
        case Comparison(column, op, literal):
            compared: Any = COMPARE[op](_column(column, schema), spark_literal(literal, schema.names[column].type))
            return compared  # type: ignore[no-any-return]
        case IsIn(column, literals):
            if not literals:  # false for every value; what Spark makes of null depends on a setting
                return _column(column, schema) != _column(column, schema)
            type_ = schema.names[column].type
            return _column(column, schema).isin([spark_literal(v, type_) for v in literals])
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
    return column_at(schema.paths[schema.names[name].id])


def spark_literal(value: Any, type_: IcebergType) -> Column:
    """A plain value as a literal of the column's type, whatever the session's time zone."""
    # never by way of Python's or Java's calendars, which end, or leave out ten days of October 1582
    if type_ == DATE:
        return F.date_from_unix_date(F.lit(value))
    if type_ == TIMESTAMPTZ:
        return F.timestamp_micros(F.lit(value))
    if type_ == TIMESTAMP:
        days, micros = divmod(value, _MICROS_PER_DAY)
        seconds = F.lit(Decimal(micros).scaleb(-6))
        return F.date_from_unix_date(F.lit(days)).cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)
    if type_ == UUID:
        return F.lit(str(value))  # Spark has uuids as text
    return F.lit(value)  # Spark widens the narrower side, so that nothing is rounded
