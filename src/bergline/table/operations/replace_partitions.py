"""Replace partitions: whatever is in the partitions of the new files goes, in one snapshot."""

from collections.abc import Mapping, Sequence

from bergline.format.manifest.manifest import DataFile, partition_key
from bergline.format.metadata.refs import check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.table.commits.history_window import EVERYTHING, Scope
from bergline.table.commits.isolation import ValidateFrom
from bergline.table.manifests.removal import Everything, Removal, RemovedPartitions
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks


def replace_partitions(
    io: FileIO,
    metadata: TableMetadata,
    files: Sequence[DataFile],
    *,
    branch: str,
    summary: Mapping[str, str],
    validate: ValidateFrom | None = None,
    discard_on_failure: bool = False,
    starts_branch: bool = True,
    written_schema: Schema | None = None,
) -> Overwrite:
    """An overwrite of the partitions that the files are in; files of other partition specs stay.

    Without partitions it replaces all rows. If it is to be validated, nobody may have changed these partitions since.
    """
    check_ref_name(branch)
    partitions = {partition_key(f): (f.spec_id, f.partition) for f in files}
    specs = [metadata.specs_by_id.get(spec_id) for spec_id, _ in partitions.values()]
    whole = any(spec is not None and spec.is_unpartitioned for spec in specs)
    removal: Removal = Everything() if whole else RemovedPartitions(tuple(partitions.values()))
    scope = EVERYTHING if whole else Scope(partitions=frozenset(partitions))
    return Overwrite(
        io,
        files,
        [removal],
        branch=branch,
        summary={**summary, "replace-partitions": "true"},
        checks=OverwriteChecks(validate.snapshot_id, validate.isolation, scope) if validate else None,
        discard_on_failure=discard_on_failure,
        starts_branch=starts_branch,
        written_schema=written_schema,
    )
