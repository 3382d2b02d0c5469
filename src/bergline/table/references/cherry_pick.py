"""Cherry-pick: brings one snapshot of any line of history, or a staged one, to a branch."""

from collections.abc import Callable, Iterable

import msgspec
import polars as pl

from bergline.catalog.conflicts import describe_snapshot
from bergline.errors import ConflictError, InvalidInputError, RefusedError
from bergline.format.manifest.manifest import EntryStatus, ManifestContent, ManifestFile, partition_key
from bergline.format.metadata.requirements import same_table
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.branches import branch_head, check_branch_exists
from bergline.table.commits.history_window import HistoryWindow, Scope
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.commits.validate import shown_file
from bergline.table.manifests.external_files import live_files
from bergline.table.manifests.filtering import ManifestFilter
from bergline.table.manifests.removal import RemovedFiles
from bergline.table.operations.append import AddedFiles
from bergline.table.references.common_ancestor import first_ids, known_by, parts_of, repetition
from bergline.table.references.merge import MergeResult
from bergline.table.references.ref_changes import hold_snapshot, move_branch
from bergline.table.references.snapshot_change import SnapshotChange, load_change
from bergline.table.references.staged import check_not_published, merge_hint
from bergline.table.references.summary import REPLACED, REPLACED_AMONG_OTHERS, published_summary

_ADDED = pl.col("status") == int(EntryStatus.ADDED)


class CherryPick(SnapshotProducer):
    """The branch moves to a snapshot whose parent is its head; else appends and replaced partitions are replayed.

    `find` names the snapshot on each base; it must be the same on all.
    """

    def __init__(self, io: FileIO, find: Callable[[TableMetadata], Snapshot], *, branch: str) -> None:
        super().__init__(io, branch, {})
        self._find = find
        self._replayed: _Replayed | None = None
        self.result = MergeResult(None, None)

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """A branch that only moves, or a new snapshot on its head; all checks are repeated."""
        check_branch_exists(base, self._branch)
        head, picked = branch_head(base, self._branch), self._find(base)
        head_id = head.snapshot_id if head else None
        history = list(base.ancestors(head_id))
        can_be_repeated = picked.operation == SnapshotOperation.APPEND or _replaces_partitions(picked)
        if can_be_repeated:
            check_not_published(picked, history, self._branch)
        if picked.parent_snapshot_id == head_id:
            self.result = MergeResult(head_id, picked.snapshot_id)
            change = move_branch(base, self._branch, picked.snapshot_id)
            return msgspec.structs.replace(change, requirements=(*same_table(base), *change.requirements))
        self._check_new(picked, history)
        if not can_be_repeated:
            raise RefusedError(
                f"{self._refusal(picked)}: only appends, replaced partitions and snapshots "
                f"made on the head of `{self._branch}` can be picked",
                hints=[merge_hint(picked, self._branch)],
            )
        self._prepare(base, picked)
        self.result = MergeResult(head_id, self.snapshot_id, {picked.snapshot_id: self.snapshot_id})
        try:
            change = super().attempt(base, stamp)
            return msgspec.structs.replace(change, updates=(*hold_snapshot(picked.snapshot_id), *change.updates))
        except ConflictError as error:
            raise ConflictError(f"{self._refusal(picked)}: {error}", hints=error.hints) from error
        except InvalidInputError as error:
            raise RefusedError(f"{self._refusal(picked)}: {error}", hints=error.hints) from error

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """What the snapshot added, in new manifests, then the parent's manifests without what it removed."""
        if self._replayed is None:
            raise InvalidInputError("expected a snapshot to replay, found none")
        before = load_manifest_list(self._io, parent) if parent else []
        self._check_partitions(base, parent, self._replayed.change)
        self._check_files(before, self._replayed.change)
        added = self._replayed.added.manifests(base)
        filtered = self._replayed.filter.apply(base, before, added=added)
        return Draft(
            self._replayed.change.operation,
            (*added, *filtered.manifests),
            added=self._replayed.added.files,
            removed=filtered.removed,
            replaced=filtered.replaced,
        )

    def _prepare(self, base: TableMetadata, picked: Snapshot) -> None:
        found = picked if self._replayed is None else self._replayed.change.source
        if found.snapshot_id != picked.snapshot_id:
            raise ConflictError(
                f"expected to pick snapshot {found.snapshot_id}, found {picked.snapshot_id} in its place meanwhile"
            )
        # a snapshot of the same transaction keeps its id when it is drafted on another base
        if self._replayed is None or found.manifest_list != picked.manifest_list:
            self._replayed = _Replayed(self._io, self, load_change(self._io, base, picked))
            self._summary |= repetition(picked) | published_summary(picked)
            if self._replayed.change.replaced:
                self._summary |= {REPLACED_AMONG_OTHERS: "true"}
            self.needs_validation = picked.operation != SnapshotOperation.APPEND

    def _check_new(self, picked: Snapshot, history: Iterable[Snapshot]) -> None:
        """Refuse a change that is already in the branch's history, under this id or another."""
        parts = parts_of(picked)
        for snapshot in history:
            if snapshot.snapshot_id == picked.snapshot_id:
                raise RefusedError(f"{self._refusal(picked)}: it is in the history of `{self._branch}`")
            if known_by((picked,), (snapshot,)):
                raise RefusedError(
                    f"{self._refusal(picked)}: `{self._branch}` already has it, as snapshot {snapshot.snapshot_id}"
                )
            if not parts.isdisjoint(first_ids((snapshot,))):
                raise RefusedError(
                    f"{self._refusal(picked)}: it was squashed from several, "
                    f"of which `{self._branch}` already has some, as snapshot {snapshot.snapshot_id}"
                )

    def _check_partitions(self, base: TableMetadata, parent: Snapshot | None, change: SnapshotChange) -> None:
        """Nobody may have added files to a replaced partition since it was replaced."""
        if not _replaces_partitions(change.source):
            return
        scope = Scope(partitions=frozenset([partition_key(f) for f in change.added_data]))
        since = change.source.parent_snapshot_id
        if parent is None and since is not None:
            raise self._unknown_base(change, f"snapshot {since}, on which it is based, is not in its history")
        try:
            window = HistoryWindow(self._io, base, parent, since=since, branch=self._branch, earlier={})
        except ConflictError as error:
            raise self._unknown_base(change, str(error)) from error
        operations = {s.operation for s in window.snapshots}
        for written in window.files(ManifestContent.DATA, operations, scope, _ADDED):
            raise ConflictError(
                f"{describe_snapshot(written.snapshot, [self._branch])} added {shown_file(written.file, base)}, "
                "to a partition that was replaced"
            )

    def _check_files(self, before: Iterable[ManifestFile], change: SnapshotChange) -> None:
        """Refuse files that the branch already has: a snapshot lists a file only once."""
        if there := live_files(self._io, before, change.added_data):
            raise ConflictError(f"{min(path for path, _ in there)} is on `{self._branch}` already")

    def _unknown_base(self, change: SnapshotChange, why: str) -> RefusedError:
        """The error if the branch never had the snapshot on which partitions were replaced; a retry does not help."""
        return RefusedError(f"{self._refusal(change.source)}: {why}", hints=[merge_hint(change.source, self._branch)])

    def _refusal(self, picked: Snapshot) -> str:
        return f"cannot cherry-pick snapshot {picked.snapshot_id} onto `{self._branch}`"


class _Replayed:
    """What a picked snapshot did, and the manifests written for it, the same in all attempts."""

    def __init__(self, io: FileIO, producer: SnapshotProducer, change: SnapshotChange) -> None:
        self.change = change
        self.added = AddedFiles(producer, change.added_data)
        self.filter = ManifestFilter(io, producer, [RemovedFiles(change.removed_data, must_exist=True)])


def _replaces_partitions(snapshot: Snapshot) -> bool:
    marked = snapshot.summary.get(REPLACED, "").lower() == "true"
    return marked and snapshot.operation == SnapshotOperation.OVERWRITE
