"""Whether an equality delete file can delete rows of a data file, judged by the metrics of both."""

from typing import Any

from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import DOUBLE, FLOAT, UUID, NestedField, child_fields

# bounds leave out NaN, and writers do not agree on the order of UUIDs
_WITHOUT_ORDER = (FLOAT, DOUBLE, UUID)


def may_share_keys(data: DataFile, delete: DataFile, metadata: TableMetadata) -> bool:
    """False only if no row of the data file has the values of a row of the delete file in its key columns."""
    schemas = (metadata.schema, *reversed(metadata.schemas))
    for field_id in delete.equality_ids or ():
        field = next((s.ids[field_id] for s in schemas if field_id in s.ids), None)
        if field is not None and not child_fields(field.type) and not _may_share(field, data, delete):
            return False
    return True


def _may_share(field: NestedField, data: DataFile, delete: DataFile) -> bool:
    nulls = _may_be_null(field, data), _may_be_null(field, delete)
    if all(nulls):
        return True
    if (_is_null(field, data) and not nulls[1]) or (_is_null(field, delete) and not nulls[0]):
        return False
    if field.type in _WITHOUT_ORDER:
        return True
    (low, high), (first, last) = _bounds(field, data), _bounds(field, delete)
    if None in (low, high, first, last):
        return True
    return bool(low <= last and first <= high)


def _may_be_null(field: NestedField, file: DataFile) -> bool:
    return not field.required and (file.null_value_counts or {}).get(field.id) != 0


def _is_null(field: NestedField, file: DataFile) -> bool:
    nulls = (file.null_value_counts or {}).get(field.id)
    return not field.required and nulls is not None and nulls == (file.value_counts or {}).get(field.id)


def _bounds(field: NestedField, file: DataFile) -> tuple[Any, Any]:
    lower, upper = (file.lower_bounds or {}).get(field.id), (file.upper_bounds or {}).get(field.id)
    if lower is None or upper is None:
        return None, None
    return decode_value(field.type, lower), decode_value(field.type, upper)
