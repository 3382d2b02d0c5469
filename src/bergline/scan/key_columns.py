"""The columns that equality deletes compare, found in whichever schema still knows them."""

from collections.abc import Iterable

import msgspec

from bergline.errors import FormatError
from bergline.format.metadata import TableMetadata
from bergline.format.types import StructType, child_fields
from bergline.scan.plan import KeyColumn


def key_columns(metadata: TableMetadata, ids: Iterable[int]) -> tuple[KeyColumn, ...]:
    """The columns with these ids, each as its latest schema has it."""
    return tuple(_key_column(metadata, field_id) for field_id in sorted(ids))


def _key_column(metadata: TableMetadata, field_id: int) -> KeyColumn:
    schema = next((s for s in (metadata.schema, *reversed(metadata.schemas)) if field_id in s.ids), None)
    if schema is None:
        raise FormatError(f"expected a column with id {field_id} for equality deletes, found none in any schema")
    path = schema.paths.get(field_id)
    if path is None:
        name = schema.names_by_id[field_id]
        raise FormatError(f"expected equality deletes on columns outside lists and maps, found `{name}`")
    column, fields = msgspec.structs.replace(schema.ids[field_id], required=False), schema.fields
    around = []
    for name in path[:-1]:
        around.append(next(f for f in fields if f.name == name))
        fields = child_fields(around[-1].type)
    for struct in reversed(around):
        column = msgspec.structs.replace(struct, required=False, type=StructType((column,)))
    return KeyColumn(field_id, path, column)
