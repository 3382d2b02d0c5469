"""Whether a file may hold matching rows, or only matching rows, judged by its metrics alone."""

import math
from typing import Any

from bergline.expressions.bounds import ColumnFacts, may_hold, must_hold
from bergline.expressions.fold import fold
from bergline.expressions.predicate import ColumnPredicate, IsNull, Predicate
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import DOUBLE, FLOAT, IcebergType, NestedField


def may_match(predicate: Predicate, file: DataFile, schema: Schema) -> bool:
    """False only if no row of the file can satisfy a bound predicate."""
    if file.record_count <= 0:
        return file.record_count < 0  # some writers leave it out
    return fold(
        predicate,
        constant=lambda value: value is True,
        leaf=lambda leaf, negated: may_hold(leaf, negated, _facts(file, leaf, schema)),
        both=lambda left, right: left and right,
        either=lambda left, right: left or right,
    )


def must_match(predicate: Predicate, file: DataFile, schema: Schema) -> bool:
    """True only if every row of the file satisfies a bound predicate."""
    if file.record_count <= 0:
        return file.record_count == 0
    return fold(
        predicate,
        constant=lambda value: value is True,
        leaf=lambda leaf, negated: must_hold(leaf, negated, _facts(file, leaf, schema)),
        both=lambda left, right: left and right,
        either=lambda left, right: left or right,
    )


def bounds_of(file: DataFile, field: NestedField) -> tuple[Any, Any]:
    """Lower and upper bound of a column, not counting null and NaN; None where unknown."""
    return reliable(_bound(file.lower_bounds, field.id, field.type), _bound(file.upper_bounds, field.id, field.type))


def _facts(file: DataFile, leaf: ColumnPredicate, schema: Schema) -> ColumnFacts:
    field = schema.names[leaf.column]
    nulls = (file.null_value_counts or {}).get(field.id)
    values = (file.value_counts or {}).get(field.id)
    nans = (file.nan_value_counts or {}).get(field.id) if field.type in (FLOAT, DOUBLE) else 0
    only_null = nulls is not None and nulls == values
    only_nan = nans is not None and values is not None and 0 < nans == values - (nulls or 0)
    lower = upper = None
    if not isinstance(leaf, IsNull):  # IS NULL also applies to types without an order
        lower, upper = bounds_of(file, field)
    return ColumnFacts(
        lower,
        upper,
        may_be_null=nulls != 0,
        may_be_nan=nans != 0 and not only_null,
        may_be_value=not only_null and not only_nan,
    )


def reliable(lower: Any, upper: Any) -> tuple[Any, Any]:
    """Both bounds or neither: old writers put NaN into bounds, which makes the other bound unreliable too."""
    is_nan = any(isinstance(bound, float) and math.isnan(bound) for bound in (lower, upper))
    return (None, None) if is_nan else (lower, upper)


def _bound(bounds: dict[int, bytes] | None, field_id: int, type_: IcebergType) -> Any:
    data = (bounds or {}).get(field_id)
    return None if data is None else decode_value(type_, data)
