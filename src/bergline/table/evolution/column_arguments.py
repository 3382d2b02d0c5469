"""Columns as callers give them: types as text, as format types or as Arrow types; defaults as Python values."""

from typing import Any, TypeAlias

import pyarrow as pa

from bergline.arguments import check_text, shown
from bergline.datafiles.file.arrow_schema import arrow_type, schema_from_arrow, type_from_arrow
from bergline.datafiles.file.plain_values import distinct_values
from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import has_defaults
from bergline.format.types.text import parse_type_text
from bergline.format.types.types import IcebergType, child_fields

ColumnType: TypeAlias = str | IcebergType | pa.DataType


def column_type(type_: ColumnType, column: str) -> IcebergType:
    """The type that a caller means."""
    match type_:
        case str():
            return parse_type_text(check_text(type_, "text for a type"))
        case IcebergType():
            return type_
        case pa.DataType():
            return type_from_arrow(type_, column)
    raise InvalidInputError(f"expected a type like `long` for column `{column}`, found {shown(type_)}")


def column_schema(schema: pa.Schema | Schema) -> Schema:
    """The columns that a caller means."""
    match schema:
        case Schema():
            return schema
        case pa.Schema():
            return schema_from_arrow(schema)
    hints = ["the schema of rows: table.schema, pyarrow.Schema.from_pandas(frame) or frame.to_arrow().schema"]
    raise InvalidInputError(
        f"expected a pyarrow.Schema, found {type(schema).__name__}", hints=hints if hasattr(schema, "columns") else []
    )


def plain_default(type_: IcebergType, value: Any, column: str) -> Any:
    """The plain value of a default: dates as days, times as units, decimals with the column's scale."""
    if value is None or child_fields(type_) or not has_defaults(type_):
        return value
    try:
        array = pa.array([value], arrow_type(type_))
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"expected a `{type_}` value as the default of column `{column}`, found {shown(value)}"
        ) from error
    return distinct_values(pa.chunked_array([array]))[0][0]
