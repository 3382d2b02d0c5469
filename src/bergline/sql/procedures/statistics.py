"""`CALL system.compute_table_stats` and `compute_partition_stats`, with the official columns."""

import pyarrow as pa

from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
from bergline.sql.names.engine_context import EngineContext
from bergline.sql.procedures.procedure import TABLE, Parameter, Procedure
from bergline.table.table import Table


def compute_table_stats(
    table: Table, *, engine: EngineContext, snapshot_id: int | None = None, columns: tuple[str, ...] | None = None
) -> pa.Table:
    """Count the distinct values of columns; no row for an empty table."""
    file = table.compute_statistics(columns, snapshot_id=snapshot_id, engine=engine.row_engine())
    return _location("statistics_file", file)


def compute_partition_stats(table: Table, *, snapshot_id: int | None = None) -> pa.Table:
    """Count rows and files by partition; no row for an empty table."""
    return _location("partition_statistics_file", table.compute_partition_statistics(snapshot_id=snapshot_id))


def _location(column: str, file: StatisticsFile | PartitionStatisticsFile | None) -> pa.Table:
    rows = [] if file is None else [{column: file.statistics_path}]
    return pa.Table.from_pylist(rows, schema=pa.schema([pa.field(column, pa.string())]))


_SNAPSHOT_ID = Parameter("snapshot_id", "bigint")
STATISTICS_PROCEDURES: dict[str, Procedure] = {
    "compute_table_stats": Procedure(
        (TABLE, _SNAPSHOT_ID, Parameter("columns", "array<string>")), compute_table_stats, needs_engine=True
    ),
    "compute_partition_stats": Procedure((TABLE, _SNAPSHOT_ID), compute_partition_stats),
}
