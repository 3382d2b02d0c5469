"""Checks that files still fit a table whose schema or partition specs have changed since they were written."""

from collections.abc import Iterable, Sequence

from bergline.errors import ConflictError
from bergline.format.metadata.requirements import AssertRefSnapshotId, Requirement
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshots,
    Update,
)
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID
from bergline.format.schema.schema import Schema
from bergline.table.commits.operation import Change
from bergline.table.commits.proposed_manifests import UNREADABLE, SnapshotFiles, UnfitError, read_manifest_list


def layout_misfit(first: TableMetadata, staged: TableMetadata, now: TableMetadata, changes: list[Change]) -> str | None:
    """Why files written on `staged`, which was made from `first`, do not fit `now`; None if they do."""
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
    """ConflictError if a column that was written has another id in the table now: its values would be lost.

    A column that was only dropped does no harm: the rows are as if they had been written before that.
    """
    lost = [f for f in written.fields if f.id not in now.ids]
    for field in lost:
        if field.name in now.names or len(lost) == len(written.fields):
            raise ConflictError(
                f"the table has other columns since rows were written: column `{field.name}` would no longer have the "
                f"id {field.id}",
                hints=["load the table again and write the rows again"],
            )


def check_layout(
    files: SnapshotFiles, metadata: TableMetadata, requirements: Sequence[Requirement], updates: Sequence[Update]
) -> None:
    """ConflictError for a snapshot of a schema or partition spec that the table no longer has: it would be unreadable.

    The requirements of other writers are about refs alone, and do not notice.
    """
    added = [u.snapshot for u in updates if isinstance(u, AddSnapshot)]
    kinds = {type(update) for update in updates}
    if AddSchema not in kinds:
        schemas = {s.schema_id for s in metadata.schemas}
        for snapshot in added:
            if snapshot.schema_id is not None and snapshot.schema_id not in schemas:
                raise _gone("schema", snapshot.schema_id, schemas)
    was_never_partitioned = metadata.last_partition_id < FIRST_PARTITION_FIELD_ID and len(metadata.specs_by_id) == 1
    if AddPartitionSpec not in kinds and not was_never_partitioned:
        for snapshot in added:
            for spec_id in _specs(files, metadata, snapshot) - metadata.specs_by_id.keys():
                raise _gone("partition spec", spec_id, metadata.specs_by_id)
    _check_removals(files, metadata, requirements, updates)


def _check_removals(
    files: SnapshotFiles, metadata: TableMetadata, requirements: Sequence[Requirement], updates: Sequence[Update]
) -> None:
    """ConflictError if schemas or specs are to be removed that a snapshot needs of which the client does not know.

    The client knows the history of the refs that it requires, but not of branches that are new, nor staged snapshots.
    """
    schemas = {i for u in updates if isinstance(u, RemoveSchemas) for i in u.schema_ids}
    specs = {i for u in updates if isinstance(u, RemovePartitionSpecs) for i in u.spec_ids}
    if not schemas and not specs:
        return
    heads = {r.snapshot_id for r in requirements if isinstance(r, AssertRefSnapshotId)}
    known = {s.snapshot_id for head in heads if head is not None for s in metadata.ancestors(head)}
    known |= {i for u in updates if isinstance(u, RemoveSnapshots) for i in u.snapshot_ids}
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id in known:
            continue
        if snapshot.schema_id in schemas or (specs and specs & _specs(files, metadata, snapshot)):
            raise ConflictError(
                f"cannot remove schemas {sorted(schemas)} and partition specs {sorted(specs)}: "
                f"snapshot {snapshot.snapshot_id}, which came meanwhile, needs one of them"
            )


def _specs(files: SnapshotFiles, metadata: TableMetadata, snapshot: Snapshot) -> set[int]:
    """The partition specs of a snapshot's manifests; none if its list cannot be read here."""
    try:
        return {m.partition_spec_id for m in read_manifest_list(files, metadata, snapshot)}
    except (UnfitError, *UNREADABLE):
        return set()


def _gone(what: str, found: int, known: Iterable[int | None]) -> ConflictError:
    return ConflictError(
        f"expected a snapshot of {what} {sorted(k for k in known if k is not None)}, found one of {what} {found}, "
        "which was removed meanwhile",
        hints=["load the table again, and write the rows again"],
    )
