"""Changes of schema, partition spec and sort order, each computed anew on every base: updates + requirements."""

import logging
from collections.abc import Iterator

from bergline.datafiles.write.metrics_mode import COLUMN_MODE
from bergline.datafiles.write.write_spec import BLOOM_FILTER_COLUMN
from bergline.errors import FormatError
from bergline.format.metadata.apply_layout import LAST_ADDED
from bergline.format.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveProperties,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetProperties,
    Update,
)
from bergline.format.partition.sort_order import SortOrder
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    parse_name_mapping,
    render_name_mapping,
    update_name_mapping,
)
from bergline.format.schema.schema import Schema
from bergline.table.commits.operation import Change

_LOG = logging.getLogger(__name__)
_COLUMN_PROPERTIES = (
    COLUMN_MODE,
    BLOOM_FILTER_COLUMN,
    "write.parquet.stats-enabled.column.",
)


def change_schema(base: TableMetadata, schema: Schema) -> Change:
    """Change the current schema; name mapping and properties of columns follow it."""
    return Change(
        (AddSchema(schema), SetCurrentSchema(LAST_ADDED), *_property_updates(base, schema)),
        (AssertLastAssignedFieldId(base.last_column_id), AssertCurrentSchemaId(base.current_schema_id)),
    )


def change_spec(base: TableMetadata, spec: PartitionSpec) -> Change:
    """Change the default partition spec; a known one is reused."""
    unchanged = AssertDefaultSpecId(base.default_spec_id)
    if spec.spec_id in base.specs_by_id:
        return Change((SetDefaultSpec(spec.spec_id),), (unchanged,))
    return Change(
        (AddPartitionSpec(spec), SetDefaultSpec(LAST_ADDED)),
        (AssertLastAssignedPartitionId(base.last_partition_id), unchanged),
    )


def change_order(base: TableMetadata, order: SortOrder) -> Change:
    """Change the default sort order."""
    return Change(
        (AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED)),
        (AssertDefaultSortOrderId(base.default_sort_order_id),),
    )


def _property_updates(base: TableMetadata, schema: Schema) -> Iterator[Update]:
    names = {name: schema.names_by_id.get(field_id) for field_id, name in base.schema.names_by_id.items()}
    stale = {k: v for k, v in base.properties.items() if _column(k) in names and names[_column(k)] != _column(k)}
    changed = {f"{_prefix(k)}{name}": v for k, v in stale.items() if (name := names[_column(k)]) is not None}
    changed |= _name_mapping(base, schema)
    if changed:
        yield SetProperties(changed)
    if removed := tuple(k for k in stale if k not in changed):
        yield RemoveProperties(removed)


def _prefix(key: str) -> str:
    return next((p for p in _COLUMN_PROPERTIES if key.startswith(p)), key)


def _column(key: str) -> str:
    return key.removeprefix(_prefix(key))


def _name_mapping(base: TableMetadata, schema: Schema) -> dict[str, str]:
    """The table's name mapping after the change; one that cannot be read is left alone, as Java does."""
    text = base.properties.get(NAME_MAPPING_PROPERTY)
    if text is None:
        return {}
    try:
        mapping = parse_name_mapping(text)
    except FormatError as error:
        _LOG.warning("could not update the name mapping: %s", error)
        return {}
    updated = update_name_mapping(mapping, base.schema, schema)
    return {} if updated == mapping else {NAME_MAPPING_PROPERTY: render_name_mapping(updated)}
