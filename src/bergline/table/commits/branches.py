"""Branches that are written to: their names, the head that a write builds on, and refs that cannot be written to."""

from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN, SnapshotRef, check_ref_name
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata


def branch_head(base: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a write to a branch builds on: that of `main` while there is no such branch."""
    ref = base.refs.get(branch)
    check_writable(ref, branch)
    return base.head(branch if ref else MAIN)


def head_id(metadata: TableMetadata, branch: str) -> int | None:
    """The id of the snapshot that a write would build on; the commit checks that the ref is a branch."""
    head = metadata.head(branch) or metadata.head(MAIN)
    return None if head is None else head.snapshot_id


def check_write_branch(metadata: TableMetadata, branch: str) -> None:
    """Refuse invalid names, tags, and tables at a tag or a time; the write creates a branch that does not exist."""
    check_ref_name(branch)
    seen_at = metadata.seen_at
    if seen_at is not None and not seen_at.is_branch:
        raise RefusedError(
            f"cannot write to `{branch}`: the table is read at `{seen_at.name}`, where nothing can be written",
            hints=["write to a branch of the lake: `bergline branch create staging`, then `lake@staging`"],
        )
    check_writable(metadata.refs.get(branch), branch)


def check_branch_exists(base: TableMetadata, branch: str) -> None:
    """NotFoundError, with similar names, if there is no such branch; `main` exists even without a snapshot."""
    if branch != MAIN and branch not in base.refs:
        raise NotFoundError(f"no branch `{branch}`", kind="ref", name=branch, known=base.refs)


def check_writable(ref: SnapshotRef | None, name: str) -> None:
    """Refuse tags: they do not move."""
    if ref is not None and not ref.is_branch:
        raise RefusedError(
            f"cannot write to `{name}`: it is a tag, and tags do not move",
            hints=["write to a branch, or replace the tag"],
        )
