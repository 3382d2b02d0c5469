"""What DESCRIBE and SHOW say about a table: terms, properties, defaults as SQL writes them."""

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.sort_order import SortField
from bergline.format.partition.spec import PartitionField
from bergline.format.partition.transforms import Bucket, Identity, TimeTransform, Transform, Truncate, Void
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BINARY, DATE, TIMESTAMP, TIMESTAMPTZ, DecimalType, FixedType, NestedField
from bergline.quoting import dotted, quoted_text

HIDDEN_PROPERTIES = frozenset({"comment", "location", "provider", "owner", "external", "is_managed_location"})


def partition_terms(metadata: TableMetadata) -> list[str]:
    """The spec for new files as PARTITIONED BY has it; fields that were dropped in v1 are left out."""
    fields = [f for f in metadata.spec.fields if not isinstance(f.transform, Void)]
    return [_term(f.transform, _column(f, metadata.schema), number_first=True) for f in fields]


def sort_terms(metadata: TableMetadata) -> list[str]:
    """The sort order as WRITE ORDERED BY has it."""
    return [
        f"{_term(f.transform, _column(f, metadata.schema), number_first=False)} {f.direction.upper()} "
        f"{f.null_order.replace('-', ' ').upper()}"
        for f in metadata.sort_order.fields
    ]


def shown_properties(metadata: TableMetadata) -> dict[str, str]:
    """The properties that SHOW TBLPROPERTIES lists: those that are set, and the state in the same form."""
    current = metadata.current_snapshot_id
    shown = {k: v for k, v in metadata.properties.items() if k not in HIDDEN_PROPERTIES}
    shown |= {
        "current-snapshot-id": "none" if current is None else str(current),
        "format": f"iceberg/{metadata.properties.get('write.format.default', 'parquet').lower()}",
        "format-version": str(metadata.format_version),
    }
    if order := sort_terms(metadata):
        shown["sort-order"] = ", ".join(order)
    if identifiers := [metadata.schema.names_by_id[i] for i in metadata.schema.identifier_field_ids]:
        shown["identifier-fields"] = f"[{','.join(identifiers)}]"
    return dict(sorted(shown.items()))


def default_text(field: NestedField) -> str | None:
    """The default for new rows as a literal; None for none, and for what SQL cannot write."""
    value = field.write_default
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str() if isinstance(field.type, DecimalType):
            return value
        case str() if field.type == DATE:
            return f"DATE '{value}'"
        case str() if field.type == TIMESTAMPTZ:
            return f"TIMESTAMP '{value}'"
        case str() if field.type == TIMESTAMP:
            return f"TIMESTAMP_NTZ '{value}'"
        case str() if field.type == BINARY or isinstance(field.type, FixedType):
            return f"X'{value}'"
        case str():
            return quoted_text(value)
    return None


def _column(field: PartitionField | SortField, schema: Schema) -> str:
    path = schema.paths.get(field.source_id)
    return "?" if path is None else dotted(path)


def _term(transform: Transform, column: str, *, number_first: bool) -> str:
    match transform:
        case Identity():
            return column
        case Bucket(count):
            return f"bucket({count}, {column})"
        case Truncate(width):
            return f"truncate({width}, {column})" if number_first else f"truncate({column}, {width})"
        case TimeTransform(unit):
            return f"{unit}s({column})"
    return f"{transform}({column})"
