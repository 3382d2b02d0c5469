"""Bound predicates as Arrow expressions over the rows of a file."""

from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_type
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
from bergline.format.types.types import (
    DATE,
    FLOAT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    FixedType,
    IcebergType,
)

_STORED: dict[IcebergType, pa.DataType] = {
    DATE: pa.int32(),
    TIME: pa.int64(),
    TIMESTAMP: pa.int64(),
    TIMESTAMPTZ: pa.int64(),
    TIMESTAMP_NS: pa.int64(),
    TIMESTAMPTZ_NS: pa.int64(),
}


def arrow_filter(predicate: Predicate, schema: Schema) -> pc.Expression:
    """A bound predicate as an Arrow expression; null counts as unknown."""
    match predicate:
        case Always(value):
            return pc.scalar(pa.scalar(value, pa.bool_()))
        case Comparison(column, op, literal):
            field, values = _operands(column, (literal,), schema)
            matches: Any = COMPARE[op](field, values[0])
            # in Spark NaN is the greatest value, in Arrow it compares to nothing
            return matches | pc.is_nan(field) if pa.types.is_floating(values.type) and op in {">", ">="} else matches
        case IsIn(column, literals):
            # isin distinguishes -0.0 from 0.0
            zeros = tuple(-v for v in literals if isinstance(v, float) and v == 0)
            field, values = _operands(column, literals + zeros, schema)
            # isin returns false for null, which is unknown in SQL
            return pc.if_else(pc.is_null(field), pa.scalar(None, pa.bool_()), field.isin(values))
        case StartsWith(column, prefix):
            return pc.starts_with(_field(column, schema), prefix)
        case IsNan(column):
            return pc.is_nan(_field(column, schema))
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


def _field(column: str, schema: Schema) -> pc.Expression:
    return pc.field(*schema.paths[schema.names[column].id])


def _operands(column: str, literals: tuple[Any, ...], schema: Schema) -> tuple[pc.Expression, pa.Array]:
    """A column and plain values in a common type that holds both exactly."""
    type_ = schema.names[column].type
    field, own = _field(column, schema), arrow_type(type_)
    if type_ in _STORED:
        return field, pa.array(literals, _STORED[type_]).cast(own)
    if type_ == FLOAT:
        return field.cast(pa.float64()), pa.array(literals, pa.float64())
    if type_ == UUID:
        return field.cast(pa.binary()), pa.array([v.bytes for v in literals], pa.binary())
    if isinstance(type_, FixedType):
        return field.cast(pa.binary()), pa.array(literals, pa.binary())
    return field, pa.array(literals, own)
