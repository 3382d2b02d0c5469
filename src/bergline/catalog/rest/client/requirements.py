"""The requirements to send with a change: its own, and those implied by its updates, as in Java.

A server detects conflicts by requirements alone. So there are more than in Java: for a ref that is dropped, and for all
refs when snapshots are removed; and, on bergline's server, for their retention.
"""

from collections.abc import Iterator
from typing import assert_never

from bergline.catalog.catalog import TableChange
from bergline.format.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    Requirement,
    same_retention,
    same_table,
)
from bergline.format.metadata.table_metadata import TableMetadata
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


def all_requirements(change: TableChange, *, asserts_retention: bool = False) -> tuple[Requirement, ...]:
    """The requirements to send, without duplicates; those for retention only to a server that knows them."""
    base = change.base.metadata
    implied = (requirement for update in change.updates for requirement in _implied(base, update))
    retention = same_retention(base, change.updates) if asserts_retention else ()
    return tuple(dict.fromkeys((*same_table(base), *change.requirements, *implied, *retention)))


def _implied(base: TableMetadata, update: Update) -> Iterator[Requirement]:
    match update:
        case SetSnapshotRef(ref_name=name) | RemoveSnapshotRef(ref_name=name):
            yield _at(base, name)
        case RemoveSnapshots():
            yield from (_at(base, name) for name in base.refs)
        case AddSchema():
            yield AssertLastAssignedFieldId(base.last_column_id)
        case SetCurrentSchema():
            yield AssertCurrentSchemaId(base.current_schema_id)
        case AddPartitionSpec():
            yield AssertLastAssignedPartitionId(base.last_partition_id)
        case SetDefaultSpec():
            yield AssertDefaultSpecId(base.default_spec_id)
        case SetDefaultSortOrder():
            yield AssertDefaultSortOrderId(base.default_sort_order_id)
        case RemovePartitionSpecs():
            yield AssertDefaultSpecId(base.default_spec_id)
            yield from (_at(base, name) for name in base.refs)
        case RemoveSchemas():
            yield AssertCurrentSchemaId(base.current_schema_id)
            yield from (_at(base, name) for name in base.refs)
        case (
            AddSnapshot()
            | AddSortOrder()
            | AddEncryptionKey()
            | RemoveEncryptionKey()
            | AssignUuid()
            | UpgradeFormatVersion()
            | SetLocation()
            | SetProperties()
            | RemoveProperties()
            | SetStatistics()
            | RemoveStatistics()
            | SetPartitionStatistics()
            | RemovePartitionStatistics()
        ):
            return
        case _:
            assert_never(update)


def _at(base: TableMetadata, name: str) -> AssertRefSnapshotId:
    ref = base.refs.get(name)
    return AssertRefSnapshotId(name, ref.snapshot_id if ref else None)
