"""Expiry: removes snapshots that no ref protects, then deletes the files that only they needed."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from bergline.arguments import counted
from bergline.catalog.attempts import looks
from bergline.catalog.table_locations import OwnFiles
from bergline.errors import BerglineError, FormatError, NotFoundError, UnsupportedError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.requirements import Requirement, same_table
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Update,
)
from bergline.io.fileio import FileIO
from bergline.scan.manifest_cache import FreshReads
from bergline.sizes import render_size
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.expiry.deletion import DEFAULT_THREADS, Progress, delete_files
from bergline.table.expiry.reachable import FileKind, StoredFile, still_unneeded, unneeded_files
from bergline.table.expiry.retention import CleanupLevel, ExpiryDecision, ExpiryRequest, decide_expiry
from bergline.table.expiry.unused_layout import layout_requirements, remove_unused_layout

_FILES_AT_ONCE = 2000  # files are deleted before the table is loaded again
_KINDS = (
    "data_files",
    "position_delete_files",
    "equality_delete_files",
    "manifests",
    "manifest_lists",
    "statistics_files",
)


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
    deleted_bytes: int = 0
    """By the sizes in metadata, which has none for manifest lists."""
    foreign_files: int = 0
    """Files outside of the table's directories that it no longer needs: they stay."""

    @property
    def deleted_files(self) -> int:
        """The files of all kinds."""
        return sum(getattr(self, f"deleted_{kind}") for kind in _KINDS)

    def __str__(self) -> str:
        """A short summary; of a dry run, what would be removed."""
        removed = [counted(len(self.removed_snapshots), "snapshot"), *(f"ref `{name}`" for name in self.removed_refs)]
        removed += [f"partition spec {i}" for i in self.removed_specs] + [f"schema {i}" for i in self.removed_schemas]
        each = [(kind, getattr(self, f"deleted_{kind}")) for kind in _KINDS]
        kinds = ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in each if number)
        files = f"{counted(self.deleted_files, 'file')} of {render_size(self.deleted_bytes)}"
        left = f"; {counted(len(self.failed), 'file')} could not be deleted" if self.failed else ""
        left += f"; {counted(self.foreign_files, 'file')} outside of its directories left" if self.foreign_files else ""
        return f"removed: {', '.join(removed)}; deleted: {files}{f' ({kinds})' if kinds else ''}{left}"


class Cleanup(msgspec.Struct, frozen=True):
    """What else to remove with the snapshots, and how."""

    level: CleanupLevel = CleanupLevel.ALL
    layout: bool = False
    """Whether specs and schemas that nothing uses are removed."""
    threads: int = DEFAULT_THREADS
    progress: Progress | None = None


class PlannedExpiry(msgspec.Struct, frozen=True):
    """Everything that expiry would do to one state of a table."""

    decision: ExpiryDecision
    updates: tuple[Update, ...]
    after: TableMetadata
    files: tuple[StoredFile, ...]
    """Files that nothing needs afterwards, which are deleted."""
    foreign: tuple[StoredFile, ...] = ()
    """Files that it no longer needs either, but outside of its directories: they may belong to others, and stay."""

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
        """The requirements beyond the base being the same table."""
        return layout_requirements(self.after) if self.removed_specs or self.removed_schemas else ()


def work_out_expiry(
    io: FileIO, base: TableMetadata, request: ExpiryRequest, cleaning: Cleanup, now_ms: int, *, fresh: FreshReads
) -> PlannedExpiry:
    """Decide, and find out which files no snapshot needs then; unreadable files raise.

    Manifests that are not `fresh` are read from storage.
    """
    decision = decide_expiry(base, request, now_ms)
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
    own = OwnFiles(base)
    foreign = tuple(f for f in files if not own.has(f.location))
    return PlannedExpiry(decision, updates, after, tuple(f for f in files if own.has(f.location)), foreign)


class Expire:
    """Decides anew on every attempt what to remove, so that a ref created in the meantime protects its snapshot."""

    needs_validation = False

    def __init__(
        self,
        io: FileIO,
        request: ExpiryRequest,
        cleaning: Cleanup,
        newest: Callable[[], TableMetadata],
        *,
        dry_run: bool = False,
    ) -> None:
        """`newest` loads the current table, so that files that somebody adds again before they are deleted are kept."""
        self._io = io
        self._newest = newest
        self._request = request
        self._cleaning = cleaning
        self._dry_run = dry_run
        self._fresh = FreshReads()
        self._planned: PlannedExpiry | None = None
        self._attempt = 0
        self.result = ExpiryResult()
        """What was removed; before the commit is certain, and in a dry run, what is planned."""
        self.interruption: Exception | None = None
        """The exception from `progress` that ended the deletion."""

    @property
    def planned(self) -> PlannedExpiry | None:
        """What the last attempt planned."""
        return self._planned

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Plan what to remove, in metadata and files; unreadable files raise here, before anything is changed."""
        planned = work_out_expiry(self._io, base, self._request, self._cleaning, stamp.now_ms, fresh=self._fresh)
        self._planned, self._attempt = planned, stamp.attempt
        self.result = _result(planned, planned.files)
        if self._dry_run or not planned.updates:
            return Change()
        return Change(planned.updates, (*same_table(base), *planned.requirements))

    def settled(self, landed: Landed | None) -> None:
        """Delete the planned files that nothing references again; the swap is certain."""
        planned = self._planned
        if landed is None or planned is None or self._dry_run:
            return
        # an attempt that was taken for lost landed, and its plan is gone: its files stay
        if landed.attempt != self._attempt:
            self.result = _result(planned, ())
            return
        if not planned.files:
            return
        deleted: list[StoredFile] = []
        failed: list[str] = []
        rest: Sequence[StoredFile] = planned.files
        try:
            # later operations in the same transaction may have added files back
            rest, checked = self._unneeded(rest, planned.after, landed.metadata)
            while rest:
                rest, checked = self._unneeded(rest, checked, self._newest())
                batch = rest[:_FILES_AT_ONCE]
                refused = set(self._delete(batch, len(deleted) + len(failed), len(rest) - len(batch)))
                failed += sorted(refused)
                deleted += (f for f in batch if f.location not in refused)
                rest = rest[_FILES_AT_ONCE:]
        except BerglineError:
            failed += (f.location for f in rest)
            raise
        finally:
            self.result = _result(planned, deleted, failed)

    def _unneeded(
        self, files: Sequence[StoredFile], checked: TableMetadata, now: TableMetadata
    ) -> tuple[Sequence[StoredFile], TableMetadata]:
        """The files that no snapshot added since a checked state references; and the newly checked state."""
        contents = self._cleaning.level is CleanupLevel.ALL
        tries = looks("the table kept changing while its files were listed")
        while True:
            next(tries)
            if now == checked:
                return files, checked
            try:
                return still_unneeded(self._io, files, checked, now, contents=contents, fresh=self._fresh), now
            except NotFoundError:
                later = self._newest()
                if later == now:
                    raise
                now = later  # the table moved on, and another expiry was allowed to delete what had to be read

    def _delete(self, files: Sequence[StoredFile], before: int, after: int) -> list[str]:
        report = self._cleaning.progress

        def progress(done: int, of: int) -> None:
            try:
                if report is not None:
                    report(before + done, before + of + after)
            except Exception as error:
                self.interruption = error
                raise

        return delete_files(self._io, [f.location for f in files], threads=self._cleaning.threads, progress=progress)


def _result(planned: PlannedExpiry, deleted: Iterable[StoredFile], failed: Iterable[str] = ()) -> ExpiryResult:
    files = tuple(deleted)
    counts = Counter(f.kind for f in files)
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
        failed=tuple(failed),
        deleted_bytes=sum(f.size or 0 for f in files),
        foreign_files=len(planned.foreign),
    )


@contextlib.contextmanager
def _readable(level: CleanupLevel) -> Iterator[None]:
    """Add to errors of reading that expiry stopped because of them."""
    said = "cannot expire snapshots, nothing was changed or deleted"
    hints = [] if level is CleanupLevel.NONE else ['`level="none"` reads no manifests, and deletes no files']
    try:
        yield
    except NotFoundError as error:
        raise NotFoundError(f"{said}: {error}", kind=error.kind, name=error.name, hints=hints) from error
    except (FormatError, UnsupportedError) as error:
        raise type(error)(f"{said}: {error}", hints=hints) from error
