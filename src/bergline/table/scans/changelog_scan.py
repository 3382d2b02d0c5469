"""A read of what snapshots changed, as in Iceberg's changelog tables, and the rules for matching changes.

Every row of a data file that a snapshot added or removed is a change, even if it was only copied to another file.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from bergline.arguments import check_list
from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.changelog import CHANGE_COLUMNS, changelog_schema, read_changes
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.snapshot_log import readable_ms
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.changelog import plan_changelog
from bergline.scan.plan import ChangelogPlan, PlannedFile, ScanPlan
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import ReadVersion


class ChangelogRange(msgspec.Struct, frozen=True):
    """The snapshots of a changelog: those after a start, up to an end, each given by id, tag or time.

    Without a start it begins with the oldest snapshot that the table still has; without an end it extends to the head
    of the branch.
    """

    branch: str | None = None
    """The branch in whose history times are looked up, and whose head is the default end; `main` if not set."""
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    start_timestamp: int | None = None
    """In milliseconds since 1970, as `end_timestamp`."""
    end_timestamp: int | None = None
    start_tag: str | None = None
    end_tag: str | None = None


class MatchRules(msgspec.Struct, frozen=True):
    """Which changes cancel each other out, and which are two images of one update."""

    net: bool = False
    """Whether changes of different snapshots cancel each other out too."""
    identifiers: tuple[str, ...] = ()
    """Columns that identify a deleted and an inserted row as one updated row."""
    by_row_id: bool = False
    """Whether rows are identified by their row ids instead."""


def match_rules(
    metadata: TableMetadata,
    schema: Schema,
    *,
    net_changes: bool = False,
    compute_updates: bool | None = None,
    identifier_columns: Sequence[str] | None = None,
) -> MatchRules:
    """The rules from arguments; update images are computed if identifier columns are given, or on request."""
    given = None if identifier_columns is None else tuple(check_list(identifier_columns, "identifier column"))
    if not (given is not None if compute_updates is None else compute_updates):
        _check_identifiers(schema, given or ())
        return MatchRules(net_changes)
    identifiers = given
    if identifiers is None:
        identifiers = tuple(schema.names_by_id[field_id] for field_id in schema.identifier_field_ids)
    if identifiers:
        _check_identifiers(schema, identifiers)
        return MatchRules(net_changes, identifiers)
    if given is None and metadata.format_version >= ROW_LINEAGE_VERSION and not net_changes:
        return MatchRules(by_row_id=True)
    raise InvalidInputError(
        "expected identifier columns to compute update images by, found none",
        hints=["give `identifier_columns`, or set the table's identifier fields"],
    )


def _check_identifiers(schema: Schema, names: Sequence[str]) -> None:
    columns = [f.name for f in schema.fields]
    for name in names:
        if name not in columns:
            raise NotFoundError(f"no column `{name}` to identify rows by", kind="column", name=name, known=columns)
    if len(set(names)) != len(names):
        raise InvalidInputError(f"expected each identifier column once, found {', '.join(f'`{n}`' for n in names)}")


def changelog_snapshots(metadata: TableMetadata, chosen: ChangelogRange) -> list[Snapshot]:
    """The snapshots of a range, oldest first, without those that only rewrote files, which change no row."""
    _check_one(chosen, "start")
    _check_one(chosen, "end")
    _check_times(chosen)
    head = _head(metadata, chosen)
    start, end = chosen.start_snapshot_id, chosen.end_snapshot_id
    if chosen.start_tag is not None:
        start = metadata.ref(chosen.start_tag).snapshot_id
    if chosen.end_tag is not None:
        end = metadata.ref(chosen.end_tag).snapshot_id
    if chosen.end_timestamp is not None:
        end = _last_until(metadata, head, chosen.end_timestamp)
        if end is None:
            return []
    elif end is None:
        end = head
    if chosen.start_timestamp is not None:
        return _after(metadata, end, chosen.start_timestamp)
    return snapshots_between(metadata, start, end)


def snapshots_between(metadata: TableMetadata, start: int | None, end: int | None) -> list[Snapshot]:
    """The snapshots after one, which may have expired, up to another, oldest first; not those that only rewrote files.

    InvalidInputError if the second does not descend from the first, NotFoundError if snapshots between have expired.
    """
    found: list[Snapshot] = []
    for snapshot in metadata.ancestors(None if end is None else metadata.snapshot(end).snapshot_id):
        if snapshot.snapshot_id == start:
            return _changing(found)
        found.append(snapshot)
    oldest = found[-1] if found else None
    if start is None or (oldest is not None and oldest.parent_snapshot_id == start):
        return _changing(found)
    if oldest is not None and oldest.parent_snapshot_id is not None:
        raise NotFoundError(
            f"cannot read the changes since snapshot {start}: snapshot {oldest.parent_snapshot_id}, "
            f"the parent of {oldest.snapshot_id}, has expired",
            kind="snapshot",
            name=str(oldest.parent_snapshot_id),
            hints=["keep snapshots, or a tag, until their changes have been read"],
        )
    metadata.snapshot(start)
    raise InvalidInputError(f"expected a snapshot that descends from {start} to read changes up to, found {end}")


def _changing(newest_first: Iterable[Snapshot]) -> list[Snapshot]:
    return [s for s in newest_first if s.operation != SnapshotOperation.REPLACE][::-1]


def _check_times(chosen: ChangelogRange) -> None:
    start, end = chosen.start_timestamp, chosen.end_timestamp
    if start is not None and end is not None and start >= end:
        raise InvalidInputError(
            f"expected a start time before the end time {readable_ms(end)}, found {readable_ms(start)}"
        )


def _check_one(chosen: ChangelogRange, which: str) -> None:
    names = (f"{which}-snapshot-id", f"{which}-timestamp", f"{which}-tag")
    given = [name for name in names if getattr(chosen, name.replace("-", "_")) is not None]
    if len(given) > 1:
        raise InvalidInputError(f"expected one {which} of a changelog, found {' and '.join(f'`{n}`' for n in given)}")


def _head(metadata: TableMetadata, chosen: ChangelogRange) -> int | None:
    name = MAIN if chosen.branch is None else chosen.branch
    if name == MAIN and MAIN not in metadata.refs:
        return None
    found = metadata.ref(name)
    if not found.is_branch:
        raise InvalidInputError(f"expected a branch, found the tag `{name}`")
    return found.snapshot_id


def _last_until(metadata: TableMetadata, head: int | None, moment: int) -> int | None:
    return next((s.snapshot_id for s in metadata.ancestors(head) if s.timestamp_ms <= moment), None)


def _after(metadata: TableMetadata, end: int | None, moment: int) -> list[Snapshot]:
    """The snapshots up to one that are younger than a time; NotFoundError if some of these may have expired."""
    found: list[Snapshot] = []
    for snapshot in metadata.ancestors(end):
        if snapshot.timestamp_ms <= moment:
            return _changing(found)
        found.append(snapshot)
    if found and found[-1].parent_snapshot_id is not None:
        raise NotFoundError(
            f"cannot read the changes since {readable_ms(moment)}: snapshot {found[-1].parent_snapshot_id}, "
            f"the parent of {found[-1].snapshot_id}, has expired",
            kind="snapshot",
            name=str(found[-1].parent_snapshot_id),
        )
    return _changing(found)


def check_change_columns(schema: Schema) -> None:
    """InvalidInputError for a table with columns named like the change columns."""
    taken = {f.name for f in CHANGE_COLUMNS} & {f.name for f in schema.fields}
    if taken:
        raise InvalidInputError(f"expected no column of the name `{min(taken)}` to read changes, found one")


class ChangelogScan(TableScan):
    """The rows that some snapshots added and deleted, with columns that describe each change.

    A filter applies to the columns of the rows, not to the change columns.
    """

    def __init__(self, io: FileIO, metadata: TableMetadata, snapshots: Sequence[Snapshot], schema: Schema) -> None:
        check_change_columns(schema)
        last = snapshots[-1].snapshot_id if snapshots else None
        super().__init__(io, metadata, ReadVersion(last, schema), None, None)
        self._columns = changelog_schema(schema)
        self.snapshots = tuple(snapshots)

    @property
    def row_columns(self) -> Schema:
        """The columns to read from files."""
        ids = {f.id for f in CHANGE_COLUMNS}
        return Schema(fields=tuple(f for f in self._columns.fields if f.id not in ids))

    def plan_changes(self) -> ChangelogPlan:
        """The data files that may hold matching rows."""
        return plan_changelog(
            self.io,
            self._metadata,
            self.snapshots,
            table_schema=self.version.schema,
            columns=self.row_columns,
            row_filter=self._filter,
        )

    def plan(self) -> ScanPlan:
        """The same as a plan of whole files, each with its current or last deletes."""
        plan = self.plan_changes()
        files = tuple(
            PlannedFile(c.file, c.sequence_number, (c.before if c.after is None else c.after) or ())
            for c in plan.changes
        )
        return msgspec.structs.replace(plan.read, schema=self._columns, files=files)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in pieces; files are planned now and opened one after the other."""
        plan, deletes, names = self.plan_changes(), DeleteFiles(self.io), [f.name for f in self._columns.fields]
        return (
            batch.select(names)
            for change in plan.changes
            for batch in read_changes(self.io, change, plan.read, deletes)
        )

    def to_arrow(self) -> pa.Table:
        """The rows."""
        return pa.Table.from_batches(self.to_batches(), arrow_schema(self._columns))
