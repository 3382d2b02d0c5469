"""Writes of rows: every method creates one snapshot on a branch, or a staged one."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Literal

from bergline.datafiles.write.input_rows import ArrowRows
from bergline.datafiles.write.write_spec import write_spec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import InvalidInputError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.predicate import Predicate
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.commits.branches import check_write_branch, head_id
from bergline.table.commits.isolation import Isolation, ValidateFrom
from bergline.table.engine.row_engine import RowEngine, check_row_engine
from bergline.table.handle import TableHandle, WriteArguments
from bergline.table.manifests.removal import Everything
from bergline.table.operations.append import Append
from bergline.table.operations.delete import Delete, RowsToDelete
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from bergline.table.operations.replace_partitions import replace_partitions
from bergline.table.operations.validate_from import validation_start
from bergline.table.references.staged import staged
from bergline.table.scans.scan import TableScan, to_predicate


class TableWrites:
    """Rows as Arrow data, pandas or polars DataFrames, or lists of dictionaries.

    With a `wap_id` a snapshot is staged on the head of the branch, which does not move: `refs.staged` finds it,
    `refs.publish` publishes it.
    """

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def check_branch(self, branch: str) -> None:
        """Refuse a tag as the target of a write; a branch that does not exist is created by the write."""
        check_write_branch(self._table.metadata, branch)

    def append(
        self,
        rows: ArrowRows,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        fast: bool = False,
        wap_id: str | None = None,
    ) -> None:
        """Add rows to a branch; a branch that does not exist starts at the head of `main`.

        Now and then an append merges small manifests of earlier ones; with `fast=True` it never does.
        """
        self.check_branch(branch)
        own = self._table.snapshot_summary(summary, wap_id)
        files = write_data_files(self._table.io, self._table.metadata, rows)
        operation = Append(
            self._table.io,
            files,
            branch=branch,
            summary=own,
            fast=fast,
            discard_on_failure=True,
            written_schema=self._table.schema,
        )
        self._table.commit(staged(operation, wap_id))

    def overwrite(
        self,
        rows: ArrowRows | TableScan,
        row_filter: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        validate_from: TableScan | int | None = None,
        wap_id: str | None = None,
        engine: RowEngine | None = None,
    ) -> None:
        """Replace the rows that match a filter, by default all rows of a branch.

        With a filter, ConflictError if others changed rows that match since the branch was loaded here; `isolation`
        says how much of it counts ("serializable", "snapshot" or "none"), by default `write.delete.isolation-level`.
        Without a filter only a given level is checked, unless the new rows were read from the branch: if `rows` or
        `validate_from` is a scan, changes count from the snapshot that it reads. Files that also hold other rows are
        rewritten in this process, or by the given `engine`.
        """
        self.check_branch(branch)
        options = WriteArguments(branch, summary, isolation, wap_id, check_row_engine(engine))
        own = self._table.snapshot_summary(summary, wap_id)
        validate = self._validation(rows, options, validate_from)
        if row_filter is None:
            operation = Overwrite(
                self._table.io,
                write_data_files(self._table.io, self._table.metadata, rows),
                [Everything()],
                branch=branch,
                summary=own,
                checks=OverwriteChecks(validate.snapshot_id, validate.isolation) if validate else None,
                discard_on_failure=True,
                written_schema=self._table.schema,
            )
            self._table.commit(staged(operation, wap_id))
            return
        since = validate.snapshot_id if validate else head_id(self._table.metadata, branch)
        wanted = self._rows_to_delete(row_filter, options, since)
        self._delete(wanted, write_data_files(self._table.io, self._table.metadata, rows), options)

    def delete(
        self,
        row_filter: str | Predicate,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
        engine: RowEngine | None = None,
    ) -> None:
        """Delete the rows of a branch that match a filter; if none does, nothing is committed.

        ConflictError if others change such rows meanwhile; `isolation` says which changes count ("serializable",
        "snapshot" or "none"), by default `write.delete.isolation-level`. Files that also hold other rows are rewritten
        in this process, or by Spark's executors if `engine` is `bergline.spark.row_engine(spark)`.
        """
        if row_filter is None:
            raise InvalidInputError("expected a filter, found none", hints=['"true" deletes all rows'])
        self.check_branch(branch)
        options = WriteArguments(branch, summary, isolation, wap_id, check_row_engine(engine))
        self._delete(self._rows_to_delete(row_filter, options), (), options)

    def overwrite_partitions(
        self,
        rows: ArrowRows | TableScan,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        validate_from: TableScan | int | None = None,
        wap_id: str | None = None,
    ) -> None:
        """Replace every partition that the rows are in; without rows there is nothing to do.

        Concurrent changes are checked as for `overwrite` without a filter.
        """
        self.check_branch(branch)
        own = self._table.snapshot_summary(summary, wap_id)
        validate = self._validation(rows, WriteArguments(branch, isolation=isolation), validate_from)
        files = write_data_files(self._table.io, self._table.metadata, rows)
        if files:
            operation = replace_partitions(
                self._table.io,
                self._table.metadata,
                files,
                branch=branch,
                summary=own,
                validate=validate,
                discard_on_failure=True,
                written_schema=self._table.schema,
            )
            self._table.commit(staged(operation, wap_id))

    def _validation(
        self, rows: ArrowRows | TableScan, options: WriteArguments, given: TableScan | int | None
    ) -> ValidateFrom | None:
        reads = (rows.branch_read,) if isinstance(rows, TableScan) and rows.branch_read else ()
        return validation_start(self._table.metadata, options.branch, options.isolation, given, reads)

    def _rows_to_delete(
        self, row_filter: str | Predicate, options: WriteArguments, since: int | Literal["head"] | None = "head"
    ) -> RowsToDelete:
        level = options.level(self._table.metadata, "delete")
        # an invalid filter is refused before anything is written
        return RowsToDelete(bind_filter(to_predicate(row_filter), self._table.schema), options.branch, level, since)

    def _delete(self, rows: RowsToDelete, files: Sequence[DataFile], options: WriteArguments) -> None:
        own = self._table.snapshot_summary(options.summary, options.wap_id)
        operation = Delete(self._table.io, rows, files, summary=own, engine=options.engine)
        self._table.commit(staged(operation, options.wap_id))


def write_data_files(io: FileIO, metadata: TableMetadata, rows: ArrowRows | TableScan) -> list[DataFile]:
    """Rows as data files of a table that are not in any snapshot yet."""
    if isinstance(rows, TableScan):
        rows = rows.to_arrow_batch_reader()
    with DataFileWriter(io, write_spec(metadata), f"00000-0-{uuid.uuid4()}") as writer:
        writer.write(rows)
        return writer.finish()
