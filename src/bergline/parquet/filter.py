"""A bound predicate as an Arrow expression over the rows of a file."""

from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from bergline.expressions.predicate import (
    MAX_DECIMAL_DIGITS,
    Always,
    And,
    Comparison,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
)
from bergline.format.schema import Schema
from bergline.format.types import DATE, FLOAT, INT, TIME, TIMESTAMP, TIMESTAMPTZ, DecimalType, IcebergType
from bergline.parquet.arrow_schema import arrow_type


def arrow_filter(predicate: Predicate, schema: Schema) -> pc.Expression:
    """A bound predicate as an Arrow expression; null counts as unknown."""
    match predicate:
        case Always(value):
            return pc.scalar(value)
        case Comparison(column, op, literal):
            field, values = _operands(column, (literal,), schema)
            matches = _COMPARE[op](field, values[0])
            # NaN is greater than everything in Spark, and equal to nothing in Arrow
            return matches | pc.is_nan(field) if pa.types.is_floating(values.type) and op in {">", ">="} else matches
        case IsIn(column, literals):
            # isin tells the two zeros apart
            zeros = tuple(-v for v in literals if isinstance(v, float) and v == 0)
            field, values = _operands(column, literals + zeros, schema)
            # isin answers false for null where SQL says unknown
            return pc.if_else(pc.is_null(field), pa.scalar(None, pa.bool_()), field.isin(values))
        case IsNull(column):
            return _field(column, schema).is_null()
        case Not(child):
            return ~arrow_filter(child, schema)
        case And(left, right):
            return arrow_filter(left, schema) & arrow_filter(right, schema)
        case Or(left, right):
            return arrow_filter(left, schema) | arrow_filter(right, schema)
        case _:
            assert_never(predicate)


_COMPARE: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


_STORED: dict[IcebergType, pa.DataType] = {
    DATE: pa.int32(),
    TIME: pa.int64(),
    TIMESTAMP: pa.int64(),
    TIMESTAMPTZ: pa.int64(),
}


def _field(column: str, schema: Schema) -> pc.Expression:
    return pc.field(*schema.paths[schema.names[column].id])


def _operands(column: str, literals: tuple[Any, ...], schema: Schema) -> tuple[pc.Expression, pa.Array]:
    """A column and plain values in one type that holds both exactly."""
    type_ = schema.names[column].type
    target = _holding_type(type_, literals)
    field, own = _field(column, schema), arrow_type(type_)
    values = pa.array(literals, _STORED[type_]).cast(target) if type_ in _STORED else pa.array(literals, target)
    return field if target == own else field.cast(target), values


def _holding_type(type_: IcebergType, literals: tuple[Any, ...]) -> pa.DataType:
    """The column's own type, or a wider one where a literal would be rounded or cut."""
    if type_ == FLOAT:
        return pa.float64()
    if type_ == INT and not all(-(2**31) <= v < 2**31 for v in literals):
        return pa.int64()
    if isinstance(type_, DecimalType):
        limit = type_.precision - type_.scale
        if not all(v.adjusted() < limit and v.as_tuple().exponent >= -type_.scale for v in literals):
            return pa.decimal256(2 * MAX_DECIMAL_DIGITS, MAX_DECIMAL_DIGITS)
    return arrow_type(type_)
