"""The initial metadata of a table."""

import msgspec

from bergline.format.metadata.table_metadata import (
    DEFAULT_FORMAT_VERSION,
    TableMetadata,
    check_format_version,
    strip_trailing_slash,
)
from bergline.format.partition.compatibility import check_for_version
from bergline.format.partition.sort_order import UNSORTED, SortOrder
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionSpec
from bergline.format.schema.schema import Schema, assign_fresh_ids

_NONE_YET = -1


def new_metadata(
    *,
    schema: Schema,
    spec: PartitionSpec,
    location: str,
    properties: dict[str, str],
    table_uuid: str,
    now_ms: int,
    format_version: int = DEFAULT_FORMAT_VERSION,
    order: SortOrder = UNSORTED,
) -> TableMetadata:
    """The metadata of a newly created table: no snapshots, no refs."""
    check_format_version(format_version)
    check_for_version(schema, format_version)
    fresh = assign_fresh_ids(schema)
    names = schema.names_by_id
    fresh_ids = {source_id: fresh.names[name].id for source_id, name in names.items()}
    fields = tuple(msgspec.structs.replace(f, source_id=fresh_ids[f.source_id]) for f in spec.fields)
    sorted_by = tuple(msgspec.structs.replace(f, source_id=fresh_ids[f.source_id]) for f in order.fields)
    return TableMetadata(
        format_version=format_version,
        table_uuid=table_uuid,
        location=strip_trailing_slash(location),
        last_sequence_number=0,
        last_updated_ms=now_ms,
        last_column_id=fresh.highest_id,
        current_schema_id=0,
        schemas=(fresh,),
        default_spec_id=0,
        partition_specs=(PartitionSpec(spec_id=0, fields=fields),),
        last_partition_id=spec.highest_field_id,
        default_sort_order_id=order.order_id,
        sort_orders=(SortOrder(order.order_id, sorted_by),),
        properties=properties,
        current_snapshot_id=None,
        refs={},
        snapshots=(),
    )


def blank_metadata(format_version: int, now_ms: int) -> TableMetadata:
    """Empty metadata that updates turn into a table."""
    check_format_version(format_version)
    return TableMetadata(
        format_version=format_version,
        table_uuid=None,
        location="",
        last_sequence_number=0,
        last_updated_ms=now_ms,
        last_column_id=0,
        current_schema_id=_NONE_YET,
        schemas=(),
        default_spec_id=_NONE_YET,
        partition_specs=(),
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        default_sort_order_id=_NONE_YET,
        sort_orders=(),
        properties={},
        current_snapshot_id=None,
        refs={},
        snapshots=(),
    )
