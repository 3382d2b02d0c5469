"""Updates of snapshots and refs, and of the snapshot log and metadata log."""

from bergline.errors import ConflictError, InvalidInputError
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import (
    ROW_LINEAGE_VERSION,
    MetadataLogEntry,
    SnapshotLogEntry,
    TableMetadata,
    changed,
    with_log_entry,
    with_snapshot,
)
from bergline.format.metadata.updates import SetSnapshotRef

_DEFAULT_PREVIOUS_VERSIONS = 100
_MAX_LONG = 2**63 - 1


def add_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> TableMetadata:
    """Add a snapshot; its sequence number and row ids must not be behind the table's."""
    if snapshot.snapshot_id in metadata.snapshots_by_id:
        raise ConflictError(f"expected a new snapshot id, found {snapshot.snapshot_id} in the table already")
    if not (metadata.schemas and metadata.partition_specs and metadata.sort_orders):
        raise InvalidInputError("expected a schema, a partition spec and a sort order before a snapshot, found none")
    if metadata.format_version == 1 and snapshot.sequence_number != 0:
        raise InvalidInputError(f"expected sequence number 0 in format version 1, found {snapshot.sequence_number}")
    # as in Java, a snapshot without a parent may have an old sequence number, for instance when two writers replace a
    # table at once; the table's last sequence number never goes back, because Java could not read that
    is_late = snapshot.sequence_number <= metadata.last_sequence_number
    if metadata.format_version > 1 and is_late and snapshot.parent_snapshot_id is not None:
        raise ConflictError(
            f"expected a sequence number above {metadata.last_sequence_number}, found {snapshot.sequence_number}: "
            "another commit took it meanwhile"
        )
    return with_snapshot(
        metadata,
        snapshot,
        last_sequence_number=max(metadata.last_sequence_number, snapshot.sequence_number),
        last_updated_ms=max(metadata.last_updated_ms, snapshot.timestamp_ms),
        next_row_id=_next_row_id(metadata, snapshot),
    )


def remove_snapshots(metadata: TableMetadata, removed: frozenset[int]) -> TableMetadata:
    """Remove snapshots and their statistics; refused while a ref names one of them."""
    held = sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id in removed)
    if held:
        raise ConflictError(f"cannot remove snapshots that refs name: {', '.join(f'`{n}`' for n in held)}")
    return changed(
        metadata,
        snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id not in removed),
        statistics=tuple(s for s in metadata.statistics if s.snapshot_id not in removed),
        partition_statistics=tuple(s for s in metadata.partition_statistics if s.snapshot_id not in removed),
    )


def set_snapshot_ref(metadata: TableMetadata, update: SetSnapshotRef, added: set[int], now_ms: int) -> TableMetadata:
    """Create or move a ref; changes of `main` are logged, with the snapshot's timestamp if it is new too."""
    name, old = update.ref_name, metadata.refs.get(update.ref_name)
    check_ref_name(name)
    snapshot = metadata.snapshots_by_id.get(update.snapshot_id)
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
        return metadata
    moved = changed(metadata, refs=metadata.refs | {name: ref})
    if name != MAIN:
        return moved
    time_ms = snapshot.timestamp_ms if ref.snapshot_id in added else now_ms
    entry = SnapshotLogEntry(time_ms, ref.snapshot_id)
    return with_log_entry(moved, entry, current_snapshot_id=ref.snapshot_id)


def remove_ref(metadata: TableMetadata, name: str) -> TableMetadata:
    """Remove a ref. Without `main` there is no current snapshot (as while a table is replaced); the log stays."""
    left = {n: r for n, r in metadata.refs.items() if n != name}
    if name != MAIN:
        return changed(metadata, refs=left)
    return changed(metadata, refs=left, current_snapshot_id=None)


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


def _next_row_id(metadata: TableMetadata, snapshot: Snapshot) -> int:
    """The first row id after those of the snapshot."""
    if metadata.format_version < ROW_LINEAGE_VERSION:
        return metadata.next_row_id
    first, added = snapshot.first_row_id, snapshot.added_rows
    if first is None or added is None or added < 0:
        raise InvalidInputError(
            f"expected first-row-id and added-rows in format version {metadata.format_version}, "
            f"found {first} and {added} for snapshot {snapshot.snapshot_id}"
        )
    if first < metadata.next_row_id:
        raise ConflictError(
            f"expected a first-row-id of {metadata.next_row_id} or more, found {first}: "
            "another commit took those row ids meanwhile"
        )
    if first + added > _MAX_LONG:
        raise InvalidInputError(f"expected row ids of 64 bits, found {added} rows from {first} on")
    return first + added
