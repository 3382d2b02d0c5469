"""Changes to table metadata as closed variants in the words of the REST protocol, and how they are applied."""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from bergline.errors import ConflictError, InvalidInputError, RefusedError
from bergline.format.integers import Int, Long
from bergline.format.metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata, check_invariants
from bergline.format.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.snapshot import Snapshot

_DEFAULT_PREVIOUS_VERSIONS = 100


class AddSnapshot(msgspec.Struct, frozen=True, tag_field="action", tag="add-snapshot"):
    """Make a snapshot known; no ref moves yet."""

    snapshot: Snapshot


class RemoveSnapshots(msgspec.Struct, frozen=True, tag_field="action", tag="remove-snapshots", rename="kebab"):
    """Forget snapshots; refused while a ref names one of them."""

    snapshot_ids: tuple[Long, ...]


class SetSnapshotRef(
    msgspec.Struct, frozen=True, tag_field="action", tag="set-snapshot-ref", rename="kebab", omit_defaults=True
):
    """Create or move a ref; the retention given here is the ref's whole retention."""

    ref_name: str
    snapshot_id: Long
    type: SnapshotRefType
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class RemoveSnapshotRef(msgspec.Struct, frozen=True, tag_field="action", tag="remove-snapshot-ref", rename="kebab"):
    """Drop a ref."""

    ref_name: str


class SetProperties(msgspec.Struct, frozen=True, tag_field="action", tag="set-properties"):
    """Set table properties."""

    updates: dict[str, str]


class RemoveProperties(msgspec.Struct, frozen=True, tag_field="action", tag="remove-properties"):
    """Remove table properties; keys that are not set are left alone."""

    removals: tuple[str, ...]


Update = AddSnapshot | RemoveSnapshots | SetSnapshotRef | RemoveSnapshotRef | SetProperties | RemoveProperties


def set_ref(name: str, ref: SnapshotRef) -> SetSnapshotRef:
    """The update that makes `name` this ref, retention included."""
    return SetSnapshotRef(
        ref_name=name,
        snapshot_id=ref.snapshot_id,
        type=ref.snapshot_ref_type,
        min_snapshots_to_keep=ref.min_snapshots_to_keep,
        max_snapshot_age_ms=ref.max_snapshot_age_ms,
        max_ref_age_ms=ref.max_ref_age_ms,
    )


def apply_updates(
    base: TableMetadata, updates: Iterable[Update], *, base_location: str | None, now_ms: int
) -> TableMetadata:
    """The metadata after the updates; ConflictError where the base has moved past what they build on."""
    # other clocks may be ahead: time in metadata never goes backwards
    now_ms = max(now_ms, base.last_updated_ms, *(e.timestamp_ms for e in base.snapshot_log[-1:]))
    metadata = msgspec.structs.replace(base, last_updated_ms=now_ms)
    added: set[int] = set()
    for update in updates:
        metadata = _apply(metadata, update, added, now_ms)
    metadata = _trim_snapshot_log(metadata, added)
    if base_location is not None:
        metadata = _log_base(metadata, base, base_location)
    return check_invariants(metadata)


def _apply(metadata: TableMetadata, update: Update, added: set[int], now_ms: int) -> TableMetadata:
    match update:
        case AddSnapshot(snapshot):
            added.add(snapshot.snapshot_id)
            return _add_snapshot(metadata, snapshot)
        case RemoveSnapshots(snapshot_ids):
            return _remove_snapshots(metadata, frozenset(snapshot_ids))
        case SetSnapshotRef():
            return _set_ref(metadata, update, added, now_ms)
        case RemoveSnapshotRef(name):
            if name == MAIN:
                raise RefusedError("cannot drop `main`: every table keeps it")
            refs = {n: r for n, r in metadata.refs.items() if n != name}
            return msgspec.structs.replace(metadata, refs=refs)
        case SetProperties(changes):
            return msgspec.structs.replace(metadata, properties=metadata.properties | changes)
        case RemoveProperties(removals):
            kept = {k: v for k, v in metadata.properties.items() if k not in removals}
            return msgspec.structs.replace(metadata, properties=kept)
        case _:
            assert_never(update)


def _add_snapshot(metadata: TableMetadata, snapshot: Snapshot) -> TableMetadata:
    if snapshot.snapshot_id in metadata.snapshots_by_id:
        raise ConflictError(f"expected a new snapshot id, found {snapshot.snapshot_id} in the table already")
    # also for a snapshot without parent, which Java exempts: numbers that move back make a table unreadable there
    if snapshot.sequence_number <= metadata.last_sequence_number:
        raise ConflictError(
            f"expected a sequence number above {metadata.last_sequence_number}, found {snapshot.sequence_number}: "
            "another commit took it meanwhile"
        )
    return msgspec.structs.replace(
        metadata,
        snapshots=(*metadata.snapshots, snapshot),
        last_sequence_number=snapshot.sequence_number,
        last_updated_ms=max(metadata.last_updated_ms, snapshot.timestamp_ms),
    )


def _set_ref(metadata: TableMetadata, update: SetSnapshotRef, added: set[int], now_ms: int) -> TableMetadata:
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
    changed = msgspec.structs.replace(metadata, refs=metadata.refs | {name: ref})
    if name != MAIN or metadata.current_snapshot_id == ref.snapshot_id:
        return changed
    time_ms = snapshot.timestamp_ms if ref.snapshot_id in added else now_ms
    return msgspec.structs.replace(
        changed,
        current_snapshot_id=ref.snapshot_id,
        snapshot_log=(*metadata.snapshot_log, SnapshotLogEntry(time_ms, ref.snapshot_id)),
    )


def _remove_snapshots(metadata: TableMetadata, removed: frozenset[int]) -> TableMetadata:
    held = sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id in removed)
    if held:
        raise ConflictError(f"cannot remove snapshots that refs name: {', '.join(f'`{n}`' for n in held)}")
    log: list[SnapshotLogEntry] = []
    for entry in metadata.snapshot_log:
        if entry.snapshot_id in removed:
            log.clear()  # a hole would make time travel answer with a state that was not current then
        else:
            log.append(entry)
    return msgspec.structs.replace(
        metadata,
        snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id not in removed),
        statistics=tuple(s for s in metadata.statistics if s.snapshot_id not in removed),
        partition_statistics=tuple(s for s in metadata.partition_statistics if s.snapshot_id not in removed),
        snapshot_log=tuple(log),
    )


def _trim_snapshot_log(metadata: TableMetadata, added: set[int]) -> TableMetadata:
    """Snapshots that were current only inside this change set never were current to readers."""
    passing = added - {metadata.current_snapshot_id}
    log = tuple(e for e in metadata.snapshot_log if e.snapshot_id not in passing)
    return metadata if log == metadata.snapshot_log else msgspec.structs.replace(metadata, snapshot_log=log)


def _log_base(metadata: TableMetadata, base: TableMetadata, base_location: str) -> TableMetadata:
    text = metadata.properties.get("write.metadata.previous-versions-max", "")
    keep = max(1, int(text)) if text.isdecimal() else _DEFAULT_PREVIOUS_VERSIONS
    log = (*metadata.metadata_log, MetadataLogEntry(base.last_updated_ms, base_location))
    return msgspec.structs.replace(metadata, metadata_log=log[-keep:])
