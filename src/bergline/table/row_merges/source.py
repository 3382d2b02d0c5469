"""The source rows of a merge: Arrow columns in types that Iceberg has."""

import msgspec
import pyarrow as pa

from bergline.datafiles.file.arrow_schema import arrow_schema, schema_from_arrow
from bergline.datafiles.write.input_rows import ArrowRows, as_arrow
from bergline.errors import InvalidInputError
from bergline.format.schema.schema import Schema
from bergline.table.scans.scan import TableScan


class SourceRows(msgspec.Struct, frozen=True):
    """All source rows, in memory, with the columns that expressions may name."""

    table: pa.Table
    schema: Schema


def source_rows(rows: ArrowRows | TableScan, target: Schema) -> SourceRows:
    """A caller's rows; the target's schema decides where Python values are ambiguous."""
    table = rows.to_arrow() if isinstance(rows, TableScan) else as_arrow(rows, target)
    names = [name.casefold() for name in table.column_names]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInputError(f"expected each column once, found `{twice}` twice in the source rows")
    schema = schema_from_arrow(table.schema.remove_metadata())
    try:
        return SourceRows(table.cast(arrow_schema(schema)), schema)
    except pa.ArrowException as error:
        raise InvalidInputError(f"expected source rows of types that Iceberg has, found others: {error}") from error
