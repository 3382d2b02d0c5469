"""A table read as a stream of its appends: offsets in its history, the extent of batches, and the files between."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from bergline.errors import FormatError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.manifest.manifest import ManifestContent, ManifestFile
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list, with_counts
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.planner import plan_appends, plan_scan

SKIP_DELETES: Final = "streaming-skip-delete-snapshots"
SKIP_OVERWRITES: Final = "streaming-skip-overwrite-snapshots"
_NOWHERE: Final = -1
_NEW_CHECKPOINT: Final = "give the query a new `checkpointLocation`; `stream-from-timestamp` says where it begins"


class StreamOffset(msgspec.Struct, frozen=True, omit_defaults=True):
    """An offset in a table's history: how many of the files that a snapshot added have been read.

    In JSON as Iceberg's own runtime writes it, with two more entries: the table's identity, and where the stream began.
    """

    snapshot_id: int = _NOWHERE
    position: int = _NOWHERE
    scan_all_files: bool = False
    """Whether the position counts all files of the snapshot, not only those that it added."""
    table_uuid: str | None = None
    first_snapshot_id: int | None = None
    version: int = 1

    @property
    def is_nowhere(self) -> bool:
        """Whether the table was still empty."""
        return self.snapshot_id == _NOWHERE

    @property
    def is_beginning(self) -> bool:
        """Whether nothing has been read yet: a batch from here begins where its end offset says the stream began."""
        return self.is_nowhere or (self.position == 0 and self.snapshot_id == self.first_snapshot_id)


def render_offset(offset: StreamOffset) -> dict[str, Any]:
    """The offset for a checkpoint."""
    own = {
        "version": offset.version,
        "snapshot_id": offset.snapshot_id,
        "position": offset.position,
        "scan_all_files": offset.scan_all_files,
    }
    more = {"table_uuid": offset.table_uuid, "first_snapshot_id": offset.first_snapshot_id}
    return own | {key: value for key, value in more.items() if value is not None}


def parse_offset(found: Mapping[str, Any]) -> StreamOffset:
    """The offset in a checkpoint, ours or that of Iceberg's own runtime; FormatError for anything else."""
    try:
        offset = msgspec.convert(dict(found), StreamOffset)
    except msgspec.ValidationError as error:
        raise FormatError(f"expected the offset of an Iceberg table in the checkpoint, found {dict(found)}") from error
    if offset.version != 1 or not {"snapshot_id", "position"} <= found.keys():
        raise FormatError(f"expected an offset of version 1 in the checkpoint, found {dict(found)}")
    return offset


class StreamRules(msgspec.Struct, frozen=True):
    """What a stream reads: from which time on, how much per batch, and which snapshots it skips."""

    from_ms: int | None = None
    max_files: int | None = None
    max_rows: int | None = None
    """A soft limit: the file that reaches it is read whole."""
    skip_overwrites: bool = False
    skip_deletes: bool = False

    @property
    def is_limited(self) -> bool:
        """Whether batches have a limit."""
        return self.max_files is not None or self.max_rows is not None


class StreamScan:
    """The appends of one branch, in one state of the table; rows have the columns of `schema`, whatever came later."""

    def __init__(self, io: FileIO, metadata: TableMetadata, branch: str, schema: Schema, rules: StreamRules) -> None:
        self.io = io
        self._metadata = metadata
        self._branch = branch
        self._schema = schema
        self._rules = rules
        self._head = metadata.head(branch)
        if self._head is None and branch != MAIN:
            raise metadata.missing_ref(branch, "branch", metadata.refs)

    def beginning(self) -> StreamOffset:
        """Where a new stream begins: at the oldest snapshot, or at the first one from a time on."""
        uuid, from_ms = self._metadata.table_uuid, self._rules.from_ms
        if self._head is None or (from_ms is not None and self._head.timestamp_ms < from_ms):
            return StreamOffset(table_uuid=uuid)
        first = self._head
        for snapshot in self._metadata.ancestors(self._head.snapshot_id):
            if from_ms is not None and snapshot.timestamp_ms < from_ms:
                break
            first = snapshot
        return StreamOffset(first.snapshot_id, 0, table_uuid=uuid, first_snapshot_id=first.snapshot_id)

    def end(self, start: StreamOffset, *, limited: bool = True) -> StreamOffset:
        """Where a batch from `start` ends: at the newest append, or where a limit is reached; `start` if all is read.

        RefusedError for a snapshot in between that removed rows and must not be skipped.
        """
        self._check_table(start)
        begin = self.beginning() if start.is_nowhere else start
        if begin.is_nowhere:
            return start
        room, reached = _Room(self._rules if limited else StreamRules()), begin
        for snapshot in self._history(begin.snapshot_id):
            if not self._is_read(snapshot):
                continue
            all_files, position = self._place(snapshot, begin)
            taken = room.take(_record_counts(self._files(snapshot, all_files=all_files).files)[position:])
            if taken:
                reached = msgspec.structs.replace(
                    begin, snapshot_id=snapshot.snapshot_id, position=position + taken, scan_all_files=all_files
                )
            if room.is_used_up:
                break
        if reached == begin:
            return start
        return msgspec.structs.replace(reached, table_uuid=self._metadata.table_uuid)

    def plan(self, start: StreamOffset, end: StreamOffset) -> ScanPlan:
        """The files between two offsets."""
        self._check_table(start)
        self._check_table(end)
        plan = plan_appends(self.io, self._metadata, (), table_schema=self._schema, columns=self._schema)
        if end.is_nowhere or start == end:
            return plan
        begin = start
        if start.is_beginning and end.first_snapshot_id is not None:
            begin = StreamOffset(end.first_snapshot_id, 0)
        elif start.is_nowhere:
            begin = self.beginning()
        files: list[PlannedFile] = []
        for snapshot in self._history(begin.snapshot_id, end.snapshot_id):
            if self._is_read(snapshot):
                all_files, position = self._place(snapshot, begin)
                plan = self._files(snapshot, all_files=all_files)
                found = plan.files.without_metrics if isinstance(plan.files, PlannedFiles) else plan.files
                files += found[position : end.position if snapshot.snapshot_id == end.snapshot_id else None]
        return msgspec.structs.replace(plan, files=tuple(files), snapshot_id=end.snapshot_id)

    def _place(self, snapshot: Snapshot, begin: StreamOffset) -> tuple[bool, int]:
        """Whether all files of a snapshot count, and how many of them have been read."""
        is_first = snapshot.snapshot_id == begin.snapshot_id
        return (begin.scan_all_files, max(0, begin.position)) if is_first else (False, 0)

    def _files(self, snapshot: Snapshot, *, all_files: bool) -> ScanPlan:
        schema = self._schema
        if all_files:
            return plan_scan(self.io, self._metadata, snapshot.snapshot_id, table_schema=schema, columns=schema)
        return plan_appends(self.io, self._metadata, [snapshot.snapshot_id], table_schema=schema, columns=schema)

    def _is_read(self, snapshot: Snapshot) -> bool:
        match snapshot.operation:
            case SnapshotOperation.APPEND:
                return True
            case SnapshotOperation.REPLACE:
                return False
            case SnapshotOperation.DELETE:
                is_skipped, option = self._rules.skip_deletes, SKIP_DELETES
            case SnapshotOperation.OVERWRITE:
                is_skipped, option = self._rules.skip_overwrites, SKIP_OVERWRITES
            case unknown:
                raise FormatError(f"expected one of Iceberg's operations, found `{unknown}` in {self._at(snapshot)}")
        if is_skipped:
            return False
        if not self._only_adds(snapshot):
            raise RefusedError(
                f"cannot stream {snapshot.operation} {self._at(snapshot)}: a stream reads only appended rows",
                hints=[f"option `{option}` = `true` skips such snapshots"],
            )
        return True

    def _only_adds(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot removed no rows, whatever its operation: it may even have changed nothing.

        What a snapshot removes is in manifests that it adds, and these are kept for as long as the snapshot is.
        """
        manifests = load_manifest_list(self.io, snapshot)
        own = [with_counts(self.io, m) for m in manifests if m.added_snapshot_id == snapshot.snapshot_id]
        return not any(m.deleted_files_count or (_holds_deletes(m) and m.added_files_count) for m in own)

    def _at(self, snapshot: Snapshot) -> str:
        return f"snapshot {snapshot.snapshot_id} of {self._metadata.location}"

    def _history(self, first: int, last: int | None = None) -> Iterator[Snapshot]:
        """The snapshots of the branch from one on, oldest first; all must still exist."""
        metadata, head = self._metadata, self._head
        if head is None or first not in metadata.snapshots_by_id:
            raise NotFoundError(
                f"no snapshot {first} of {metadata.location}, from which the stream continues: "
                "it has expired, or the checkpoint is that of another table",
                kind="snapshot",
                name=str(first),
                hints=[_NEW_CHECKPOINT, "keep snapshots for longer than the query may be stopped"],
            )
        found: list[Snapshot] = []
        for snapshot in metadata.ancestors(head.snapshot_id):
            found.append(snapshot)
            if snapshot.snapshot_id == first:
                break
        if found[-1].snapshot_id != first or (last is not None and last not in {s.snapshot_id for s in found}):
            missing = first if found[-1].snapshot_id != first else last
            raise InvalidInputError(
                f"expected snapshot {missing}, at which the stream is, among the ancestors of branch `{self._branch}` "
                f"of {metadata.location}, found that it is not: the branch was rolled back, or snapshots between "
                "have expired",
                hints=[_NEW_CHECKPOINT],
            )
        for snapshot in reversed(found):
            yield snapshot
            if snapshot.snapshot_id == last:
                return

    def _check_table(self, offset: StreamOffset) -> None:
        expected, found = self._metadata.table_uuid, offset.table_uuid
        if expected is not None and found is not None and expected != found:
            raise InvalidInputError(
                f"expected a checkpoint of the table at {self._metadata.location} with uuid {expected}, "
                f"found one of a table with uuid {found}",
                hints=[_NEW_CHECKPOINT],
            )


def _holds_deletes(manifest: ManifestFile) -> bool:
    return manifest.content is ManifestContent.DELETES


class _Room:
    """The remaining room in a batch."""

    def __init__(self, rules: StreamRules) -> None:
        self._files = rules.max_files
        self._rows = rules.max_rows

    @property
    def is_used_up(self) -> bool:
        """Whether a limit is reached."""
        return self._files == 0 or (self._rows is not None and self._rows <= 0)

    def take(self, record_counts: list[int]) -> int:
        """Take files in order, as many as fit."""
        for taken, rows in enumerate(record_counts):
            if self.is_used_up:
                return taken
            if self._files is not None:
                self._files -= 1
            if self._rows is not None:
                self._rows -= rows
        return len(record_counts)


def _record_counts(files: Any) -> list[int]:
    if isinstance(files, PlannedFiles):
        return [count for group in files.groups for count in group.frame["record_count"].to_list()]
    return [planned.file.record_count for planned in files]
