"""What a pull request would do to a table now, tried out without changing anything."""

from collections.abc import Iterable

import msgspec

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.protection.caller import standing_for
from bergline.errors import BerglineError, ConflictError, NotFoundError, RefusedError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import MAIN, SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.governance.pull_requests.model import (
    PULL_REQUEST,
    ProposedChange,
    ProposedTable,
    PullRequestRecord,
    Standing,
)
from bergline.io.scratch import ScratchFileIO
from bergline.table.commits.operation import CommitStamp
from bergline.table.references.diff import RefDiff, diff_refs
from bergline.table.references.publish import Publish, PublishRequest
from bergline.table.references.ref_changes import drop_ref


def load_proposed(catalog: Catalog, record: PullRequestRecord, table: ProposedTable) -> LoadedTable:
    """The table with its branch; NotFoundError if there is nothing to publish, or nowhere to publish it to."""
    try:
        loaded = catalog.load_table(table.name)
    except NotFoundError as error:
        raise _gone(record, f"table `{table.name}` is gone: it was dropped or renamed") from error
    if loaded.metadata.table_uuid != table.uuid:
        raise _gone(record, f"another table has the name `{table.name}` now")
    for ref in (record.branch, record.target):
        if ref not in loaded.metadata.refs and ref != MAIN:
            raise _gone(record, f"branch `{ref}` of table `{table.name}` is gone")
    return loaded


def propose(catalog: Catalog, record: PullRequestRecord, loaded: LoadedTable, now_ms: int) -> ProposedChange:
    """What publishing would do to one table; errors are part of the value."""
    base = loaded.metadata
    head, target = base.ref(record.branch).snapshot_id, base.head(record.target)
    found = ProposedChange(
        loaded.name,
        _standing(base, head, None if target is None else target.snapshot_id),
        head,
        None if target is None else target.snapshot_id,
    )
    found = _with_trial(catalog, record, loaded, found, now_ms)
    return found if target is None else _with_diff(catalog, record, base, found)


def _gone(record: PullRequestRecord, why: str) -> NotFoundError:
    """An error about the pull request: for one about a table, servers would use the protocol's wording."""
    hints = ["close the pull request, or restore what is gone"]
    return NotFoundError(why, kind=PULL_REQUEST, name=str(record.number), hints=hints)


def _standing(base: TableMetadata, head: int, target: int | None) -> Standing:
    if target is None or (head != target and base.is_ancestor(target, of=head)):
        return Standing.FAST_FORWARD
    return Standing.UP_TO_DATE if base.is_ancestor(head, of=target) else Standing.DIVERGED


def _with_trial(
    catalog: Catalog, record: PullRequestRecord, loaded: LoadedTable, found: ProposedChange, now_ms: int
) -> ProposedChange:
    """Try to publish, with new files in memory, and ask the rules and grants for their decision."""
    request = PublishRequest(record.branch, record.target, merge=True, keep_branch=True)
    base = loaded.metadata
    try:
        change = Publish(ScratchFileIO(catalog.io), request).attempt(base, CommitStamp(1, now_ms))
        after = apply_updates(base, change.updates, base_location=None, now_ms=now_ms) if change.updates else base
    except (ConflictError, RefusedError) as error:
        return msgspec.structs.replace(found, conflict=str(error))
    except BerglineError as error:
        return msgspec.structs.replace(found, problem=str(error))
    with standing_for({} if found.head is None else {loaded.name: found.head}, record.author):
        demands = [] if after is base else _demands(catalog.refusals(loaded, after))
        dropping = _demands(_refusals_to_drop(catalog, loaded, after, record.branch))
    unless_kept = [f"{demand}; or keep the branch" for demand in dropping if demand not in demands]
    return msgspec.structs.replace(found, demands=(*demands, *unless_kept))


def _refusals_to_drop(
    catalog: Catalog, loaded: LoadedTable, after: TableMetadata, branch: str
) -> Iterable[RefusedError]:
    """The refusals to drop the branch, as publishing does unless the branch is kept."""
    try:
        dropped = drop_ref(after, branch, SnapshotRefType.BRANCH)
    except RefusedError as error:
        return (error,)
    without = apply_updates(after, dropped.updates, base_location=None, now_ms=after.last_updated_ms)
    return catalog.refusals(loaded, without)


def _demands(refusals: Iterable[RefusedError]) -> list[str]:
    return ["; ".join((str(error), *error.hints)) for error in refusals]


def _with_diff(
    catalog: Catalog, record: PullRequestRecord, base: TableMetadata, found: ProposedChange
) -> ProposedChange:
    try:
        diff = diff_refs(catalog.io, base, record.target, record.branch)
    except BerglineError as error:
        return msgspec.structs.replace(found, problem=found.problem or str(error))
    return msgspec.structs.replace(found, **_counts(diff))


def _counts(diff: RefDiff) -> dict[str, int | tuple[str, ...]]:
    return {
        "snapshots": len(diff.only_to),
        "behind": len(diff.only_from),
        "added_rows": sum(p.added_rows for p in diff.partitions),
        "removed_rows": sum(p.removed_rows for p in diff.partitions),
        "added_files": sum(p.added_data_files + p.added_delete_files for p in diff.partitions),
        "removed_files": sum(p.removed_data_files + p.removed_delete_files for p in diff.partitions),
        "schema_changes": diff.schema_changes,
    }
