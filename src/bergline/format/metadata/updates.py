"""Metadata updates as closed variants, with the names of the REST protocol; `apply` applies them."""

import msgspec

from bergline.format.encoding.integers import Int, Long
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from bergline.format.partition.sort_order import SortOrder
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema


class AddSnapshot(msgspec.Struct, frozen=True, tag_field="action", tag="add-snapshot"):
    """Add a snapshot; no ref moves."""

    snapshot: Snapshot


class RemoveSnapshots(msgspec.Struct, frozen=True, tag_field="action", tag="remove-snapshots", rename="kebab"):
    """Remove snapshots; refused while a ref names one of them."""

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
    """Remove a ref."""

    ref_name: str


class SetProperties(msgspec.Struct, frozen=True, tag_field="action", tag="set-properties"):
    """Set table properties."""

    updates: dict[str, str]


class RemoveProperties(msgspec.Struct, frozen=True, tag_field="action", tag="remove-properties"):
    """Remove table properties; keys that are not set are left alone."""

    removals: tuple[str, ...]


class AssignUuid(msgspec.Struct, frozen=True, tag_field="action", tag="assign-uuid"):
    """Give a table its uuid; an existing one never changes."""

    uuid: str


class UpgradeFormatVersion(
    msgspec.Struct, frozen=True, tag_field="action", tag="upgrade-format-version", rename="kebab"
):
    """Raise the format version; it never goes down."""

    format_version: Int


class AddSchema(msgspec.Struct, frozen=True, tag_field="action", tag="add-schema", rename="kebab", omit_defaults=True):
    """Add a schema; one with the same columns is reused."""

    schema: Schema
    last_column_id: Int | None = None


class SetCurrentSchema(msgspec.Struct, frozen=True, tag_field="action", tag="set-current-schema", rename="kebab"):
    """Make a schema current; -1 is the one added last."""

    schema_id: Int


class AddPartitionSpec(msgspec.Struct, frozen=True, tag_field="action", tag="add-spec"):
    """Add a partition spec; one with the same fields is reused."""

    spec: PartitionSpec


class SetDefaultSpec(msgspec.Struct, frozen=True, tag_field="action", tag="set-default-spec", rename="kebab"):
    """Use a partition spec for new files; -1 is the one added last."""

    spec_id: Int


class AddSortOrder(msgspec.Struct, frozen=True, tag_field="action", tag="add-sort-order", rename="kebab"):
    """Add a sort order; one with the same fields is reused."""

    sort_order: SortOrder


class SetDefaultSortOrder(
    msgspec.Struct, frozen=True, tag_field="action", tag="set-default-sort-order", rename="kebab"
):
    """Use a sort order for new files; -1 is the one added last."""

    sort_order_id: Int


class SetLocation(msgspec.Struct, frozen=True, tag_field="action", tag="set-location"):
    """Change the location of new files."""

    location: str


class SetStatistics(msgspec.Struct, frozen=True, tag_field="action", tag="set-statistics"):
    """Set a snapshot's statistics file, in place of an older one."""

    statistics: StatisticsFile


class RemoveStatistics(msgspec.Struct, frozen=True, tag_field="action", tag="remove-statistics", rename="kebab"):
    """Remove a snapshot's statistics file."""

    snapshot_id: Long


class SetPartitionStatistics(
    msgspec.Struct, frozen=True, tag_field="action", tag="set-partition-statistics", rename="kebab"
):
    """Set a snapshot's partition statistics file, in place of an older one."""

    partition_statistics: PartitionStatisticsFile


class RemovePartitionStatistics(
    msgspec.Struct, frozen=True, tag_field="action", tag="remove-partition-statistics", rename="kebab"
):
    """Remove a snapshot's partition statistics file."""

    snapshot_id: Long


class RemovePartitionSpecs(
    msgspec.Struct, frozen=True, tag_field="action", tag="remove-partition-specs", rename="kebab"
):
    """Remove partition specs; refused for the default one."""

    spec_ids: tuple[Int, ...]


class RemoveSchemas(msgspec.Struct, frozen=True, tag_field="action", tag="remove-schemas", rename="kebab"):
    """Remove schemas; refused for the current one."""

    schema_ids: tuple[Int, ...]


class AddEncryptionKey(msgspec.Struct, frozen=True, tag_field="action", tag="add-encryption-key", rename="kebab"):
    """Add an encryption key; one with the same id is kept."""

    encryption_key: EncryptedKey


class RemoveEncryptionKey(msgspec.Struct, frozen=True, tag_field="action", tag="remove-encryption-key", rename="kebab"):
    """Remove an encryption key."""

    key_id: str


Update = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | RemoveSnapshots
    | SetSnapshotRef
    | RemoveSnapshotRef
    | SetProperties
    | RemoveProperties
    | SetLocation
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemovePartitionSpecs
    | RemoveSchemas
    | AddEncryptionKey
    | RemoveEncryptionKey
)


def set_ref(name: str, ref: SnapshotRef) -> SetSnapshotRef:
    """The update that sets a ref, retention included."""
    return SetSnapshotRef(
        ref_name=name,
        snapshot_id=ref.snapshot_id,
        type=ref.snapshot_ref_type,
        min_snapshots_to_keep=ref.min_snapshots_to_keep,
        max_snapshot_age_ms=ref.max_snapshot_age_ms,
        max_ref_age_ms=ref.max_ref_age_ms,
    )
