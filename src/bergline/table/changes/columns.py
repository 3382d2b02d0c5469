"""The columns that a read asks for by name: a table's own, and those that tell where a row comes from."""

from collections.abc import Iterable

from bergline.errors import InvalidInputError
from bergline.format.metadata import TableMetadata
from bergline.format.reserved import METADATA_COLUMNS, PARTITION, partition_column
from bergline.format.schema import Schema
from bergline.format.types import NestedField
from bergline.table.evolution.partition_union import partition_union


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
            return partition_column(partition_union(metadata))
        if name in METADATA_COLUMNS:
            return METADATA_COLUMNS[name]
    return schema.select([name]).fields[0]
