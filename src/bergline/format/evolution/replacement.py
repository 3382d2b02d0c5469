"""CREATE OR REPLACE: a table restarts with new columns, partitions and properties, but keeps its history."""

from collections.abc import Iterator, Mapping
from itertools import count

import msgspec

from bergline.errors import UnsupportedError
from bergline.format.evolution.promotion import can_widen
from bergline.format.metadata.properties import asked_format_version, stored_properties
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from bergline.format.partition.sort_order import UNSORTED
from bergline.format.partition.spec import UNNUMBERED, PartitionSpec
from bergline.format.schema.schema import Schema, assign_ids
from bergline.format.types.types import NestedField, child_fields

_LAST_ADDED = -1


def replacement_updates(
    base: TableMetadata,
    *,
    schema: Schema,
    spec: PartitionSpec,
    location: str,
    properties: Mapping[str, str],
) -> tuple[Update, ...]:
    """The updates that replace a table; snapshots, other refs, logs and properties that are not given stay.

    The column ids of `schema` and `spec` are reassigned: a column keeps the id of the existing column with its name if
    the old type can be promoted to the new one; others get new ids.
    """
    version = asked_format_version(properties, base.format_version)
    known = schema.names_by_id
    fresh = assign_ids(schema, _ids(schema, base, version))
    fields = tuple(
        msgspec.structs.replace(f, source_id=fresh.names[known[f.source_id]].id, field_id=UNNUMBERED)
        for f in spec.fields
    )
    if (
        base.format_version == version == 1
        and base.spec.fields
        and [(f.source_id, f.transform) for f in fields] != [(f.source_id, f.transform) for f in base.spec.fields]
    ):
        raise UnsupportedError(
            "expected the same partition fields to replace a partitioned table of format version 1, found others",
            hints=["replace it by a table of format version 2: set the property format-version"],
        )
    return (
        UpgradeFormatVersion(version),
        RemoveSnapshotRef(MAIN),
        AddSchema(fresh),
        SetCurrentSchema(_LAST_ADDED),
        AddPartitionSpec(PartitionSpec(spec_id=0, fields=fields)),
        SetDefaultSpec(_LAST_ADDED),
        AddSortOrder(UNSORTED),
        SetDefaultSortOrder(UNSORTED.order_id),
        SetLocation(location),
        *((SetProperties(stored),) if (stored := stored_properties(properties)) else ()),
    )


def _ids(schema: Schema, base: TableMetadata, version: int) -> Iterator[int]:
    """An id for each column, in the order of a new table's ids."""
    unused = count(base.last_column_id + 1)
    numbered = assign_ids(schema, count(1))
    for _, name in sorted(numbered.names_by_id.items()):
        old = base.schema.names.get(name)
        yield old.id if old is not None and _can_become(old, numbered.names[name], version) else next(unused)


def _can_become(old: NestedField, new: NestedField, version: int) -> bool:
    if child_fields(old.type) or child_fields(new.type):
        return type(old.type) is type(new.type)  # nested fields are compared one by one
    return can_widen(old.type, new.type, version)
