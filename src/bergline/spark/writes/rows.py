"""One write of a DataFrame to a table: its rows as files on the executors, then one commit."""

from collections.abc import Mapping
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from bergline.expressions.bound_filter import BoundFilter
from bergline.spark.backends.choose import backend_of
from bergline.spark.pushdown.provenance import branch_reads
from bergline.spark.writes.data_files import write_files
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.target import WriteTarget
from bergline.table.commits.branches import branch_head
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import Isolation, ValidateFrom
from bergline.table.commits.operation import Operation
from bergline.table.commits.validate import Validation
from bergline.table.engine.row_engine import RowEngine
from bergline.table.manifests.removal import Everything
from bergline.table.operations.append import Append
from bergline.table.operations.delete import Delete, RowsToDelete
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from bergline.table.operations.replace_partitions import replace_partitions
from bergline.table.operations.validate_from import validation_start
from bergline.table.references.staged import staged
from bergline.table.references.stream_batches import CommittedOnce
from bergline.table.references.summary import check_summary, wap_summary
from bergline.table.table import Table

_SESSION_SUMMARY = "spark.sql.iceberg.snapshot-property."


class TableWrite:
    """Takes frames that have the table's columns; a write that fails leaves no file and no snapshot."""

    def __init__(self, spark: SparkSession, table: Table, write_target: WriteTarget, options: WriteOptions) -> None:
        self._table = table
        self._write_target = write_target
        self._options = options
        self._summary = snapshot_summary(spark, write_target, options.summary)
        if write_target.batch is not None:
            self._summary |= write_target.batch.summary

    def append(self, rows: DataFrame) -> None:
        """Add the rows; without any, the snapshot is empty."""
        files = write_files(rows, self._table, self._options)
        self._commit(
            Append(
                self._table.io,
                files,
                branch=self._write_target.branch,
                summary=self._summary,
                discard_on_failure=True,
                starts_branch=self._write_target.starts_branch,
                written_schema=self._table.schema,
            )
        )

    def overwrite(self, rows: DataFrame) -> None:
        """Replace all rows."""
        validate = self._validation(rows)
        if validate is not None:
            self._check_not_late(validate, None)
        files = write_files(rows, self._table, self._options)
        self._commit(
            Overwrite(
                self._table.io,
                files,
                [Everything()],
                branch=self._write_target.branch,
                summary=self._summary,
                checks=OverwriteChecks(validate.snapshot_id, validate.isolation) if validate else None,
                discard_on_failure=True,
                starts_branch=self._write_target.starts_branch,
                written_schema=self._table.schema,
            )
        )

    def overwrite_where(self, rows: DataFrame, row_filter: BoundFilter, engine: RowEngine) -> None:
        """Replace the rows that match a filter; files that hold others too are rewritten by the engine."""
        write_target, validate = self._write_target, self._validation(rows)
        if validate is not None:
            self._check_not_late(validate, row_filter)
        since: int | Literal["head"] | None = validate.snapshot_id if validate else "head"
        isolation = validate.isolation if validate else None
        wanted = RowsToDelete(row_filter, write_target.branch, isolation, since, write_target.starts_branch)
        files = write_files(rows, self._table, self._options)
        self._commit(Delete(self._table.io, wanted, files, summary=self._summary, engine=engine))

    def overwrite_partitions(self, rows: DataFrame) -> None:
        """Replace the partitions that the rows are in; without rows there is nothing to do."""
        metadata, validate = self._table.metadata, self._validation(rows)
        files = write_files(rows, self._table, self._options)
        if not files:
            return
        self._commit(
            replace_partitions(
                self._table.io,
                metadata,
                files,
                branch=self._write_target.branch,
                summary=self._summary,
                validate=validate,
                discard_on_failure=True,
                starts_branch=self._write_target.starts_branch,
                written_schema=self._table.schema,
            )
        )

    def _validation(self, rows: DataFrame) -> ValidateFrom | None:
        """The options' start of validation, else, if the rows were read from the branch, the snapshot that was read."""
        isolation, start = self._options.isolation, self._options.validate_from
        reads = branch_reads(rows) if self._options.goes_by_reads else ()
        return validation_start(self._table.metadata, self._write_target.branch, isolation, start, reads)

    def _check_not_late(self, validate: ValidateFrom, row_filter: BoundFilter | None) -> None:
        """ConflictError for what others did already, before Spark works out any row."""
        base, branch = self._table.metadata, self._write_target.branch
        validation = Validation(
            self._table.io, base, branch_head(base, branch), since=validate.snapshot_id, branch=branch
        )
        if row_filter is None:
            OverwriteChecks(validate.snapshot_id, validate.isolation).run(validation)
        elif validate.isolation is Isolation.SERIALIZABLE:
            validation.check_no_new_data(Scope(row_filter))

    def _commit(self, operation: Operation) -> None:
        target = self._write_target
        if target.batch is not None:
            operation = CommittedOnce(operation, target.batch, target.branch)
        self._table.commit(staged(operation, target.wap_id))


def snapshot_summary(
    spark: SparkSession, write_target: WriteTarget, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The entries of every snapshot that a session writes, and those that a write was given."""
    summary = check_summary(_engine_summary(spark) | write_target.summary | dict(given or {}))
    return summary | wap_summary(write_target.wap_id)


def _engine_summary(spark: SparkSession) -> dict[str, str]:
    """The entries that the official runtime puts into every summary, and those of the session's settings."""
    app_id, app_name = spark.conf.get("spark.app.id", ""), spark.conf.get("spark.app.name", "")
    own = {"engine-name": "spark", "engine-version": spark.version}
    own |= {"app-id": app_id, "spark.app.id": app_id} if app_id else {}
    own |= {"app-name": app_name} if app_name else {}
    return own | backend_of(spark).settings_under(_SESSION_SUMMARY)
