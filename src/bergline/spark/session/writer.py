"""`df.writeTo("db.orders")` for lake tables."""

from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql import Column, DataFrame

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.spark.pushdown.condition import exact_condition
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.runtime.errors import spark_errors
from bergline.spark.statements.tables import SessionTables
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.evolution import frame_write
from bergline.spark.writes.new_table import NewTableWrite, write_new_table
from bergline.spark.writes.options import parse_write_options
from bergline.spark.writes.rows import TableWrite
from bergline.sql.text.tokens import Name
from bergline.table.table import Table


class LakeWriter:
    """DataFrameWriterV2 on a lake table: columns go by name, and every option is honoured or refused."""

    def __init__(self, tables: SessionTables, frame: DataFrame, name: Name) -> None:
        self._tables = tables
        self._frame = frame
        self._name = name
        self._options: dict[str, Any] = {}
        self._properties: dict[str, str] = {}
        self._partition_by: tuple[str, ...] = ()

    def using(self, provider: str) -> "LakeWriter":
        """Lake tables are Iceberg tables."""
        with spark_errors():
            if not isinstance(provider, str) or provider.lower() != "iceberg":
                raise UnsupportedError(f"expected the format `iceberg` for a table of a lake, found `{provider}`")
        return self

    def option(self, key: str, value: Any) -> "LakeWriter":
        """Set an option such as `branch` or `snapshot-property.run`."""
        with spark_errors():
            parse_write_options({key: value})
        self._options[key] = value
        return self

    def options(self, **options: Any) -> "LakeWriter":
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def tableProperty(self, property: str, value: str) -> "LakeWriter":  # noqa: A002, N802  (Spark's names)
        """Set a property of a table that is created or replaced."""
        self._properties[property] = value
        return self

    def partitionedBy(self, col: Column | str, *cols: Column | str) -> "LakeWriter":  # noqa: N802
        """Partition a table that is created or replaced: columns, or transforms of `functions.partitioning`."""
        self._partition_by = tuple(_term(c) for c in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> "LakeWriter":  # noqa: N802
        """Iceberg has no clustering columns."""
        with spark_errors():
            raise UnsupportedError(
                "cannot cluster lake tables", hints=["partition them, or give them a sort order (WRITE ORDERED BY)"]
            )

    def create(self) -> None:
        """Make the table with these rows; it must not exist."""
        self._write_new(replace=False)

    def replace(self) -> None:
        """Begin an existing table again with these columns and rows; its history stays."""
        with spark_errors():
            self._tables.resolve_write(self._name)  # it must exist
        self._write_new(replace=True)

    def createOrReplace(self) -> None:  # noqa: N802
        """Make the table, or begin it again, with these rows."""
        self._write_new(replace=True)

    def append(self) -> None:
        """Add the rows."""
        with spark_errors(), self._write() as (table, write):
            write.append(assign(self._frame, table.schema, by_name=True))

    def overwrite(self, condition: Column | str) -> None:
        """Replace the rows for which a condition is true."""
        with spark_errors(), self._write() as (table, write):
            row_filter = exact_condition(self._tables.spark, table.schema, condition)
            rows = assign(self._frame, table.schema, by_name=True)
            write.overwrite_where(rows, row_filter, SparkRowEngine(self._tables.spark))

    def overwritePartitions(self) -> None:  # noqa: N802
        """Replace the partitions that the rows are in."""
        with spark_errors(), self._write() as (table, write):
            write.overwrite_partitions(assign(self._frame, table.schema, by_name=True))

    def _write(self) -> AbstractContextManager[tuple[Table, TableWrite]]:
        if self._partition_by or self._properties:
            raise InvalidInputError(
                "expected partitionedBy and tableProperty only with create, replace or createOrReplace"
            )
        options = parse_write_options(self._options)
        return frame_write(self._tables, self._tables.resolve_write(self._name), self._frame, options)

    def _write_new(self, *, replace: bool) -> None:
        with spark_errors():
            lake, name = self._tables.place_new(self._name)
            new = NewTableWrite(name, self._partition_by, self._properties)
            options = parse_write_options(self._options)
            write_new_table(self._tables, lake, new, self._frame, options, replace=replace)


def _term(column: Column | str) -> str:
    """A column as a partition term: the text of `bucket(4, id)`."""
    if isinstance(column, str):
        return column
    return str(column).removeprefix("Column<'").removesuffix("'>")
