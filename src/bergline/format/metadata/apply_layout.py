"""Updates of schemas, partition specs and sort orders: equal ones are reused, new ones get the next id."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bergline.errors import ConflictError, InvalidInputError
from bergline.format.encoding.integers import next_int
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemovePartitionSpecs,
    RemoveSchemas,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
)
from bergline.format.partition.compatibility import check_for_version, check_order_fits, check_spec_fits
from bergline.format.partition.layout_json import is_unnumbered
from bergline.format.partition.sort_order import FIRST_SORT_ORDER_ID, UNSORTED, SortOrder
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from bergline.format.schema.schema import Schema

LAST_ADDED = -1
LayoutUpdate = (
    AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | RemovePartitionSpecs
    | RemoveSchemas
)


def add_schema(metadata: TableMetadata, schema: Schema) -> tuple[TableMetadata, int]:
    """Add a schema; also returns its id."""
    check_for_version(schema, metadata.format_version)
    schemas, schema_id = with_added(metadata.schemas, schema, "schema_id", schema_content)
    last = max(metadata.last_column_id, schema.highest_id)
    return msgspec.structs.replace(metadata, schemas=schemas, last_column_id=last), schema_id


def add_spec(metadata: TableMetadata, spec: PartitionSpec) -> tuple[TableMetadata, int]:
    """Add a partition spec, assigning missing field ids; also returns its id."""
    numbered = _numbered(metadata, spec)
    specs, spec_id = with_added(metadata.partition_specs, numbered, "spec_id", _spec_content)
    if len(specs) > len(metadata.partition_specs):
        _check_unique_ids(numbered)
        check_spec_fits(numbered, _current_schema(metadata))
        _check_sequential(metadata, numbered)
    last = max(metadata.last_partition_id, numbered.highest_field_id)
    return msgspec.structs.replace(metadata, partition_specs=specs, last_partition_id=last), spec_id


def add_order(metadata: TableMetadata, order: SortOrder) -> tuple[TableMetadata, int]:
    """Add a sort order; also returns its id, which is always 0 for unsorted."""
    if not order.fields:
        orders = metadata.sort_orders if UNSORTED in metadata.sort_orders else (*metadata.sort_orders, UNSORTED)
        return msgspec.structs.replace(metadata, sort_orders=orders), UNSORTED.order_id
    orders, order_id = with_added(
        metadata.sort_orders, order, "order_id", lambda o: o.fields, first=FIRST_SORT_ORDER_ID
    )
    if len(orders) > len(metadata.sort_orders):
        check_order_fits(order, _current_schema(metadata))
    return msgspec.structs.replace(metadata, sort_orders=orders), order_id


def remove_specs(metadata: TableMetadata, spec_ids: frozenset[int]) -> TableMetadata:
    """Remove partition specs."""
    if metadata.default_spec_id in spec_ids:
        raise ConflictError(f"cannot remove partition spec {metadata.default_spec_id}: it is the default")
    left = tuple(s for s in metadata.partition_specs if s.spec_id not in spec_ids)
    return msgspec.structs.replace(metadata, partition_specs=left)


def remove_schemas(metadata: TableMetadata, schema_ids: frozenset[int]) -> TableMetadata:
    """Remove schemas."""
    if metadata.current_schema_id in schema_ids:
        raise ConflictError(f"cannot remove schema {metadata.current_schema_id}: it is the current one")
    left = tuple(s for s in metadata.schemas if s.schema_id not in schema_ids)
    return msgspec.structs.replace(metadata, schemas=left)


def chosen_id(kind: str, chosen: int, known: Sequence[int | None], last_added: Mapping[str, int]) -> int:
    """Resolve the id in an update: -1 means the one added last."""
    if chosen == LAST_ADDED:
        if kind not in last_added:
            raise InvalidInputError(f"expected a {kind} added before it is chosen by -1, found none")
        return last_added[kind]
    if chosen not in known:
        raise InvalidInputError(f"expected a {kind} of {sorted(k for k in known if k is not None)}, found {chosen}")
    return chosen


def with_added(
    known: tuple[Any, ...], new: Any, id_field: str, content: Callable[[Any], Any], *, first: int = 0
) -> tuple[tuple[Any, ...], int]:
    """Add an item unless an equal one exists; also returns its id, reused or next."""
    for old in known:
        if content(old) == content(new):
            return known, getattr(old, id_field)
    new_id = next_int(id_field, max((getattr(k, id_field) or 0 for k in known), default=first - 1))
    return (*known, msgspec.structs.replace(new, **{id_field: new_id})), new_id


def schema_content(schema: Schema) -> Any:
    """What two equal schemas have in common, whatever their ids."""
    return schema.fields, frozenset(schema.identifier_field_ids)


def _current_schema(metadata: TableMetadata) -> Schema:
    """The current schema, or the one added last in a new table: some writers set the current one at the end."""
    if metadata.schemas and metadata.current_schema_id < 0:
        return metadata.schemas[-1]
    if all(s.schema_id != metadata.current_schema_id for s in metadata.schemas):
        raise InvalidInputError("expected a current schema before specs and orders are added, found none")
    return metadata.schema


def _spec_content(spec: PartitionSpec) -> Any:
    return [(*_source(f), f.name) for f in spec.fields]


def _source(field: PartitionField) -> tuple[Any, ...]:
    return field.source_id, field.source_ids, field.transform


def _numbered(metadata: TableMetadata, spec: PartitionSpec) -> PartitionSpec:
    """Assign field ids: from v2 on an equivalent field of an earlier spec keeps its id, others get new ones."""
    if not is_unnumbered(spec):
        return spec
    last = FIRST_PARTITION_FIELD_ID - 1 if metadata.format_version == 1 else metadata.last_partition_id
    known: dict[Any, int] = {}
    if metadata.format_version > 1:
        known = {_source(f): f.field_id for s in metadata.partition_specs for f in s.fields}
    fields = []
    for field in spec.fields:
        # only once per spec: a second field with the same source and transform is a different field
        field_id = known.pop(_source(field), None)
        if field_id is None:
            field_id = last = next_int("partition field id", last)
        fields.append(msgspec.structs.replace(field, field_id=field_id))
    return PartitionSpec(spec.spec_id, tuple(fields))


def _check_unique_ids(spec: PartitionSpec) -> None:
    ids = [f.field_id for f in spec.fields]
    if len(set(ids)) != len(ids):
        raise InvalidInputError(f"expected each partition field id once, found {ids}")


def _check_sequential(metadata: TableMetadata, spec: PartitionSpec) -> None:
    ids = [f.field_id for f in spec.fields]
    if metadata.format_version == 1 and ids != [FIRST_PARTITION_FIELD_ID + n for n in range(len(ids))]:
        raise InvalidInputError(
            f"expected partition field ids {FIRST_PARTITION_FIELD_ID}, {FIRST_PARTITION_FIELD_ID + 1}, … "
            f"in format version 1, found {ids}"
        )
