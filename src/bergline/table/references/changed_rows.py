"""The rows that changed between two states of a table: the changes of each snapshot, or only the net changes."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from bergline.arguments import counted
from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.changelog import DELETE, INSERT, changelog_schema, read_changes
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.reserved import CHANGE_TYPE, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.changelog import plan_changelog, plan_difference
from bergline.scan.plan import ChangelogPlan, FileChange
from bergline.table.scans.changelog_scan import MatchRules, check_change_columns, snapshots_between
from bergline.table.scans.match_changes import match_changes

_NET = MatchRules(net=True)


class Changelog:
    """The rows that changed between two states, in the columns of the later one; read lazily.

    Rows that were only copied to other files are no change. Net changes between states of which the second does not
    descend from the first, or no longer visibly, have neither ordinals nor snapshots.
    """

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        schema: Schema,
        rules: MatchRules,
        *,
        snapshots: Sequence[Snapshot] | None,
        states: tuple[int | None, int | None] | None = None,
    ) -> None:
        """The changes of snapshots (see `changelog_snapshots`), or without any, how two states differ."""
        check_change_columns(schema)
        self.io = io
        self.rules = rules
        self._metadata = metadata
        self._rows = schema
        self._snapshots = snapshots
        self._states = states

    def __repr__(self) -> str:
        between = "two states" if self._snapshots is None else counted(len(self._snapshots), "snapshot")
        return f"Changelog(of {between})"

    @property
    def schema(self) -> Schema:
        """The columns of the rows, and those that describe each change."""
        return changelog_schema(self._rows)

    @cached_property
    def added(self) -> pa.Table:
        """The rows that only the second state has."""
        return self._net_rows(INSERT)

    @cached_property
    def removed(self) -> pa.Table:
        """The rows that only the first state has."""
        return self._net_rows(DELETE)

    def plan(self) -> ChangelogPlan:
        """The data files with the rows; including row ids if rows are matched by them."""
        columns = Schema(fields=(*self._rows.fields, ROW_ID)) if self.rules.by_row_id else self._rows
        return self._plan(columns, by_states=self._snapshots is None)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes in bounded memory; in the order of the snapshots unless they are net changes."""
        plan = self.plan()
        if self.rules.net:
            return self._matched(plan, plan.changes, self.rules)
        by_snapshot = groupby(plan.changes, key=lambda change: change.ordinal)
        parts = [tuple(changes) for _, changes in by_snapshot]
        return (batch for changes in parts for batch in self._matched(plan, changes, self.rules))

    def to_arrow(self) -> pa.Table:
        """All changes, with columns for the type, ordinal and snapshot of each, as in Iceberg's changelogs."""
        return pa.Table.from_batches(self.to_batches(), arrow_schema(self.schema))

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The changes as a stream for other libraries."""
        return pa.RecordBatchReader.from_batches(arrow_schema(self.schema), self.to_batches())

    def _plan(self, columns: Schema, *, by_states: bool) -> ChangelogPlan:
        if by_states and self._states is not None:
            return plan_difference(self.io, self._metadata, *self._states, table_schema=self._rows, columns=columns)
        snapshots = self._snapshots or ()
        return plan_changelog(self.io, self._metadata, snapshots, table_schema=self._rows, columns=columns)

    def _matched(
        self, plan: ChangelogPlan, changes: Iterable[FileChange], rules: MatchRules
    ) -> Iterator[pa.RecordBatch]:
        changes, deletes = tuple(changes), DeleteFiles(self.io)
        names = [f.name for f in self.schema.fields]
        rows: Iterator[pa.RecordBatch] = (
            batch for change in changes for batch in read_changes(self.io, change, plan.read, deletes)
        )
        if needs_matching(changes):
            rows = match_changes(rows, rules, most_rows=sum(c.file.record_count for c in changes))
        return (batch.select(names) for batch in rows)

    def _net_rows(self, word: str) -> pa.Table:
        return self._net.filter(pc.equal(self._net.column(CHANGE_TYPE.name), word)).select(
            [f.name for f in self._rows.fields]
        )

    @cached_property
    def _net(self) -> pa.Table:
        """The net changes, from the two states alone if both exist: what came and went in between is not read."""
        plan = self._plan(self._rows, by_states=True)
        return pa.Table.from_batches(self._matched(plan, plan.changes, _NET), arrow_schema(self.schema))


def changes_between(
    io: FileIO, metadata: TableMetadata, states: tuple[int | None, int | None], schema: Schema, rules: MatchRules
) -> Changelog:
    """The changes from one snapshot to another; None is an empty table. See `snapshots_between` for errors."""
    before, after = states
    has_start = before is None or before in metadata.snapshots_by_id
    try:
        snapshots = snapshots_between(metadata, before, after)
    except (InvalidInputError, NotFoundError):
        if not rules.net or not has_start:
            raise
        return Changelog(io, metadata, schema, rules, snapshots=None, states=states)
    return Changelog(io, metadata, schema, rules, snapshots=snapshots, states=states if has_start else None)


def needs_matching(changes: Iterable[FileChange]) -> bool:
    """Whether some of the rows may cancel each other out, or form update images."""
    changes = tuple(changes)
    return any(c.may_insert for c in changes) and any(c.may_delete for c in changes)
