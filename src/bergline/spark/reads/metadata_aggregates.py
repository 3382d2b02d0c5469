"""`count`, `min` and `max` of a whole table, from what its manifests say of each file, where that is exact."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bergline.expressions.metrics import bounds_of
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, INT, LONG, TIMESTAMPTZ, IcebergType, NestedField
from bergline.spark.runtime.backend import Aggregate
from bergline.table.scans.scan import TableScan

_LITERALS: dict[IcebergType, str] = {
    INT: "CAST({} AS INT)",
    LONG: "CAST({} AS BIGINT)",
    DATE: "date_from_unix_date({})",
    TIMESTAMPTZ: "timestamp_micros({})",
}
"""Of types whose bounds are values of the column: they are neither truncated, nor is there a NaN."""


def known_aggregates(scan: TableScan, asked: Sequence[Aggregate]) -> list[str] | None:
    """The values of aggregates as SQL; None if they are not known, for all of them, without reading files."""
    planned = scan.plan().files
    if any(p.deletes or p.file.record_count < 0 for p in planned):
        return None
    found = [_known(aggregate, [p.file for p in planned], scan.schema) for aggregate in asked]
    return None if None in found else [text for text in found if text is not None]


def _known(aggregate: Aggregate, files: Sequence[DataFile], schema: Schema) -> str | None:
    if aggregate.column is None:
        return _LITERALS[LONG].format(sum(file.record_count for file in files))
    field = next(f for f in schema.fields if f.name == aggregate.column)
    if aggregate.function == "count":
        counts = [_values(file, field) for file in files]
        return None if None in counts else _LITERALS[LONG].format(sum(c for c in counts if c is not None))
    if field.type not in _LITERALS:
        return None
    choose: Callable[[Iterable[Any]], Any] = min if aggregate.function == "min" else max
    bounds = [bounds_of(file, field)[aggregate.function == "max"] for file in files if _values(file, field) != 0]
    if None in bounds:
        return None
    if not bounds:
        return _LITERALS[field.type].format("NULL")
    return f"IF(true, {_LITERALS[field.type].format(choose(bounds))}, NULL)"  # as nullable as the aggregate


def _values(file: DataFile, field: NestedField) -> int | None:
    """How many values of a column are not null; None if that is not known."""
    if file.record_count == 0 or field.required:
        return file.record_count
    nulls = (file.null_value_counts or {}).get(field.id)
    return None if nulls is None else file.record_count - nulls
