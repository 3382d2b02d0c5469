"""`count`, `min` and `max` of a whole table, from what its manifests say of each file, where that is exact."""

from collections.abc import Sequence

from bergline.format.types.types import DATE, INT, LONG, TIMESTAMPTZ, IcebergType
from bergline.spark.reads.partial_aggregates import partial_values
from bergline.spark.reads.planning import aggregate_on_executors, plan_read
from bergline.spark.runtime.backend import Aggregate, SparkBackend
from bergline.table.scans.scan import TableScan

_LITERALS: dict[IcebergType, str] = {
    INT: "CAST({} AS INT)",
    LONG: "CAST({} AS BIGINT)",
    DATE: "date_from_unix_date({})",
    TIMESTAMPTZ: "timestamp_micros({})",
}
"""Of the types in EXACT_BOUNDS."""


def known_aggregates(scan: TableScan, asked: Sequence[Aggregate], backend: SparkBackend) -> list[str] | None:
    """The values of aggregates as SQL; None if they are not known, for all of them, without reading files."""
    planned = plan_read(scan, backend)
    if planned.work is None:
        values = partial_values(planned.plan.files, asked, scan.schema)
    else:
        values = aggregate_on_executors(planned.work, asked, scan.schema, backend, scan.io)
    if values is None:
        return None
    return [_literal(aggregate, value, scan) for aggregate, value in zip(asked, values, strict=True)]


def _literal(aggregate: Aggregate, value: int | None, scan: TableScan) -> str:
    if aggregate.function == "count":
        return _LITERALS[LONG].format(value)
    literal = _LITERALS[next(f.type for f in scan.schema.fields if f.name == aggregate.column)]
    if value is None:
        return literal.format("NULL")
    return f"IF(true, {literal.format(value)}, NULL)"  # as nullable as the aggregate
