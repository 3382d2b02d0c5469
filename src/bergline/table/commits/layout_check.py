"""Whether files fit a table whose schema or partition specs were made in the same transaction, and then made again."""

from bergline.format.metadata import TableMetadata
from bergline.format.updates import AddPartitionSpec, AddSchema, AddSnapshot
from bergline.table.commits.operation import Change


def layout_misfit(first: TableMetadata, staged: TableMetadata, now: TableMetadata, changes: list[Change]) -> str | None:
    """What no longer fits, in words: files were written on `staged`, made from `first`, and are to stand in `now`."""
    kinds = {type(update) for change in changes for update in change.updates}
    if AddSnapshot not in kinds:
        return None
    if AddSchema in kinds:
        for field_id, field in staged.schema.ids.items():
            found = now.schema.ids.get(field_id)
            new = field_id > first.last_column_id
            if found is None or found.type != field.type or (new and found.name != field.name):
                return f"column `{staged.schema.names_by_id[field_id]}` would no longer have the id {field_id}"
    if AddPartitionSpec in kinds:
        for spec_id, spec in staged.specs_by_id.items():
            if now.specs_by_id.get(spec_id) != spec:
                return f"their partition spec would no longer have the id {spec_id}"
    return None
