"""The partition fields of all of a table's specs as one struct."""

from bergline.errors import UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import PartitionField, result_type
from bergline.format.partition.transforms import Void
from bergline.format.types.types import NestedField, StructType


def partition_union(metadata: TableMetadata) -> StructType:
    """Every partition field whose source column still exists, by id, under its latest name.

    A field that was removed in v1, and is always null since then, keeps its former type; values of unknown transforms
    are text.
    """
    names: dict[int, str] = {}
    fields: dict[int, tuple[PartitionField, NestedField]] = {}
    for spec in sorted(metadata.partition_specs, key=lambda s: s.spec_id, reverse=True):
        for field in spec.fields:
            if field.source_id not in metadata.schema.ids:
                continue
            known = fields.get(field.field_id)
            if known is not None:
                _check_same(known[0], field)
            if known is None or isinstance(known[0].transform, Void):
                name = names.setdefault(field.field_id, _free_name(field, names))
                type_ = result_type(field, metadata.schema)
                fields[field.field_id] = field, NestedField(field.field_id, name, False, type_)
    return StructType(tuple(fields[field_id][1] for field_id in sorted(fields)))


def _free_name(field: PartitionField, names: dict[int, str]) -> str:
    """Fields from different specs may have the same name: then the older one gets its id appended."""
    return f"{field.name}_{field.field_id}" if field.name in names.values() else field.name


def _check_same(later: PartitionField, earlier: PartitionField) -> None:
    """Refuse ids with two meanings: in v1 an id could be assigned twice."""
    same = later.source_id == earlier.source_id and (
        later.transform == earlier.transform or isinstance(later.transform, Void) or isinstance(earlier.transform, Void)
    )
    if not same:
        raise UnsupportedError(
            f"expected one meaning of partition field {later.field_id}, "
            f"found `{earlier.name}` and `{later.name}` of different columns or transforms"
        )
