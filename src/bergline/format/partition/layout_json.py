"""JSON of schemas, partition specs and sort orders: keys in Java's order, defaults for ids that old writers omitted."""

from collections.abc import Iterable
from typing import Any

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.partition.sort_order import SortField, SortOrder
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID, UNNUMBERED, PartitionField, PartitionSpec
from bergline.format.schema.schema import Schema


def with_schema_ids(schemas: Iterable[Schema]) -> tuple[Schema, ...]:
    """The schemas of a file; one without an id gets 0."""
    return tuple(msgspec.structs.replace(s, schema_id=0) if s.schema_id is None else s for s in schemas)


def with_field_ids(spec: PartitionSpec) -> PartitionSpec:
    """A spec of a file; fields without ids are numbered from 1000."""
    if not is_unnumbered(spec):
        return spec
    fields = (msgspec.structs.replace(f, field_id=FIRST_PARTITION_FIELD_ID + n) for n, f in enumerate(spec.fields))
    return PartitionSpec(spec.spec_id, tuple(fields))


def is_unnumbered(spec: PartitionSpec) -> bool:
    """Whether the fields of a spec have no ids yet; InvalidInputError if only some have."""
    missing = sum(f.field_id == UNNUMBERED for f in spec.fields)
    if missing not in (0, len(spec.fields)):
        raise InvalidInputError(
            f"expected a field-id for all fields of partition spec {spec.spec_id} or for none, "
            f"found {missing} of {len(spec.fields)} without one"
        )
    return missing > 0


def render_schema(schema: Schema) -> dict[str, Any]:
    """A schema as Java writes it."""
    identifiers = {"identifier-field-ids": schema.identifier_field_ids} if schema.identifier_field_ids else {}
    return {"type": "struct", "schema-id": schema.schema_id, **identifiers, "fields": schema.fields}


def render_spec(spec: PartitionSpec) -> dict[str, Any]:
    """A partition spec as Java writes it."""
    return {"spec-id": spec.spec_id, "fields": render_spec_fields(spec)}


def render_spec_fields(spec: PartitionSpec) -> list[dict[str, Any]]:
    """The fields of a partition spec as Java writes them."""
    return [{"name": f.name, "transform": f.transform, **_sources(f), "field-id": f.field_id} for f in spec.fields]


def render_order(order: SortOrder) -> dict[str, Any]:
    """A sort order as Java writes it."""
    return {
        "order-id": order.order_id,
        "fields": [
            {"transform": f.transform, **_sources(f), "direction": f.direction, "null-order": f.null_order}
            for f in order.fields
        ],
    }


def _sources(field: PartitionField | SortField) -> dict[str, Any]:
    return {"source-ids": field.source_ids} if field.source_ids else {"source-id": field.source_id}
