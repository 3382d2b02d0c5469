"""Whether a schema, a partition spec and a sort order can stand in a table together."""

from bergline.errors import InvalidInputError
from bergline.format.reserved import MAX_COLUMN_ID
from bergline.format.schema import Schema
from bergline.format.types import V3_PRIMITIVES, GeographyType, GeometryType, IcebergType

_V3 = 3


def check_for_version(schema: Schema, format_version: int) -> None:
    """Refuse column ids, types and defaults that tables of a format version cannot have."""
    for name, field in schema.names.items():
        if not 0 <= field.id <= MAX_COLUMN_ID:
            raise InvalidInputError(f"expected column ids up to {MAX_COLUMN_ID}, found {field.id} for `{name}`")
        least = least_version(field.type)
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


def least_version(type_: IcebergType) -> int:
    """The first format version that has the type itself."""
    return _V3 if type_ in V3_PRIMITIVES or isinstance(type_, GeometryType | GeographyType) else 1
