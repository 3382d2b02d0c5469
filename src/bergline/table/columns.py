"""The columns that a read asks for by name: a table's own, and those that tell where a row comes from."""

from collections.abc import Iterable

from bergline.errors import InvalidInputError
from bergline.format.metadata import TableMetadata
from bergline.format.partition import result_type
from bergline.format.reserved import METADATA_COLUMNS, PARTITION, partition_column
from bergline.format.schema import Schema
from bergline.format.transforms import Void
from bergline.format.types import NestedField, StructType


def select_columns(metadata: TableMetadata, schema: Schema, names: Iterable[str]) -> Schema:
    """The columns of these names, in the order asked for; a table's own column hides a reserved one."""
    fields: dict[int, NestedField] = {}
    for name in names:
        field = _find(metadata, schema, name)
        if field.id in fields:
            raise InvalidInputError(f"expected each column once, found `{field.name}` twice")
        fields[field.id] = field
    return Schema(fields=tuple(fields.values()), schema_id=schema.schema_id)


def _find(metadata: TableMetadata, schema: Schema, name: str) -> NestedField:
    if name not in schema.names:
        if name == PARTITION:
            return partition_column(_all_partition_fields(metadata))
        if name in METADATA_COLUMNS:
            return METADATA_COLUMNS[name]
    return schema.select([name]).fields[0]


def _all_partition_fields(metadata: TableMetadata) -> StructType:
    """The fields of all specs, the latest first; a field that was given up keeps the type that it had."""
    found: dict[int, NestedField] = {}
    for spec in sorted(metadata.partition_specs, key=lambda s: s.spec_id, reverse=True):
        schema = metadata.schema_for(spec)
        for field in spec.fields:
            if field.field_id in found or isinstance(field.transform, Void):
                continue
            taken = any(f.name == field.name for f in found.values())
            name = f"{field.name}_{field.field_id}" if taken else field.name
            found[field.field_id] = NestedField(field.field_id, name, False, result_type(field, schema))
    return StructType(tuple(found.values()))
