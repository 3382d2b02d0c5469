"""Applying updates to table metadata: `apply_updates` returns a new value or raises."""

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from bergline.errors import ConflictError, FormatError, InvalidInputError
from bergline.format.metadata.apply_layout import (
    LayoutUpdate,
    add_order,
    add_schema,
    add_spec,
    chosen_id,
    remove_schemas,
    remove_specs,
)
from bergline.format.metadata.apply_snapshots import STATISTICS, SnapshotChanges, log_base, rewrite_snapshot_log
from bergline.format.metadata.invariants import check_invariants
from bergline.format.metadata.new_table import blank_metadata
from bergline.format.metadata.properties import asked_format_version, stored_properties
from bergline.format.metadata.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    TableMetadata,
    changed,
    check_format_version,
    strip_trailing_slash,
)
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveEncryptionKey,
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


def create_from_updates(updates: Sequence[Update], *, now_ms: int) -> TableMetadata:
    """The metadata of a new table built entirely from updates, as a REST client commits a staged table."""
    versions = [u.format_version for u in updates if isinstance(u, UpgradeFormatVersion)]
    blank = blank_metadata(versions[0] if versions else DEFAULT_FORMAT_VERSION, now_ms)
    return apply_updates(blank, updates, base_location=None, now_ms=now_ms)


def apply_updates(
    base: TableMetadata, updates: Iterable[Update], *, base_location: str | None, now_ms: int
) -> TableMetadata:
    """Apply updates; ConflictError if the base has moved past what they build on."""
    # other clocks may be ahead: timestamps in metadata never go backwards
    logged = [e.timestamp_ms for e in base.snapshot_log[-1:]] + [e.timestamp_ms for e in base.metadata_log[-1:]]
    now_ms = max(now_ms, base.last_updated_ms, *logged)
    work = _MetadataBuilder(changed(base, last_updated_ms=now_ms), now_ms)
    for update in updates:
        work.apply(update)
    metadata, snapshots = work.finish(), work.snapshots
    metadata = rewrite_snapshot_log(
        metadata, snapshots.ever_added, logged_before=len(base.snapshot_log), removed=snapshots.has_removed
    )
    if base_location is not None:
        metadata = log_base(metadata, base, base_location)
    try:
        return check_invariants(metadata, base)
    except FormatError as error:
        raise InvalidInputError(f"expected updates that keep the table consistent, found: {error}") from error


class _MetadataBuilder:
    """Metadata while updates are applied; tracks what was added last, which -1 refers to."""

    def __init__(self, metadata: TableMetadata, now_ms: int) -> None:
        self.metadata = metadata
        self.snapshots = SnapshotChanges(metadata, now_ms)
        self._properties = dict(metadata.properties)
        self._keys = {key.key_id: key for key in metadata.encryption_keys}
        self._last_added: dict[str, int] = {}

    def finish(self) -> TableMetadata:
        """The metadata with all updates."""
        self._change(properties=self._properties, encryption_keys=tuple(self._keys.values()))
        return self.snapshots.finish(self.metadata)

    def apply(self, update: Update) -> None:
        """Apply one update."""
        match update:
            case AddSnapshot(snapshot):
                self.snapshots.add(snapshot, self.metadata)
            case RemoveSnapshots(snapshot_ids):
                self.snapshots.remove(snapshot_ids)
            case SetSnapshotRef():
                self.snapshots.set_ref(update)
            case RemoveSnapshotRef(name):
                self.snapshots.remove_ref(name)
            case SetProperties(changes):
                self._set_properties(changes)
            case RemoveProperties(removals):
                for key in removals:
                    self._properties.pop(key, None)
            case AssignUuid(uuid):
                self._assign_uuid(uuid)
            case UpgradeFormatVersion(version):
                self._upgrade(version)
            case SetLocation(location):
                self._change(location=strip_trailing_slash(location))
            case SetStatistics(file):
                self.snapshots.set_statistics(STATISTICS[0], file)
            case RemoveStatistics(snapshot_id):
                self.snapshots.remove_statistics(STATISTICS[0], snapshot_id)
            case SetPartitionStatistics(partition_file):
                self.snapshots.set_statistics(STATISTICS[1], partition_file)
            case RemovePartitionStatistics(snapshot_id):
                self.snapshots.remove_statistics(STATISTICS[1], snapshot_id)
            case AddEncryptionKey(key):
                self._keys.setdefault(key.key_id, key)
            case RemoveEncryptionKey(key_id):
                self._keys.pop(key_id, None)
            case _:
                self._apply_to_layout(update)

    def _apply_to_layout(self, update: LayoutUpdate) -> None:
        """Apply an update of schemas, partition specs or sort orders."""
        match update:
            case AddSchema(schema):
                self.metadata, self._last_added["schema"] = add_schema(self.metadata, schema)
            case SetCurrentSchema(schema_id):
                known = [s.schema_id for s in self.metadata.schemas]
                self._change(current_schema_id=chosen_id("schema", schema_id, known, self._last_added))
            case AddPartitionSpec(spec):
                self.metadata, self._last_added["spec"] = add_spec(self.metadata, spec)
            case SetDefaultSpec(spec_id):
                specs = list(self.metadata.specs_by_id)
                self._change(default_spec_id=chosen_id("spec", spec_id, specs, self._last_added))
            case AddSortOrder(order):
                self.metadata, self._last_added["sort order"] = add_order(self.metadata, order)
            case SetDefaultSortOrder(order_id):
                orders = [o.order_id for o in self.metadata.sort_orders]
                self._change(default_sort_order_id=chosen_id("sort order", order_id, orders, self._last_added))
            case RemovePartitionSpecs(spec_ids):
                self.metadata = remove_specs(self.metadata, frozenset(spec_ids))
            case RemoveSchemas(schema_ids):
                self.metadata = remove_schemas(self.metadata, frozenset(schema_ids))
            case _:
                assert_never(update)

    def _set_properties(self, changes: dict[str, str]) -> None:
        """Set properties; reserved ones are not stored, and `format-version` upgrades the table."""
        self._upgrade(asked_format_version(changes, self.metadata.format_version))
        self._properties |= stored_properties(changes)

    def _assign_uuid(self, uuid: str) -> None:
        known = self.metadata.table_uuid
        if known is None:
            self._change(table_uuid=uuid)
        elif uuid.lower() != known.lower():
            raise ConflictError(f"expected uuid {known}, found {uuid}: it never changes")

    def _upgrade(self, version: int) -> None:
        check_format_version(version)
        current = self.metadata.format_version
        if version < current:
            raise InvalidInputError(f"expected format version {current} or higher, found {version}: it never goes down")
        if version > current:
            self._change(format_version=version)

    def _change(self, **fields: Any) -> None:
        self.metadata = changed(self.metadata, **fields)
