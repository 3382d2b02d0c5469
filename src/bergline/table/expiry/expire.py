"""Expiry: forget snapshots that no ref protects, then delete the files that only they needed."""

import msgspec

from bergline.format.apply import apply_updates
from bergline.format.manifest import FileContent
from bergline.format.metadata import TableMetadata
from bergline.format.requirements import same_table
from bergline.format.updates import RemoveSnapshotRef, RemoveSnapshots, Update
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.expiry.reachable import Cleanup, plan_cleanup, still_unneeded
from bergline.table.expiry.retention import ExpiryPlan, ExpiryWish, plan_expiry


class ExpiryResult(msgspec.Struct, frozen=True):
    """What was removed and deleted; `failed` files could not be deleted and are no longer needed by anything."""

    removed_snapshots: tuple[int, ...] = ()
    removed_refs: tuple[str, ...] = ()
    deleted_data_files: int = 0
    deleted_position_delete_files: int = 0
    deleted_equality_delete_files: int = 0
    deleted_manifests: int = 0
    deleted_manifest_lists: int = 0
    deleted_statistics_files: int = 0
    failed: tuple[str, ...] = ()


class Expire:
    """Works out from scratch on every attempt what may go: a ref made meanwhile protects its snapshot."""

    conflicts_in_meaning = False

    def __init__(self, io: FileIO, wish: ExpiryWish) -> None:
        self._io = io
        self._wish = wish
        self._plan = ExpiryPlan((), ())
        self._after: TableMetadata | None = None
        self._cleanup = Cleanup()
        self.result = ExpiryResult()
        """What went; before the commit is certain, what is planned to go."""

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Plan what goes, metadata and files; what cannot be read stops it here, before anything is changed."""
        self._plan = plan = plan_expiry(base, self._wish, stamp.now_ms)
        updates: tuple[Update, ...] = tuple(RemoveSnapshotRef(name) for name in plan.removed_refs)
        if plan.removed_snapshots:
            updates = (*updates, RemoveSnapshots(plan.removed_snapshots))
        if not updates:
            self._after, self._cleanup, self.result = base, Cleanup(), ExpiryResult()
            return Change()
        self._after = apply_updates(base, updates, base_location=None, now_ms=stamp.now_ms)
        self._cleanup = plan_cleanup(self._io, base, self._after)
        self.result = _result(plan, self._cleanup)
        return Change(updates, same_table(base))

    def committed(self, metadata: TableMetadata) -> None:
        """Delete the planned files; the swap is certain, and the base was exactly the one planned on."""
        if self._after is None:
            return
        # operations that followed in the same transaction may have brought files back
        cleanup = still_unneeded(self._io, self._cleanup, self._after, metadata)
        failed = self._io.delete(
            [*cleanup.content_files, *cleanup.manifests, *cleanup.manifest_lists, *cleanup.statistics]
        )
        self.result = _result(self._plan, cleanup, tuple(failed))

    def abandoned(self) -> None:
        """Nothing was written."""


def _result(plan: ExpiryPlan, cleanup: Cleanup, failed: tuple[str, ...] = ()) -> ExpiryResult:
    kinds = list(cleanup.content_files.values())
    return ExpiryResult(
        removed_snapshots=plan.removed_snapshots,
        removed_refs=plan.removed_refs,
        deleted_data_files=kinds.count(FileContent.DATA),
        deleted_position_delete_files=kinds.count(FileContent.POSITION_DELETES),
        deleted_equality_delete_files=kinds.count(FileContent.EQUALITY_DELETES),
        deleted_manifests=len(cleanup.manifests),
        deleted_manifest_lists=len(cleanup.manifest_lists),
        deleted_statistics_files=len(cleanup.statistics),
        failed=failed,
    )
