"""`count`, `min` and `max` of some files of a table, from what its manifests say of each, where that is exact."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bergline.expressions.metrics import bounds_of
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, INT, LONG, TIMESTAMPTZ, NestedField
from bergline.scan.plan import PlannedFile
from bergline.spark.runtime.backend import Aggregate

EXACT_BOUNDS = (INT, LONG, DATE, TIMESTAMPTZ)
"""Types whose bounds are values of the column: they are neither truncated, nor is there a NaN."""


def partial_values(
    files: Iterable[PlannedFile], asked: Sequence[Aggregate], schema: Schema
) -> tuple[int | None, ...] | None:
    """The values of aggregates on some files; None if they are not known, for all of them, without reading files.

    The least and the greatest of no values is None.
    """
    found: tuple[int | None, ...] = tuple(0 if a.function == "count" else None for a in asked)
    for planned in files:
        if planned.deletes or planned.file.record_count < 0:
            return None
        values = [_value(aggregate, planned.file, schema) for aggregate in asked]
        if any(not is_known for is_known, _ in values):
            return None
        found = combined(asked, found, tuple(value for _, value in values))
    return found


def combined(
    asked: Sequence[Aggregate], left: Sequence[int | None], right: Sequence[int | None]
) -> tuple[int | None, ...]:
    """The values on the files of both sides."""
    return tuple(_joined(*each) for each in zip(asked, left, right, strict=True))


def _joined(aggregate: Aggregate, left: int | None, right: int | None) -> int | None:
    known = [value for value in (left, right) if value is not None]
    choose: dict[str, Callable[[list[int]], int]] = {"count": sum, "min": min, "max": max}
    return choose[aggregate.function](known) if known else None


def _value(aggregate: Aggregate, file: DataFile, schema: Schema) -> tuple[bool, Any]:
    """Whether the value of an aggregate on a file is known, and the value."""
    if aggregate.column is None:
        return True, file.record_count
    field = next(f for f in schema.fields if f.name == aggregate.column)
    values = _values(file, field)
    if aggregate.function == "count":
        return values is not None, values
    if field.type not in EXACT_BOUNDS:
        return False, None
    if values == 0:
        return True, None
    bound = bounds_of(file, field)[aggregate.function == "max"]
    return bound is not None, bound


def _values(file: DataFile, field: NestedField) -> int | None:
    """How many values of a column are not null; None if that is not known."""
    if file.record_count == 0 or field.required:
        return file.record_count
    nulls = (file.null_value_counts or {}).get(field.id)
    return None if nulls is None else file.record_count - nulls
