"""Whether files fit a table whose schema or partition specs are others by the time that the files are committed."""

from bergline.errors import ConflictError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddPartitionSpec, AddSchema, AddSnapshot
from bergline.format.schema.schema import Schema
from bergline.table.commits.operation import Change


def layout_misfit(first: TableMetadata, staged: TableMetadata, now: TableMetadata, changes: list[Change]) -> str | None:
    """What no longer fits, in words: files were written on `staged`, made from `first`, and are to be part of `now`."""
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


def check_written_columns(written: Schema, now: Schema) -> None:
    """ConflictError if the table has a column of another id for one that was written: its values were lost.

    Columns that were only dropped are gone as if the rows had come before that.
    """
    lost = [f for f in written.fields if f.id not in now.ids]
    for field in lost:
        if field.name in now.names or len(lost) == len(written.fields):
            raise ConflictError(
                f"the table has other columns since rows were written: column `{field.name}` would no longer have the "
                f"id {field.id}",
                hints=["load the table again and write the rows again"],
            )
