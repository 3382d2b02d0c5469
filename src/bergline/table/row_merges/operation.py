"""A merge or an update as an operation: its changes are computed on the first base and committed unchanged."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from bergline.errors import ConflictError
from bergline.expressions.bound_filter import BoundFilter
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import child_fields
from bergline.io.fileio import FileIO
from bergline.scan.plan import ScanPlan
from bergline.scan.planner import plan_scan
from bergline.table.commits.branches import branch_head
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, ValidateFrom, isolation_level
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.commits.validate import Validation
from bergline.table.engine.row_engine import RowEngine
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from bergline.table.operations.row_changes import RowLevelWrite, write_row_changes
from bergline.table.operations.row_delta import RowDelta
from bergline.table.row_merges.bind import BoundMerge
from bergline.table.row_merges.clauses import RowCounts, RowMergeRequest, UpdateRequest
from bergline.table.row_merges.find_changes import MergeChanges, find_changes
from bergline.table.row_merges.matching import SourceIndex
from bergline.table.row_merges.source import SourceRows


@runtime_checkable
class MergeEngine(Protocol):
    """A row engine that itself finds the rows that a request changes."""

    def find_changes(
        self,
        io: FileIO,
        metadata: TableMetadata,
        read: ScanPlan,
        request: RowMergeRequest | UpdateRequest,
        source: SourceRows,
    ) -> MergeChanges:
        """The changes in the rows of a scan, with new versions written; an error leaves no file behind."""


class RowMerge:
    """If no row changes there is nothing to do; otherwise a retry writes manifests, never rows."""

    needs_validation = True

    def __init__(
        self,
        io: FileIO,
        request: RowMergeRequest | UpdateRequest,
        bind: Callable[[TableMetadata], BoundMerge],
        source: SourceRows,
        write: RowLevelWrite,
        *,
        schema: Schema,
        engine: RowEngine | None = None,
        source_read: ValidateFrom | None = None,
    ) -> None:
        """`bind` gives the merge in the columns of a table's state; files are rewritten by the engine.

        `schema` has the columns that the caller knows. `source_read` is the snapshot of the same branch from which the
        source rows were read.
        """
        self._io = io
        self._request = request
        self._bind = bind
        self._source = source
        self._write = write
        self._schema = schema
        self._engine = engine
        self._source_read = source_read
        self._first_base: TableMetadata | None = None
        self._read: ScanPlan | None = None
        self._planned: Overwrite | RowDelta | None = None
        self.counts = RowCounts()

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The changes found on the first base, applied to this one; ConflictError if others changed the same rows."""
        if self._first_base is None:
            self._plan(base)
            self._first_base = base
        if self._planned is not None:
            return self._planned.attempt(base, stamp)
        self._check_still_nothing(base, stamp)
        return Change()

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs."""
        if self._planned is not None:
            self._planned.settled(landed)

    def _plan(self, base: TableMetadata) -> None:
        _check_same_columns(self._schema, base.schema)
        start = branch_head(base, self._write.branch)
        if (read_from := self._source_read) is not None:
            checks = OverwriteChecks(read_from.snapshot_id, read_from.isolation)
            checks.run(Validation(self._io, base, start, since=checks.since, branch=self._write.branch))
        merge, schema = self._bind(base), base.schema
        self._read = read = plan_scan(
            self._io,
            base,
            start.snapshot_id if start else None,
            table_schema=schema,
            columns=schema,
            row_filter=BoundFilter(merge.scan_filter, schema),
        )
        engine = merge_engine(self._engine)
        if engine is None:
            found = find_changes(self._io, base, read, merge, self._source)
        else:
            SourceIndex(merge, self._source)  # this also checks the keys of the source
            found = engine.find_changes(self._io, base, read, self._request, self._source)
        self.counts = found.counts
        if not found.changes.is_empty:
            self._planned = write_row_changes(self._io, base, read, found.changes, self._write, engine=self._engine)

    def _check_still_nothing(self, base: TableMetadata, stamp: CommitStamp) -> None:
        """In a transaction, others may have added rows in the scope since no row was found to change."""
        given, read = self._write.isolation, self._read
        if base is self._first_base or read is None or given == NO_ISOLATION:
            return
        if isolation_level(base, self._write.command, given) is Isolation.SERIALIZABLE:
            parent = branch_head(base, self._write.branch)
            scope = Scope(BoundFilter(read.filter, read.table_schema))
            Validation(
                self._io, base, parent, since=read.snapshot_id, branch=self._write.branch, earlier=stamp.earlier
            ).check_no_new_data(scope)


def merge_engine(engine: object) -> MergeEngine | None:
    """The engine, if it finds rows itself."""
    return engine if isinstance(engine, MergeEngine) else None


def _check_same_columns(known: Schema, now: Schema) -> None:
    """ConflictError if a column that the caller knows was renamed, dropped or retyped; new columns are fine."""
    for name, field in known.names.items():
        found = now.ids.get(field.id)
        if found is None or now.names_by_id[field.id] != name:
            change = "dropped" if found is None else f"renamed to `{now.names_by_id[field.id]}`"
        elif found.type != field.type and not child_fields(field.type):
            change = f"changed from `{field.type}` to `{found.type}`"
        else:
            continue
        raise ConflictError(
            f"the columns are no longer those of the table: expected `{name}`, found it {change}",
            hints=["look at the table as it is now and plan the operation again"],
        )
