"""Compatibility of schemas, partition specs and sort orders with a format version and with each other."""

from bergline.arguments import check_text, check_whole, shown
from bergline.errors import InvalidInputError
from bergline.format.partition.sort_order import SortField, SortOrder
from bergline.format.partition.spec import PartitionField, PartitionSpec, check_transforms
from bergline.format.partition.transforms import Void
from bergline.format.schema.reserved import MAX_COLUMN_ID, METADATA_COLUMNS, PARTITION
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    MAX_NESTING,
    V3_PRIMITIVES,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    nesting,
    parse_primitive,
)

_V3 = 3
_FIXED_LENGTHS = range(1, 2**31)
_STORABLE = (
    "decimals have 1 to 38 digits of which 0 or more, and not more than all, come after the point; "
    "fixed values have at least one byte"
)


def check_for_version(schema: Schema, format_version: int) -> None:
    """Refuse column ids, types and defaults that a format version does not allow."""
    for column in schema.fields:
        if nesting(column.type) > MAX_NESTING:
            raise InvalidInputError(
                f"expected at most {MAX_NESTING} levels of nested types, found more in column `{column.name}`"
            )
    for name, field in schema.names.items():
        _check_storable(name, field)
        if not 0 <= field.id <= MAX_COLUMN_ID:
            raise InvalidInputError(f"expected column ids up to {MAX_COLUMN_ID}, found {field.id} for `{name}`")
        least = minimum_version(field.type)
        if format_version < least:
            raise InvalidInputError(
                f"expected types of format version {format_version}, found `{field.type}` in column `{name}`",
                hints=[f"`{field.type}` needs format version {least}"],
            )
        if field.initial_default is not None and format_version < _V3:
            raise InvalidInputError(
                f"expected no default in format version {format_version}, found one for column `{name}`",
                hints=["defaults need format version 3"],
            )


def check_free_names(schema: Schema) -> None:
    """Refuse new columns with reserved names: Spark and Trino cannot read a table that has them."""
    for field in schema.fields:
        if field.name in (PARTITION, *METADATA_COLUMNS):
            raise InvalidInputError(
                f"expected names that are not reserved, found the column `{field.name}`",
                hints=["other engines refuse to read a table with such a column"],
            )


def _check_storable(name: str, field: NestedField) -> None:
    """Refuse what could be written but not read back."""
    check_text(field.name, "text for the name of a column")
    check_whole(field.id, f"the id of column `{name}`")
    if not isinstance(field.required, bool):
        raise InvalidInputError(f"expected true or false for required, found {shown(field.required)} in `{name}`")
    if field.doc is not None:
        check_text(field.doc, f"text for the documentation of column `{name}`")
    if not _is_storable(field.type):
        raise InvalidInputError(
            f"expected a type that can be stored, found `{field.type}` in column `{name}`",
            hints=[_STORABLE],
        )


def _is_storable(type_: IcebergType) -> bool:
    match type_:
        case StructType() | ListType() | MapType():
            return True
        case FixedType(length):
            return type(length) is int and length in _FIXED_LENGTHS
    try:
        return parse_primitive(str(type_)) == type_
    except InvalidInputError:
        return False


def minimum_version(type_: IcebergType) -> int:
    """The first format version with this type, not counting nested types."""
    return _V3 if type_ in V3_PRIMITIVES or isinstance(type_, GeometryType | GeographyType) else 1


def check_spec_fits(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse a spec whose source columns are missing or of the wrong type; void fields need none."""
    for field in spec.fields:
        if not isinstance(field.transform, Void):
            _check_source(f"partition field `{field.name}`", field, schema)
            inside = [i for i in field.source_ids or (field.source_id,) if i not in schema.paths]
            if inside:
                raise InvalidInputError(
                    f"expected a column outside lists and maps for partition field `{field.name}`, "
                    f"found `{schema.names_by_id[inside[0]]}`"
                )


def check_partition_names(spec: PartitionSpec, schema: Schema) -> None:
    """Refuse names that are empty, duplicate or those of other columns: Java cannot load such a table."""
    seen: set[str] = set()
    for field in spec.fields:
        column = schema.names.get(field.name)
        if not field.name or field.name in seen:
            raise InvalidInputError(
                f"expected a name of its own for each partition field, found `{field.name}` in spec {spec.spec_id}"
            )
        if column is not None and column.id != field.source_id and field.source_id in schema.ids:
            raise InvalidInputError(
                f"expected a free name for a field of partition spec {spec.spec_id}, found the column `{field.name}`"
            )
        seen.add(field.name)


def check_order_fits(order: SortOrder, schema: Schema) -> None:
    """Refuse a sort order whose source columns are missing or of the wrong type."""
    for field in order.fields:
        _check_source(f"sort order {order.order_id}", field, schema)


def _check_source(what: str, field: PartitionField | SortField, schema: Schema) -> None:
    for source_id in field.source_ids or (field.source_id,):
        source = schema.ids.get(source_id)
        if source is None:
            raise InvalidInputError(f"expected a column with id {source_id} for {what}, found none")
        if isinstance(source.type, StructType | ListType | MapType):
            raise InvalidInputError(f"expected a primitive column for {what}, found `{source.type}`")
        if not field.source_ids:
            check_transforms(field.transform, source.type, schema.names_by_id[source_id])
