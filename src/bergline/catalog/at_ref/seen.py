"""Table metadata as it is seen at a ref of the lake, where `main` is that ref."""

from itertools import accumulate

from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, LakeRef, LakeRefKind
from bergline.catalog.identifiers import TableName
from bergline.errors import NotFoundError
from bergline.format.metadata.refs import CREATED_ON, MAIN, SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot_log import snapshot_as_of
from bergline.format.metadata.table_metadata import SeenAt, SnapshotLogEntry, TableMetadata, changed


def seen_at(metadata: TableMetadata, ref: LakeRef, table: TableName) -> TableMetadata:
    """The table at a ref; NotFoundError where it has no such tag, or did not exist at the time.

    Snapshots, statistics and all other refs are those of the table. A table without the branch is seen as it is on
    `main`, with the default retention: a branch that begins there has that.
    """
    branch = metadata.properties.get(CREATED_ON)
    if branch is not None and (ref.kind is not LakeRefKind.BRANCH or branch != ref.name):
        raise of_branch(table, branch)
    main, own = metadata.refs.get(MAIN), metadata.refs.get(ref.name)
    if ref.kind is LakeRefKind.TIME:
        seen, is_branch = _ref_as_of(metadata, ref), False
    elif own is not None:
        seen, is_branch = own, own.is_branch
    elif ref.kind is LakeRefKind.TAG:
        raise NotFoundError(f"no table `{table}` at {ref}: it has no such tag", kind="table", name=str(table))
    else:
        begins = main and SnapshotRef(main.snapshot_id, SnapshotRefType.BRANCH)
        return changed(metadata, refs=_refs(metadata, begins), seen_at=SeenAt(ref.name, is_branch=True))
    refs = _refs(metadata, seen and SnapshotRef(seen.snapshot_id, SnapshotRefType.BRANCH, *_retention(seen, is_branch)))
    head = None if seen is None else seen.snapshot_id
    schema_id = metadata.current_schema_id
    if head is not None and not is_branch:  # what cannot be written is read with its own columns
        own_schema = metadata.snapshot(head).schema_id
        schema_id = schema_id if own_schema is None else own_schema
    return changed(
        metadata,
        refs=refs,
        current_snapshot_id=head,
        current_schema_id=schema_id,
        snapshot_log=_log(metadata, head),
        seen_at=SeenAt(ref.name, is_branch),
    )


def of_branch(table: TableName, branch: str) -> NotFoundError:
    """The error for a table that is on a branch of the lake alone, and is looked for elsewhere."""
    return NotFoundError(
        f"no table `{table}` here: it was created on branch `{branch}` of the lake, and is on it alone until it is "
        "published",
        kind="table",
        name=str(table),
    )


def _retention(seen: SnapshotRef, is_branch: bool) -> tuple[int | None, int | None, int | None]:
    return seen.retention if is_branch else (None, None, None)


def _ref_as_of(metadata: TableMetadata, ref: LakeRef) -> SnapshotRef | None:
    """The head of `main` at a time; None for a table that was empty."""
    at_ms = ref.time_ms
    if all(e.timestamp_ms > at_ms for e in metadata.snapshot_log) and _log_is_whole(metadata):
        return None
    return SnapshotRef(metadata.snapshot(snapshot_as_of(metadata, at_ms)).snapshot_id, SnapshotRefType.BRANCH)


def _log_is_whole(metadata: TableMetadata) -> bool:
    """Whether `main` had certainly no snapshot before the log begins: with one that expires, older entries go."""
    if not metadata.snapshot_log:
        return MAIN not in metadata.refs
    first, *_ = metadata.snapshots
    return len(metadata.snapshots) == metadata.last_sequence_number and first.parent_snapshot_id is None


def _refs(metadata: TableMetadata, seen: SnapshotRef | None) -> dict[str, SnapshotRef]:
    """The refs, with what is seen as `main` and the real one under another name, unless a ref has that name."""
    refs = dict(metadata.refs)
    main = refs.pop(MAIN, None)
    if main is not None:
        refs.setdefault(LAKE_MAIN, main)
    return refs if seen is None else {MAIN: seen, **refs}


def _log(metadata: TableMetadata, head: int | None) -> tuple[SnapshotLogEntry, ...]:
    """The branch's own history: its snapshots, oldest first, at times that never go back."""
    line = list(metadata.ancestors(head))[::-1]
    times = accumulate((s.timestamp_ms for s in line), max)
    return tuple(SnapshotLogEntry(ms, s.snapshot_id) for ms, s in zip(times, line, strict=True))
