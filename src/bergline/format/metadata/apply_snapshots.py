"""Updates of snapshots and refs, and of the snapshot log and metadata log."""

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from bergline.errors import ConflictError, InvalidInputError
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import (
    ROW_LINEAGE_VERSION,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
    TableMetadata,
    changed,
    with_log_entries,
    with_new_snapshots,
)
from bergline.format.metadata.updates import SetSnapshotRef

STATISTICS: Final = ("statistics", "partition_statistics")
"""The metadata fields that list files of snapshots."""
_DEFAULT_PREVIOUS_VERSIONS = 100
_MAX_LONG = 2**63 - 1
_MOST_NUMBERS_AHEAD = 2**32
_MOST_ROWS_AHEAD = 2**48
"""The most sequence numbers or row ids that one snapshot may use up: a client that used all of them would block the
table."""


class SnapshotChanges:
    """The snapshots, refs and statistics of a table while updates are applied.

    The cost of an update does not depend on how many snapshots there are; the metadata is built once, at the end.
    """

    def __init__(self, base: TableMetadata, now_ms: int) -> None:
        self._base = base
        self._now_ms = now_ms
        self._refs = dict(base.refs)
        self._added: dict[int, Snapshot] = {}
        self._removed: set[int] = set()
        """The snapshots of the base."""
        self._named: Counter[int] | None = None
        """How many refs name each snapshot; counted on first use."""
        self._logged: list[SnapshotLogEntry] = []
        self._fields: dict[str, Any] = {}
        """Other fields that have changed."""
        self._statistics: dict[str, dict[int, tuple[Any, ...]]] = {}
        """Files by snapshot, for the fields that have changed."""
        self.ever_added: set[int] = set()
        """The ids of all snapshots that were added, even if they were removed again."""
        self.has_removed = False

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot with this id, after the updates so far."""
        if snapshot_id in self._added or snapshot_id in self._removed:
            return self._added.get(snapshot_id)
        return self._base.snapshots_by_id.get(snapshot_id)

    def add(self, snapshot: Snapshot, metadata: TableMetadata) -> None:
        """Add a snapshot to a table, whose layout is as in the metadata.

        Its sequence number and row ids must not be behind the table's.
        """
        if self.find(snapshot.snapshot_id) is not None:
            raise ConflictError(f"expected a new snapshot id, found {snapshot.snapshot_id} in the table already")
        if not (metadata.schemas and metadata.partition_specs and metadata.sort_orders):
            raise InvalidInputError(
                "expected a schema, a partition spec and a sort order before a snapshot, found none"
            )
        version, last = metadata.format_version, self._field("last_sequence_number")
        if version == 1 and snapshot.sequence_number != 0:
            raise InvalidInputError(f"expected sequence number 0 in format version 1, found {snapshot.sequence_number}")
        # as in Java, a snapshot without a parent may have an old sequence number, for instance when two writers replace
        # a table at once; the table's last sequence number never goes back, because Java could not read that
        if version > 1 and snapshot.sequence_number <= last and snapshot.parent_snapshot_id is not None:
            raise ConflictError(
                f"expected a sequence number above {last}, found {snapshot.sequence_number}: "
                "another commit took it meanwhile"
            )
        if snapshot.sequence_number > last + _MOST_NUMBERS_AHEAD:
            raise InvalidInputError(
                f"expected a sequence number of up to {last + _MOST_NUMBERS_AHEAD}, found {snapshot.sequence_number}: "
                "others would have none left"
            )
        self._fields |= {
            "last_sequence_number": max(last, snapshot.sequence_number),
            "last_updated_ms": max(self._field("last_updated_ms"), snapshot.timestamp_ms),
            "next_row_id": _next_row_id(version, self._field("next_row_id"), snapshot),
        }
        self._added[snapshot.snapshot_id] = snapshot
        self.ever_added.add(snapshot.snapshot_id)

    def remove(self, removed: Collection[int]) -> None:
        """Remove snapshots and their statistics; refused while a ref names one of them."""
        if self._named is None:
            self._named = Counter(ref.snapshot_id for ref in self._refs.values())
        if named := {one for one in removed if self._named[one] > 0}:
            held = sorted(name for name, ref in self._refs.items() if ref.snapshot_id in named)
            raise ConflictError(f"cannot remove snapshots that refs name: {', '.join(f'`{n}`' for n in held)}")
        for one in removed:
            self.has_removed |= self.find(one) is not None
            if self._added.pop(one, None) is None:
                self._removed.add(one)
            for field in STATISTICS:
                self.remove_statistics(field, one)

    def set_ref(self, update: SetSnapshotRef) -> None:
        """Create or move a ref; changes of `main` are logged, with the snapshot's timestamp if it is new too."""
        name, old = update.ref_name, self._refs.get(update.ref_name)
        check_ref_name(name)
        snapshot = self.find(update.snapshot_id)
        if snapshot is None:
            raise ConflictError(f"expected a known snapshot for ref `{name}`, found {update.snapshot_id}")
        if name == MAIN and update.type is not SnapshotRefType.BRANCH:
            raise InvalidInputError("expected `main` to be a branch, found a tag")
        if old is not None and old.snapshot_ref_type is not update.type:
            raise ConflictError(f"expected ref `{name}` to be a {update.type}, found a {old.snapshot_ref_type}")
        ref = SnapshotRef(
            update.snapshot_id,
            update.type,
            update.min_snapshots_to_keep,
            update.max_snapshot_age_ms,
            update.max_ref_age_ms,
        )
        if ref == old:
            return
        self._put_ref(name, ref)
        if name == MAIN:
            time_ms = snapshot.timestamp_ms if ref.snapshot_id in self.ever_added else self._now_ms
            self._logged.append(SnapshotLogEntry(time_ms, ref.snapshot_id))
            self._fields["current_snapshot_id"] = ref.snapshot_id

    def remove_ref(self, name: str) -> None:
        """Remove a ref. Without `main` there is no current snapshot (as while a table is replaced); the log stays."""
        self._put_ref(name, None)
        if name == MAIN:
            self._fields["current_snapshot_id"] = None

    def set_statistics(self, field: str, file: StatisticsFile | PartitionStatisticsFile) -> None:
        """Replace the files of its snapshot by this one, after all others."""
        self.remove_statistics(field, file.snapshot_id)
        self._files(field)[file.snapshot_id] = (file,)

    def remove_statistics(self, field: str, snapshot_id: int) -> None:
        """Remove the files of a snapshot."""
        if getattr(self._base, field) or field in self._statistics:
            self._files(field).pop(snapshot_id, None)

    def finish(self, metadata: TableMetadata) -> TableMetadata:
        """The metadata, whose layout is the newest, with the changes."""
        files = {field: tuple(file for of in by.values() for file in of) for field, by in self._statistics.items()}
        after = changed(metadata, refs=self._refs, **self._fields, **files)
        if any(one in self._base.snapshots_by_id for one in self._removed):
            stay = (s for s in self._base.snapshots if s.snapshot_id not in self._removed)
            after = changed(after, snapshots=(*stay, *self._added.values()))
        elif self._added:
            after = with_new_snapshots(after, self._added.values())
        return with_log_entries(after, self._logged) if self._logged else after

    def _put_ref(self, name: str, ref: SnapshotRef | None) -> None:
        old = self._refs.get(name)
        if self._named is not None:
            self._named.subtract([old.snapshot_id] if old else ())
            self._named.update([ref.snapshot_id] if ref else ())
        if ref is None:
            self._refs.pop(name, None)
        else:
            self._refs[name] = ref

    def _field(self, name: str) -> int:
        value = self._fields.get(name)
        return int(getattr(self._base, name) if value is None else value)

    def _files(self, field: str) -> dict[int, tuple[Any, ...]]:
        known = self._statistics.get(field)
        if known is None:
            known = self._statistics[field] = {}
            for file in getattr(self._base, field):
                known[file.snapshot_id] = (*known.get(file.snapshot_id, ()), file)
        return known


def rewrite_snapshot_log(
    metadata: TableMetadata, added: set[int], *, logged_before: int, removed: bool
) -> TableMetadata:
    """The log without snapshots that were current only within this change, and without entries before a gap.

    `logged_before` is how many entries there were before this change: none of them names a snapshot that it adds.
    """
    passing = added - {metadata.current_snapshot_id}
    first = 0 if removed else logged_before
    if not removed and (not passing or len(metadata.snapshot_log) == first):
        return metadata
    log: list[SnapshotLogEntry] = []
    for entry in metadata.snapshot_log[first:]:
        if removed and entry.snapshot_id not in metadata.snapshots_by_id:
            log.clear()  # across a gap, time travel would return a state that was not current at that time
        elif entry.snapshot_id not in passing:
            log.append(entry)
    if first + len(log) == len(metadata.snapshot_log):
        return metadata
    return changed(metadata, snapshot_log=(*metadata.snapshot_log[:first], *log))


def log_base(metadata: TableMetadata, base: TableMetadata, base_location: str) -> TableMetadata:
    """Add the base's metadata file to the metadata log; the oldest entries are dropped."""
    text = metadata.properties.get("write.metadata.previous-versions-max", "")
    keep = max(1, int(text)) if text.isdecimal() and len(text) < len(str(_MAX_LONG)) else _DEFAULT_PREVIOUS_VERSIONS
    log = (*metadata.metadata_log, MetadataLogEntry(base.last_updated_ms, base_location))
    return changed(metadata, metadata_log=log[-keep:])


def _next_row_id(version: int, next_row_id: int, snapshot: Snapshot) -> int:
    """The first row id after those of the snapshot."""
    if version < ROW_LINEAGE_VERSION:
        return next_row_id
    first, added = snapshot.first_row_id, snapshot.added_rows
    if first is None or added is None or added < 0:
        raise InvalidInputError(
            f"expected first-row-id and added-rows in format version {version}, "
            f"found {first} and {added} for snapshot {snapshot.snapshot_id}"
        )
    if first < next_row_id:
        raise ConflictError(
            f"expected a first-row-id of {next_row_id} or more, found {first}: "
            "another commit took those row ids meanwhile"
        )
    if first + added > _MAX_LONG:
        raise InvalidInputError(f"expected row ids of 64 bits, found {added} rows from {first} on")
    if first + added > next_row_id + _MOST_ROWS_AHEAD:
        raise InvalidInputError(
            f"expected row ids up to {next_row_id + _MOST_ROWS_AHEAD}, found {added} rows from {first} on: "
            "others would have none left"
        )
    return first + added
