"""`table.refs`: branches and tags as a user works with them."""

from collections.abc import Callable, Iterator

from bergline.errors import InvalidInputError
from bergline.format.arguments import check_whole, shown
from bergline.format.metadata import TableMetadata
from bergline.format.refs import SnapshotRef, SnapshotRefType
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.diff import RefDiff, diff_refs
from bergline.table.references.merge import Merge, MergeResult
from bergline.table.references.merge_plan import MergeWish
from bergline.table.references.ref_changes import (
    Retention,
    create_ref,
    drop_ref,
    fast_forward,
    replace_ref,
    set_retention,
)
from bergline.table.references.start_branch import StartBranch

_BRANCH, _TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


class Refs:
    """Every method is one commit, tried again when others come first; reading shows the table as last loaded."""

    def __init__(
        self, metadata: Callable[[], TableMetadata], run: Callable[[Operation], TableMetadata], io: FileIO
    ) -> None:
        self._metadata = metadata
        self._run = run
        self._io = io

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata().refs)

    def __getitem__(self, name: str) -> SnapshotRef:
        return self._metadata().ref(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._metadata().refs

    def create_branch(
        self,
        name: str,
        *,
        at: int | str | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> None:
        """A branch at a snapshot id or ref, by default the head of `main`; on an empty table with an empty snapshot."""
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        create = _creation(name, _BRANCH, at, retention, if_not_exists=if_not_exists, or_replace=or_replace)
        self._run(StartBranch(self._io, name, retention, create) if at is None else MetadataOperation(create))

    def create_tag(
        self,
        name: str,
        *,
        at: int | str | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> None:
        """A tag at a snapshot id or ref, by default the head of `main`."""
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        create = _creation(name, _TAG, at, retention, if_not_exists=if_not_exists, or_replace=or_replace)
        self._run(MetadataOperation(create))

    def replace_branch(self, name: str, *, at: int | str | None = None, retention: Retention | None = None) -> None:
        """Move a branch anywhere, keeping the retention that is not mentioned."""
        self._replace(name, _BRANCH, at, retention or Retention())

    def replace_tag(self, name: str, *, at: int | str | None = None, retention: Retention | None = None) -> None:
        """Move a tag: the only way a tag ever moves."""
        self._replace(name, _TAG, at, retention or Retention())

    def drop_branch(self, name: str, *, if_exists: bool = False) -> None:
        """Forget a branch; `main` is refused."""
        self._drop(name, _BRANCH, if_exists=if_exists)

    def drop_tag(self, name: str, *, if_exists: bool = False) -> None:
        """Forget a tag."""
        self._drop(name, _TAG, if_exists=if_exists)

    def fast_forward(self, branch: str, *, to: str) -> None:
        """Move a branch forward to a ref that descends from it."""
        self._change(fast_forward, branch, to)

    def merge(self, branch: str, *, into: str, squash: bool = False) -> MergeResult:
        """Bring what a branch has into another: move it forward, or do each snapshot again on top of it.

        ConflictError if both changed the same files. Where history has expired, `squash` takes the difference of the
        two ends as one snapshot.
        """
        return self._merge(MergeWish(branch, into, "onto", squash))

    def rebase(self, branch: str, *, onto: str, squash: bool = False) -> MergeResult:
        """Move a branch on top of another ref: its own snapshots are done again there."""
        return self._merge(MergeWish(branch, onto, "picked", squash))

    def diff(self, from_ref: str, to_ref: str) -> RefDiff:
        """How a ref differs from another as last loaded, from metadata alone; `table.changes` gives the rows."""
        return diff_refs(self._io, self._metadata(), from_ref, to_ref)

    def set_retention(
        self,
        name: str,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
    ) -> None:
        """Change how long a ref and its history are kept."""
        self._change(set_retention, name, Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms))

    def _change(self, change: Callable[..., Change], *arguments: object) -> None:
        self._run(MetadataOperation(lambda base: change(base, *arguments)))

    def _merge(self, wish: MergeWish) -> MergeResult:
        operation = Merge(self._io, wish)
        self._run(operation)
        return operation.result

    def _replace(self, name: str, kind: SnapshotRefType, at: int | str | None, retention: Retention) -> None:
        if not isinstance(retention, Retention):
            raise InvalidInputError(f"expected a Retention, found {shown(retention)}")
        self._run(
            MetadataOperation(
                lambda base: replace_ref(base, name, kind, _snapshot_at(base, at), retention),
                overwrites=_place_of(name),
            )
        )

    def _drop(self, name: str, kind: SnapshotRefType, *, if_exists: bool) -> None:
        self._run(
            MetadataOperation(lambda base: drop_ref(base, name, kind, if_exists=if_exists), overwrites=_place_of(name))
        )


def _creation(
    name: str,
    kind: SnapshotRefType,
    at: int | str | None,
    retention: Retention,
    *,
    if_not_exists: bool,
    or_replace: bool,
) -> Callable[[TableMetadata], Change]:
    if if_not_exists and or_replace:
        raise InvalidInputError("expected one of if_not_exists and or_replace, found both")
    return lambda base: create_ref(
        base, name, kind, _snapshot_at(base, at), retention, if_not_exists=if_not_exists, or_replace=or_replace
    )


def _place_of(name: str) -> Callable[[TableMetadata], object]:
    """Where a ref stands: what moving or dropping it takes away."""
    return lambda base: ref.snapshot_id if (ref := base.refs.get(name)) else None


def _snapshot_at(base: TableMetadata, at: int | str | None) -> int | None:
    """The snapshot of an id or a ref."""
    if isinstance(at, str):
        return base.ref(at).snapshot_id
    return None if at is None else check_whole(at, "the id of a snapshot")
