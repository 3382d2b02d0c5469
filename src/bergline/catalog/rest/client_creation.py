"""A new table as the updates that make it, so that it comes with its own uuid, ids and content."""

from bergline.format.metadata import TableMetadata
from bergline.format.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
    set_ref,
)

_LAST_ADDED = -1


def creation_updates(metadata: TableMetadata) -> tuple[Update, ...]:
    """What makes this table of nothing."""
    schemas, specs, orders = metadata.schemas, metadata.partition_specs, metadata.sort_orders
    return (
        *([] if metadata.table_uuid is None else [AssignUuid(metadata.table_uuid)]),
        UpgradeFormatVersion(metadata.format_version),
        *(AddSchema(schema, metadata.last_column_id) for schema in schemas),
        SetCurrentSchema(_number(metadata.current_schema_id, schemas[-1].schema_id)),
        *(AddPartitionSpec(spec) for spec in specs),
        SetDefaultSpec(_number(metadata.default_spec_id, specs[-1].spec_id)),
        *(AddSortOrder(order) for order in orders),
        SetDefaultSortOrder(_number(metadata.default_sort_order_id, orders[-1].order_id)),
        SetLocation(metadata.location),
        *([SetProperties(metadata.properties)] if metadata.properties else []),
        *(AddEncryptionKey(key) for key in metadata.encryption_keys),
        *(AddSnapshot(snapshot) for snapshot in metadata.snapshots),
        *(set_ref(name, ref) for name, ref in metadata.refs.items()),
        *(SetStatistics(file) for file in metadata.statistics),
        *(SetPartitionStatistics(file) for file in metadata.partition_statistics),
    )


def _number(chosen: int, last: int | None) -> int:
    """An id, or the sign for the one that was added last: a server may number them otherwise."""
    return _LAST_ADDED if chosen == last else chosen
