"""Updates of schemas, partition specs and sort orders."""

import msgspec
import pytest

from bergline.errors import ConflictError, InvalidInputError
from bergline.format.metadata.apply import apply_updates
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
    SetProperties,
    Update,
)
from bergline.format.partition.sort_order import UNSORTED, SortField, SortOrder
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, Bucket, TimeTransform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import STRING, TIMESTAMP_NS, NestedField

NOW = 1_700_000_100_000


def apply(metadata: TableMetadata, *updates: Update) -> TableMetadata:
    return apply_updates(metadata, updates, base_location=None, now_ms=NOW)


def wider(metadata: TableMetadata, name: str = "note") -> Schema:
    field = NestedField(metadata.last_column_id + 1, name, False, STRING)
    return msgspec.structs.replace(metadata.schema, fields=(*metadata.schema.fields, field), schema_id=99)


def bucketed(metadata: TableMetadata, count: int) -> PartitionSpec:
    source = metadata.schema.fields[0]
    field = PartitionField(source.id, metadata.last_partition_id + 1, f"{source.name}_bucket_{count}", Bucket(count))
    return PartitionSpec(spec_id=77, fields=(field,))


def sorted_by(metadata: TableMetadata) -> SortOrder:
    return SortOrder(55, (SortField(metadata.schema.fields[0].id, IDENTITY, "asc", "nulls-first"),))


def test_added_schema_gets_the_next_id_and_minus_one_means_it(metadata: TableMetadata) -> None:
    after = apply(metadata, AddSchema(wider(metadata)), SetCurrentSchema(-1))
    assert after.current_schema_id == max(s.schema_id or 0 for s in metadata.schemas) + 1
    assert after.schema.fields[-1].name == "note"
    assert after.last_column_id == metadata.last_column_id + 1


def test_schema_with_the_same_columns_is_reused(metadata: TableMetadata) -> None:
    after = apply(metadata, AddSchema(msgspec.structs.replace(metadata.schema, schema_id=99)), SetCurrentSchema(-1))
    assert after.schemas == metadata.schemas
    assert after.current_schema_id == metadata.current_schema_id


def test_last_column_id_never_goes_down(metadata: TableMetadata) -> None:
    narrow = Schema(fields=metadata.schema.fields[:1])
    assert apply(metadata, AddSchema(narrow)).last_column_id == metadata.last_column_id


def test_added_spec_and_order_are_numbered_reused_and_chosen(metadata: TableMetadata) -> None:
    spec, order = bucketed(metadata, 4), sorted_by(metadata)
    once = apply(metadata, AddPartitionSpec(spec), SetDefaultSpec(-1), AddSortOrder(order), SetDefaultSortOrder(-1))
    assert once.spec.fields == spec.fields
    assert once.last_partition_id == metadata.last_partition_id + 1
    assert once.default_sort_order_id == max(o.order_id for o in metadata.sort_orders) + 1
    twice = apply(once, AddPartitionSpec(spec), AddSortOrder(order), SetDefaultSpec(metadata.default_spec_id))
    assert twice.partition_specs == once.partition_specs
    assert twice.sort_orders == once.sort_orders
    assert twice.default_spec_id == metadata.default_spec_id


def test_specs_and_schemas_that_are_not_in_use_can_be_removed(metadata: TableMetadata) -> None:
    grown = apply(metadata, AddPartitionSpec(bucketed(metadata, 4)), AddSchema(wider(metadata)))
    new_spec = max(s.spec_id for s in grown.partition_specs)
    new_schema = max(s.schema_id or 0 for s in grown.schemas)
    shrunk = apply(grown, RemovePartitionSpecs((new_spec, 12345)), RemoveSchemas((new_schema,)))
    assert shrunk.partition_specs == metadata.partition_specs
    assert shrunk.schemas == metadata.schemas


def test_spec_with_one_field_id_twice_is_refused(metadata: TableMetadata) -> None:
    (field,) = bucketed(metadata, 4).fields
    twice = PartitionSpec(0, (field, msgspec.structs.replace(field, name="again", transform=Bucket(8))))
    with pytest.raises(InvalidInputError, match="each partition field id once"):
        apply(metadata, AddPartitionSpec(twice))


def test_what_is_in_use_is_not_removed(metadata: TableMetadata) -> None:
    with pytest.raises(ConflictError, match="it is the default"):
        apply(metadata, RemovePartitionSpecs((metadata.default_spec_id,)))
    with pytest.raises(ConflictError, match="it is the current one"):
        apply(metadata, RemoveSchemas((metadata.current_schema_id,)))


def test_equal_spec_is_reused_whatever_its_field_ids(metadata: TableMetadata) -> None:
    again = PartitionSpec(9, (PartitionField(2, 1234, "region", IDENTITY),))
    after = apply(metadata, AddPartitionSpec(again))
    assert after.partition_specs == metadata.partition_specs


def test_unsorted_order_is_always_0(metadata: TableMetadata) -> None:
    assert apply(metadata, AddSortOrder(SortOrder(7, ()))).sort_orders == metadata.sort_orders
    only = SortOrder(1, (SortField(1, IDENTITY, "asc", "nulls-first"),))
    bare = msgspec.structs.replace(metadata, sort_orders=(only,), default_sort_order_id=1)
    assert apply(bare, AddSortOrder(SortOrder(7, ()))).sort_orders == (only, UNSORTED)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (AddSchema(Schema((NestedField(1, "t", False, TIMESTAMP_NS),))), "timestamp_ns"),
        (AddPartitionSpec(PartitionSpec(1, (PartitionField(9, 1001, "x", IDENTITY),))), "column with id 9"),
        (AddPartitionSpec(PartitionSpec(1, (PartitionField(2, 1001, "x", TimeTransform("day")),))), "for `day`"),
        (AddPartitionSpec(PartitionSpec(1, (PartitionField(1, 1001, "region", Bucket(4)),))), "the column `region`"),
        (AddSortOrder(SortOrder(1, (SortField(9, IDENTITY, "asc", "nulls-first"),))), "column with id 9"),
        (SetProperties({"format-version": "three"}), "whole number"),
    ],
)
def test_layout_that_does_not_fit_is_refused(metadata: TableMetadata, update: Update, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        apply(metadata, update)


def test_schema_without_the_partition_column_is_refused(metadata: TableMetadata) -> None:
    narrow = Schema(metadata.schema.fields[:1])
    with pytest.raises(InvalidInputError, match="column with id 2 for partition field `region`"):
        apply(metadata, AddSchema(narrow), SetCurrentSchema(-1))
