"""A bound predicate as a condition in Spark's SQL, with the same three-valued logic.

A text takes one call, where each of PySpark's columns and literals takes several. It means the same under all settings
of a session: strings stand in it as their bytes.
"""

from decimal import Decimal
from typing import Any, assert_never

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.expressions.predicate import (
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
from bergline.quoting import back_quoted_path

_MICROS_PER_DAY = 86_400_000_000


def spark_filter(predicate: Predicate, schema: Schema) -> str:
    """The condition that keeps the rows for which the predicate is true."""
    match predicate:
        case Always(value):
            return f"CAST({_literal(value)} AS BOOLEAN)"
        case Comparison(column, op, literal):
            return f"({_column(column, schema)} {op} {_literal(literal, schema.names[column].type)})"
        case IsIn(column, literals):
            name = _column(column, schema)
            if not literals:  # false for every value; what Spark makes of null depends on a setting
                return f"({name} != {name})"
            type_ = schema.names[column].type
            return f"({name} IN ({', '.join(_literal(value, type_) for value in literals)}))"
        case StartsWith(column, prefix):
            return f"startswith({_column(column, schema)}, {_literal(prefix)})"
        case IsNan(column):
            return f"({_column(column, schema)} = {_literal(float('nan'))})"
        case IsNull(column):
            return f"({_column(column, schema)} IS NULL)"
        case Not(child):
            return f"(NOT {spark_filter(child, schema)})"
        case And(left, right):
            return f"({spark_filter(left, schema)} AND {spark_filter(right, schema)})"
        case Or(left, right):
            return f"({spark_filter(left, schema)} OR {spark_filter(right, schema)})"
        case _:
            assert_never(predicate)


def spark_literal(value: Any, type_: IcebergType) -> Column:
    """A plain value as a literal of the column's type, whatever the session's time zone."""
    return F.expr(_literal(value, type_))


def _column(name: str, schema: Schema) -> str:
    return back_quoted_path(schema.paths[schema.names[name].id])


def _literal(value: Any, type_: IcebergType | None = None) -> str:
    # never by way of Python's or Java's calendars, which end, or leave out ten days of October 1582
    if value is None:
        return "NULL"
    if type_ == DATE:
        return f"date_from_unix_date({value})"
    if type_ == TIMESTAMPTZ:
        return f"timestamp_micros({value})"
    if type_ == TIMESTAMP:
        days, micros = divmod(value, _MICROS_PER_DAY)
        seconds = f"{Decimal(micros).scaleb(-6):f}BD"
        return f"(CAST(date_from_unix_date({days}) AS TIMESTAMP_NTZ) + make_dt_interval(0, 0, 0, {seconds}))"
    if type_ == UUID:
        value = str(value)  # Spark has uuids as text
    match value:  # Spark widens the narrower side of a comparison, so that nothing is rounded
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}BD"
        case str():
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        case bytes():
            return f"X'{value.hex()}'"
    raise TypeError(f"expected a plain value, found {type(value).__name__}")
