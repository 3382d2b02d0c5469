"""What updates do to table metadata: `apply_updates` gives a new value, or says what stands against it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, assert_never

import msgspec

from bergline.errors import ConflictError, InvalidInputError, RefusedError, UnsupportedError
from bergline.format.metadata import (
    FORMAT_VERSION,
    MetadataLogEntry,
    SnapshotLogEntry,
    TableMetadata,
    check_invariants,
)
from bergline.format.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.schema import Schema
from bergline.format.snapshot import Snapshot
from bergline.format.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)

_DEFAULT_PREVIOUS_VERSIONS = 100
_LAST_ADDED = -1


def apply_updates(
    base: TableMetadata, updates: Iterable[Update], *, base_location: str | None, now_ms: int
) -> TableMetadata:
    """The metadata after the updates; ConflictError where the base has moved past what they build on."""
    # other clocks may be ahead: time in metadata never goes backwards
    now_ms = max(now_ms, base.last_updated_ms, *(e.timestamp_ms for e in base.snapshot_log[-1:]))
    work = _Work(msgspec.structs.replace(base, last_updated_ms=now_ms), now_ms)
    for update in updates:
        work.apply(update)
    metadata = _trim_snapshot_log(work.metadata, work.added_snapshots)
    if base_location is not None:
        metadata = _log_base(metadata, base, base_location)
    return check_invariants(metadata)


class _Work:
    """Metadata while updates are applied, and what was added last: -1 in an update means that."""

    def __init__(self, metadata: TableMetadata, now_ms: int) -> None:
        self.metadata = metadata
        self.now_ms = now_ms
        self.added_snapshots: set[int] = set()
        self._last_added: dict[str, int] = {}

    def apply(self, update: Update) -> None:
        """Apply one update."""
        match update:
            case AddSnapshot(snapshot):
                self.added_snapshots.add(snapshot.snapshot_id)
                self.metadata = _add_snapshot(self.metadata, snapshot)
            case RemoveSnapshots(snapshot_ids):
                self.metadata = _remove_snapshots(self.metadata, frozenset(snapshot_ids))
            case SetSnapshotRef():
                self.metadata = _set_ref(self.metadata, update, self.added_snapshots, self.now_ms)
            case RemoveSnapshotRef(name):
                if name == MAIN:
                    raise RefusedError("cannot drop `main`: every table keeps it")
                self._change(refs={n: r for n, r in self.metadata.refs.items() if n != name})
            case SetProperties(changes):
                self._change(properties=self.metadata.properties | changes)
            case RemoveProperties(removals):
                self._change(properties={k: v for k, v in self.metadata.properties.items() if k not in removals})
            case AssignUuid(uuid):
                if uuid.lower() != self.metadata.table_uuid.lower():
                    raise ConflictError(f"expected uuid {self.metadata.table_uuid}, found {uuid}: it never changes")
            case UpgradeFormatVersion(version):
                _check_version(self.metadata.format_version, version)
            case SetLocation(location):
                self._change(location=location.rstrip("/"))
            case SetStatistics(file):
                self._change(statistics=_in_place_of(self.metadata.statistics, file))
            case RemoveStatistics(snapshot_id):
                self._change(statistics=_without(self.metadata.statistics, snapshot_id))
            case SetPartitionStatistics(partition_file):
                self._change(partition_statistics=_in_place_of(self.metadata.partition_statistics, partition_file))
            case RemovePartitionStatistics(snapshot_id):
                self._change(partition_statistics=_without(self.metadata.partition_statistics, snapshot_id))
            case _:
                self._apply_to_layout(update)

    def _apply_to_layout(
        self,
        update: AddSchema
        | SetCurrentSchema
        | AddPartitionSpec
        | SetDefaultSpec
        | AddSortOrder
        | SetDefaultSortOrder
        | RemovePartitionSpecs
        | RemoveSchemas,
    ) -> None:
        """Schemas, partition specs and sort orders."""
        metadata = self.metadata
        match update:
            case AddSchema(schema):
                schemas, schema_id = _add(metadata.schemas, schema, "schema_id", _schema_content)
                self._last_added["schema"] = schema_id
                self._change(schemas=schemas, last_column_id=max(metadata.last_column_id, schema.highest_id))
            case SetCurrentSchema(schema_id):
                chosen = self._chosen("schema", schema_id, [s.schema_id for s in metadata.schemas])
                self._change(current_schema_id=chosen)
            case AddPartitionSpec(spec):
                specs, spec_id = _add(metadata.partition_specs, spec, "spec_id", lambda s: s.fields)
                self._last_added["spec"] = spec_id
                last = max(metadata.last_partition_id, spec.highest_field_id)
                self._change(partition_specs=specs, last_partition_id=last)
            case SetDefaultSpec(spec_id):
                self._change(default_spec_id=self._chosen("spec", spec_id, list(metadata.specs_by_id)))
            case AddSortOrder(order):
                orders, order_id = _add(metadata.sort_orders, order, "order_id", lambda o: o.fields)
                self._last_added["sort order"] = order_id
                self._change(sort_orders=orders)
            case SetDefaultSortOrder(order_id):
                known = [o.order_id for o in metadata.sort_orders]
                self._change(default_sort_order_id=self._chosen("sort order", order_id, known))
            case RemovePartitionSpecs(spec_ids):
                if metadata.default_spec_id in spec_ids:
                    raise ConflictError(f"cannot remove partition spec {metadata.default_spec_id}: it is the default")
                self._change(partition_specs=tuple(s for s in metadata.partition_specs if s.spec_id not in spec_ids))
            case RemoveSchemas(schema_ids):
                if metadata.current_schema_id in schema_ids:
                    raise ConflictError(f"cannot remove schema {metadata.current_schema_id}: it is the current one")
                self._change(schemas=tuple(s for s in metadata.schemas if s.schema_id not in schema_ids))
            case _:
                assert_never(update)

    def _change(self, **fields: Any) -> None:
        self.metadata = msgspec.structs.replace(self.metadata, **fields)

    def _chosen(self, kind: str, chosen: int, known: Sequence[int | None]) -> int:
        if chosen == _LAST_ADDED:
            if kind not in self._last_added:
                raise InvalidInputError(f"expected a {kind} added before it is chosen by -1, found none")
            return self._last_added[kind]
        if chosen not in known:
            raise InvalidInputError(f"expected a {kind} of {sorted(k for k in known if k is not None)}, found {chosen}")
        return chosen


def _add(known: tuple[Any, ...], new: Any, id_field: str, content: Callable[[Any], Any]) -> tuple[tuple[Any, ...], int]:
    """All of a kind with the new one, and its id: that of an equal one, or the next free."""
    for old in known:
        if content(old) == content(new):
            return known, getattr(old, id_field)
    new_id = max(getattr(k, id_field) or 0 for k in known) + 1
    return (*known, msgspec.structs.replace(new, **{id_field: new_id})), new_id


def _schema_content(schema: Schema) -> Any:
    return schema.fields, frozenset(schema.identifier_field_ids)


def _check_version(current: int, new: int) -> None:
    if new < current:
        raise InvalidInputError(f"expected format version {current} or higher, found {new}: it never goes down")
    if new > FORMAT_VERSION:
        raise UnsupportedError(f"expected a format version up to {FORMAT_VERSION}, found {new}")


def _in_place_of(files: tuple[Any, ...], new: Any) -> tuple[Any, ...]:
    return (*_without(files, new.snapshot_id), new)


def _without(files: tuple[Any, ...], snapshot_id: int) -> tuple[Any, ...]:
    return tuple(f for f in files if f.snapshot_id != snapshot_id)


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
