"""From which snapshot an overwrite is validated, and how strictly.

Whoever reads the branch that it replaces is validated from the snapshot that was read: rows that others committed since
are not among the new rows, and would be lost.
"""

from collections.abc import Iterable, Sequence

from bergline.arguments import check_whole, shown
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.branches import head_id
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, ValidateFrom, given_isolation
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead, real_branch, table_identity


def validation_start(
    metadata: TableMetadata,
    branch: str,
    isolation: str | Isolation | None,
    given: TableScan | int | None = None,
    reads: Iterable[BranchRead] = (),
) -> ValidateFrom | None:
    """The given snapshot, else the oldest that was read of the branch, else its head if a level was given.

    The level is serializable unless another was given; None if nothing is to be validated.
    """
    level = given_isolation(isolation)
    if given is not None:
        if isolation == NO_ISOLATION:
            raise InvalidInputError("expected an isolation level to validate at, found `none` beside a snapshot")
        return ValidateFrom(_given_snapshot(metadata, given), level or Isolation.SERIALIZABLE)
    if isolation == NO_ISOLATION:
        return None
    read = oldest_read(metadata, branch, reads)
    if read is not None:
        return ValidateFrom(read.snapshot_id, level or Isolation.SERIALIZABLE)
    return None if level is None else ValidateFrom(head_id(metadata, branch), level)


def oldest_read(metadata: TableMetadata, branch: str, reads: Iterable[BranchRead]) -> BranchRead | None:
    """Of the reads of what a write to the branch builds on, the one that is furthest back in its history."""
    branch = real_branch(metadata, branch)
    built_on = branch if branch in metadata.refs else MAIN  # where a branch begins that does not exist
    own = [r for r in reads if r.table == table_identity(metadata) and r.branch in {built_on, branch}]
    if len(own) < 2:  # noqa: PLR2004
        return own[0] if own else None
    head = metadata.head(built_on)
    known = [s.snapshot_id for s in metadata.ancestors(head.snapshot_id if head else None)]
    # one that has expired, or was rolled back, is validated to be a conflict; one of an empty branch is the oldest
    return max(own, key=lambda r: _age(r, known))


def _age(read: BranchRead, newest_first: Sequence[int]) -> int:
    if read.snapshot_id is None:
        return len(newest_first)
    return newest_first.index(read.snapshot_id) if read.snapshot_id in newest_first else len(newest_first) + 1


def _given_snapshot(metadata: TableMetadata, given: TableScan | int) -> int | None:
    if not isinstance(given, TableScan):
        if type(given) is not int:
            raise InvalidInputError(f"expected a scan or the id of a snapshot to validate from, found {shown(given)}")
        return check_whole(given, "the id of a snapshot")
    if given.table_identity != table_identity(metadata):
        raise InvalidInputError("expected a scan of the table that is written to, found one of another table")
    return given.snapshot_id
