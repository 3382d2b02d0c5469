"""Expiry: forget snapshots that no ref protects, then delete the files that only they needed."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from bergline.errors import FormatError, NotFoundError, UnsupportedError
from bergline.format.apply import apply_updates
from bergline.format.metadata import TableMetadata
from bergline.format.requirements import Requirement, same_table
from bergline.format.updates import RemovePartitionSpecs, RemoveSchemas, RemoveSnapshotRef, RemoveSnapshots, Update
from bergline.io.fileio import FileIO
from bergline.scan.manifest_cache import FreshReads
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.expiry.cleanup_level import CleanupLevel
from bergline.table.expiry.deletion import DEFAULT_THREADS, Progress, delete_files
from bergline.table.expiry.reachable import still_unneeded, unneeded_files
from bergline.table.expiry.retention import ExpiryDecision, ExpiryWish, decide_expiry
from bergline.table.expiry.stored_file import FileKind, StoredFile
from bergline.table.expiry.unused_layout import layout_requirements, remove_unused_layout


class ExpiryResult(msgspec.Struct, frozen=True):
    """What was removed and deleted; `failed` files could not be deleted and are no longer needed by anything."""

    removed_snapshots: tuple[int, ...] = ()
    removed_refs: tuple[str, ...] = ()
    removed_specs: tuple[int, ...] = ()
    removed_schemas: tuple[int, ...] = ()
    deleted_data_files: int = 0
    deleted_position_delete_files: int = 0
    deleted_equality_delete_files: int = 0
    deleted_manifests: int = 0
    deleted_manifest_lists: int = 0
    deleted_statistics_files: int = 0
    failed: tuple[str, ...] = ()


class Cleaning(msgspec.Struct, frozen=True):
    """What else goes with the snapshots, and how."""

    level: CleanupLevel = CleanupLevel.ALL
    layout: bool = False
    """Whether specs and schemas that nothing uses are removed."""
    threads: int = DEFAULT_THREADS
    progress: Progress | None = None


class PlannedExpiry(msgspec.Struct, frozen=True):
    """All that expiry would do to one state of a table."""

    decision: ExpiryDecision
    updates: tuple[Update, ...]
    after: TableMetadata
    files: tuple[StoredFile, ...]
    """What nothing needs afterwards, and is deleted."""

    @property
    def removed_specs(self) -> tuple[int, ...]:
        """Partition specs that nothing uses."""
        return tuple(i for u in self.updates if isinstance(u, RemovePartitionSpecs) for i in u.spec_ids)

    @property
    def removed_schemas(self) -> tuple[int, ...]:
        """Schemas that nothing uses."""
        return tuple(i for u in self.updates if isinstance(u, RemoveSchemas) for i in u.schema_ids)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What must hold for it beside the base being the same table."""
        return layout_requirements(self.after) if self.removed_specs or self.removed_schemas else ()


def work_out_expiry(
    io: FileIO, base: TableMetadata, wish: ExpiryWish, cleaning: Cleaning, now_ms: int, *, fresh: FreshReads
) -> PlannedExpiry:
    """Decide, and find out which files then have no snapshot left; what cannot be read stops it.

    Manifests that are not `fresh` are read from storage.
    """
    decision = decide_expiry(base, wish, now_ms)
    updates: tuple[Update, ...] = tuple(RemoveSnapshotRef(name) for name in decision.removed_refs)
    if decision.removed_snapshots:
        updates = (*updates, RemoveSnapshots(decision.removed_snapshots))
    after = apply_updates(base, updates, base_location=None, now_ms=now_ms) if updates else base
    files: list[StoredFile] = []
    with _readable(cleaning.level):
        if cleaning.level is not CleanupLevel.NONE:
            contents = cleaning.level is CleanupLevel.ALL
            files = unneeded_files(io, base, decision.removed_snapshots, contents=contents, fresh=fresh)
        if cleaning.layout and (more := remove_unused_layout(io, after, fresh)):
            updates = (*updates, *more)
            after = apply_updates(base, updates, base_location=None, now_ms=now_ms)
    return PlannedExpiry(decision, updates, after, tuple(files))


class Expire:
    """Works out from scratch on every attempt what may go: a ref made meanwhile protects its snapshot."""

    conflicts_in_meaning = False

    def __init__(self, io: FileIO, wish: ExpiryWish, cleaning: Cleaning, *, dry_run: bool = False) -> None:
        self._io = io
        self._wish = wish
        self._cleaning = cleaning
        self._dry_run = dry_run
        self._fresh = FreshReads()
        self._planned: PlannedExpiry | None = None
        self.result = ExpiryResult()
        """What went; before the commit is certain, and in a dry run, what is planned to go."""

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Plan what goes, metadata and files; what cannot be read stops it here, before anything is changed."""
        planned = work_out_expiry(self._io, base, self._wish, self._cleaning, stamp.now_ms, fresh=self._fresh)
        self._planned = planned
        self.result = _result(planned, planned.files)
        if self._dry_run or not planned.updates:
            return Change()
        return Change(planned.updates, (*same_table(base), *planned.requirements))

    def committed(self, metadata: TableMetadata) -> None:
        """Delete the planned files; the swap is certain, and the base was exactly the one planned on."""
        planned, cleaning = self._planned, self._cleaning
        if planned is None or self._dry_run or not planned.files:
            return
        self.result = _result(planned, ())
        # operations that followed in the same transaction may have brought files back
        contents = cleaning.level is CleanupLevel.ALL
        files = still_unneeded(self._io, planned.files, planned.after, metadata, contents=contents, fresh=self._fresh)
        locations = [f.location for f in files]
        failed = set(delete_files(self._io, locations, threads=cleaning.threads, progress=cleaning.progress))
        self.result = _result(planned, [f for f in files if f.location not in failed], tuple(sorted(failed)))

    def abandoned(self) -> None:
        """Nothing was written."""


def _result(planned: PlannedExpiry, deleted: Iterable[StoredFile], failed: tuple[str, ...] = ()) -> ExpiryResult:
    counts = Counter(f.kind for f in deleted)
    return ExpiryResult(
        removed_snapshots=planned.decision.removed_snapshots,
        removed_refs=planned.decision.removed_refs,
        removed_specs=planned.removed_specs,
        removed_schemas=planned.removed_schemas,
        deleted_data_files=counts[FileKind.DATA],
        deleted_position_delete_files=counts[FileKind.POSITION_DELETES],
        deleted_equality_delete_files=counts[FileKind.EQUALITY_DELETES],
        deleted_manifests=counts[FileKind.MANIFEST],
        deleted_manifest_lists=counts[FileKind.MANIFEST_LIST],
        deleted_statistics_files=counts[FileKind.STATISTICS],
        failed=failed,
    )


@contextlib.contextmanager
def _readable(level: CleanupLevel) -> Iterator[None]:
    """What cannot be read stops expiry, and the error says so."""
    said = "cannot expire snapshots, nothing was changed or deleted"
    hints = [] if level is CleanupLevel.NONE else ['`level="none"` reads no manifests, and deletes no files']
    try:
        yield
    except NotFoundError as error:
        raise NotFoundError(f"{said}: {error}", kind=error.kind, name=error.name, hints=hints) from error
    except (FormatError, UnsupportedError) as error:
        raise type(error)(f"{said}: {error}", hints=hints) from error
