"""Dropped branches and tags, by the earlier metadata files that the table's log names."""

from bergline.catalog.metadata_files import table_files
from bergline.errors import AlreadyExistsError, NotFoundError
from bergline.format.metadata.refs import SnapshotRef
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO


def find_dropped(io: FileIO, metadata: TableMetadata, name: str) -> SnapshotRef:
    """The last state of the ref, if its snapshot still exists; the newest metadata file that has it decides."""
    if name in metadata.refs:
        kind = metadata.refs[name].snapshot_ref_type
        raise AlreadyExistsError(f"{kind} `{name}` exists already", kind=str(kind), name=name)
    files = table_files(io)
    seen: set[str] = set()
    for entry in reversed(metadata.metadata_log):
        try:
            before = files.load(entry.metadata_file)
        except NotFoundError:  # the file was removed by `write.metadata.delete-after-commit.enabled`
            continue
        seen.update(before.refs)
        if name in before.refs:
            return _with_snapshot(metadata, name, before.refs[name])
    raise NotFoundError(
        f"no dropped branch or tag `{name}`: no earlier metadata file of the table names it",
        kind="ref",
        name=name,
        known=seen - metadata.refs.keys(),
    )


def _with_snapshot(metadata: TableMetadata, name: str, ref: SnapshotRef) -> SnapshotRef:
    if ref.snapshot_id not in metadata.snapshots_by_id:
        raise NotFoundError(
            f"cannot restore {ref.snapshot_ref_type} `{name}`: its snapshot {ref.snapshot_id} has expired",
            kind="snapshot",
            name=str(ref.snapshot_id),
        )
    return ref
