"""Expiry: forget snapshots that no ref protects, then delete the files that only they needed."""

import msgspec

from bergline.format.apply import apply_updates
from bergline.format.manifest import FileContent
from bergline.format.metadata import TableMetadata
from bergline.format.requirements import same_table
from bergline.format.updates import RemoveSnapshotRef, RemoveSnapshots, Update
from bergline.io.fileio import FileIO
from bergline.table.operation import Change, CommitStamp
from bergline.table.reachable import Cleanup, plan_cleanup
from bergline.table.retention import ExpiryPlan, ExpiryWish, plan_expiry


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
        self._cleanup = Cleanup()
        self.result = ExpiryResult()

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Plan what goes, metadata and files; what cannot be read stops it here, before anything is changed."""
        self._plan = plan_expiry(base, self._wish, stamp.now_ms)
        updates: tuple[Update, ...] = tuple(RemoveSnapshotRef(name) for name in self._plan.removed_refs)
        if self._plan.removed_snapshots:
            updates = (*updates, RemoveSnapshots(self._plan.removed_snapshots))
        if not updates:
            self._cleanup = Cleanup()
            return Change()
        after = apply_updates(base, updates, base_location=None, now_ms=stamp.now_ms)
        self._cleanup = plan_cleanup(self._io, base, after)
        return Change(updates, same_table(base))

    def committed(self, metadata: TableMetadata) -> None:
        """Delete the planned files; the swap is certain, and the base was exactly the one planned on."""
        cleanup = self._cleanup
        kinds = list(cleanup.content_files.values())
        failed = self._io.delete(
            [*cleanup.content_files, *cleanup.manifests, *cleanup.manifest_lists, *cleanup.statistics]
        )
        self.result = ExpiryResult(
            removed_snapshots=self._plan.removed_snapshots,
            removed_refs=self._plan.removed_refs,
            deleted_data_files=kinds.count(FileContent.DATA),
            deleted_position_delete_files=kinds.count(FileContent.POSITION_DELETES),
            deleted_equality_delete_files=kinds.count(FileContent.EQUALITY_DELETES),
            deleted_manifests=len(cleanup.manifests),
            deleted_manifest_lists=len(cleanup.manifest_lists),
            deleted_statistics_files=len(cleanup.statistics),
            failed=tuple(failed),
        )

    def abandoned(self) -> None:
        """Nothing was written."""
