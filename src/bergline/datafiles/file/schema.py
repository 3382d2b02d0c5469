"""The columns of a Parquet file with field ids: its own, or those of a name mapping."""

from collections.abc import Iterable

import pyarrow as pa

from bergline.datafiles.file.arrow_schema import FIELD_ID, file_field_id
from bergline.errors import FormatError, UnsupportedError
from bergline.format.schema.name_mapping import MappedField, NameMapping


def identified(schema: pa.Schema, mapping: NameMapping | None) -> pa.Schema:
    """The file's columns with ids at every level; as in Java, a single id means that the file has its own."""
    if not len(schema) or any(_has_ids(f) for f in schema):
        return schema
    if mapping is None:
        raise UnsupportedError(
            "expected field ids or a name mapping, found neither",
            hints=["set the table property schema.name-mapping.default"],
        )
    return pa.schema([_mapped(f, mapping.by_name.get(f.name)) for f in schema])


def by_field_id(fields: Iterable[pa.Field]) -> dict[int, int]:
    """The positions of fields by id; fields without an id are left out."""
    found: dict[int, int] = {}
    for position, field in enumerate(fields):
        field_id = file_field_id(field)
        if field_id is None:
            continue
        if field_id in found:
            raise FormatError(f"expected each field id once, found {field_id} twice")
        found[field_id] = position
    return found


def inner_fields(type_: pa.DataType) -> list[pa.Field]:
    """The fields directly inside a type; none for primitives."""
    types = pa.types
    if types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if types.is_struct(type_):
        return list(type_)
    return [type_.value_field] if hasattr(type_, "value_field") else []


def _has_ids(field: pa.Field) -> bool:
    return file_field_id(field) is not None or any(_has_ids(f) for f in inner_fields(field.type))


def _mapped(field: pa.Field, mapped: MappedField | None) -> pa.Field:
    if mapped is None:
        return field
    metadata = {} if mapped.field_id is None else {FIELD_ID: str(mapped.field_id).encode()}
    return field.with_type(_mapped_type(field.type, mapped)).with_metadata(metadata)


def _mapped_type(type_: pa.DataType, mapped: MappedField) -> pa.DataType:
    types, names = pa.types, mapped.by_name
    if types.is_struct(type_):
        return pa.struct([_mapped(f, names.get(f.name)) for f in type_])
    if types.is_map(type_):
        return pa.map_(_mapped(type_.key_field, names.get("key")), _mapped(type_.item_field, names.get("value")))
    if types.is_list(type_):
        return pa.list_(_mapped(type_.value_field, names.get("element")))
    if types.is_large_list(type_):
        return pa.large_list(_mapped(type_.value_field, names.get("element")))
    return type_
