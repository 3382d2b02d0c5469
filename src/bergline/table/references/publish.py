"""Publish: brings a branch into another and drops it, in one change."""

import msgspec

from bergline.errors import ConflictError, RefusedError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.commits.combine import combine_changes
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.references.merge import Merge, MergeResult
from bergline.table.references.merge_plan import MergeRequest, plan_merge
from bergline.table.references.published_runs import PublishedRun, note_run
from bergline.table.references.ref_changes import Retention, create_ref, drop_ref, existing_ref


class PublishRequest(msgspec.Struct, frozen=True):
    """What to publish where, whether the two may have diverged, and whether the branch stays."""

    branch: str
    into: str
    merge: bool = False
    squash: bool = False
    keep_branch: bool = False
    tag: str | None = None
    """A tag for the new head of `into`."""
    head: int | None = None
    """Where the branch must be; None for wherever the first attempt finds it."""
    run: PublishedRun | None = None
    """The pipeline's run that is published, to be recorded in the table if `into` moves."""

    @property
    def merging(self) -> MergeRequest:
        """The request as a merge."""
        return MergeRequest(self.branch, self.into, "onto", self.squash)


class Publish:
    """Publishes the branch as the first attempt finds it; if others move it later, the caller has not seen that."""

    # checked anew on every base; several tables meet other commits too often for a fixed number of attempts
    needs_validation = False

    def __init__(self, io: FileIO, request: PublishRequest) -> None:
        self._io = io
        self._request = request
        self._merge = Merge(io, request.merging)
        self._published = request.head
        self._was_attempted = False

    @property
    def result(self) -> MergeResult:
        """Where the ref was and is, by the last attempt."""
        return self._merge.result

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Move or merge, then tag and drop the branch."""
        if self._is_done(base):
            return Change()
        self._check_branch(base)
        if not self._request.merge:
            self._check_fast_forward(base)
        moved = self._merge.attempt(base, stamp)
        changes = [moved]
        if self._request.run is not None:
            changes.append(self._note_run(base, moved, stamp, self._request.run))
        if self._request.tag is not None:
            changes.append(self._tag(base, moved, stamp, self._request.tag))
        if not self._request.keep_branch:
            changes.append(drop_ref(base, self._request.branch, SnapshotRefType.BRANCH))
        self._was_attempted = True
        return combine_changes(changes)

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs."""
        self._merge.settled(landed)

    def _note_run(self, base: TableMetadata, moved: Change, stamp: CommitStamp, run: PublishedRun) -> Change:
        """Record the run; None if `into` does not move. A requirement that it has not moved guards the property."""
        after = apply_updates(base, moved.updates, base_location=None, now_ms=stamp.now_ms)
        before, head = base.head(self._request.into), after.head(self._request.into)
        return Change() if head is None or head == before else Change((note_run(base, run, head),))

    def _tag(self, base: TableMetadata, moved: Change, stamp: CommitStamp, tag: str) -> Change:
        after = apply_updates(base, moved.updates, base_location=None, now_ms=stamp.now_ms)
        return create_ref(after, tag, SnapshotRefType.TAG, after.ref(self._request.into).snapshot_id, Retention())

    def _is_done(self, base: TableMetadata) -> bool:
        """Whether everything that an earlier attempt wanted is done: then a missing branch is no failure."""
        head = self._merge.result.head
        if not self._was_attempted or self._request.keep_branch or self._request.branch in base.refs or head is None:
            return False
        into, tag = base.refs.get(self._request.into), base.refs.get(self._request.tag or "")
        is_tagged = self._request.tag is None or (tag is not None and tag.snapshot_id == head)
        return is_tagged and into is not None and base.is_ancestor(head, of=into.snapshot_id)

    def _check_branch(self, base: TableMetadata) -> None:
        ref = existing_ref(base, self._request.branch, SnapshotRefType.BRANCH)
        if self._published not in {None, ref.snapshot_id}:
            raise ConflictError(
                f"expected branch `{self._request.branch}` at snapshot {self._published}, found {ref.snapshot_id}: "
                "another commit moved it while it was published",
                hints=["look at what the branch has now, then publish it again"],
            )
        self._published = ref.snapshot_id

    def _check_fast_forward(self, base: TableMetadata) -> None:
        divergence = plan_merge(self._io, base, self._request.merging).divergence
        if divergence is not None and not self._merge.is_done(base, divergence):
            since = "they began" if divergence.ancestor_id is None else f"snapshot {divergence.ancestor_id}"
            raise RefusedError(
                f"cannot fast-forward `{self._request.into}` to `{self._request.branch}`: "
                f"both have moved on since {since}",
                hints=["`merge=True` replays the branch's snapshots on top of the other"],
            )
