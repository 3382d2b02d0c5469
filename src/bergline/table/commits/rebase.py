"""Rebase a change that was computed on an older state of its table onto the current one.

The manifests that a snapshot adds hold no sequence numbers, so a late snapshot needs a new manifest list and nothing
else. There are two cases. Another commit only took its number: the snapshot is renumbered, and keeps its parent. Its
branch has moved: an append is put on the new head, if its writer allows that.

Nothing is taken on trust: a client that calls an overwrite an append would undo what others committed. So the manifests
are read first, and whatever does not fit is a conflict, which the writer resolves by computing its change again.
"""

import uuid
from collections.abc import Iterable, Sequence
from itertools import takewhile

import msgspec

from bergline.catalog.catalog import LoadedTable, TableChange
from bergline.datafiles.write.write_spec import check_not_encrypted
from bergline.errors import ConflictError
from bergline.format.manifest.avro import render_manifest_list
from bergline.format.manifest.inheritance import assign_numbers, assign_row_ids
from bergline.format.manifest.manifest import ManifestFile
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType
from bergline.format.metadata.requirements import (
    AssertRefRetention,
    AssertRefSnapshotId,
    Requirement,
    check_requirements,
)
from bergline.format.metadata.snapshot import (
    PUBLISHED_STAGED_WAP_ID,
    REBASED_FROM,
    SOURCE_SNAPSHOT_ID,
    STAGED_WAP_ID,
    Snapshot,
    SnapshotOperation,
    totals,
    without_totals,
)
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.metadata.updates import (
    AddSchema,
    AddSnapshot,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
    Update,
    set_ref,
)
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.scan.manifests import keep_manifest_list, load_manifest_list, with_counts
from bergline.table.commits.layout_check import check_layout
from bergline.table.commits.operation import cleaning_up
from bergline.table.commits.proposed_manifests import (
    UNREADABLE,
    ProposedManifest,
    SnapshotFiles,
    UnfitError,
    read_proposed,
    read_proposed_list,
    write_added,
)

# The updates that may come with the snapshot: they mean the same on every base on which the requirements hold. When a
# requirement has failed, nothing but the snapshot, its branch and properties can be carried over.
_RENUMBERED_WITH = (AddSnapshot, SetSnapshotRef, SetProperties, RemoveProperties, AddSchema, SetCurrentSchema)
_REBASED_WITH = (AddSnapshot, SetSnapshotRef, SetProperties)
_CHECKED_BY_ITS_WRITER = (SOURCE_SNAPSHOT_ID, STAGED_WAP_ID, PUBLISHED_STAGED_WAP_ID)
"""Summary entries of snapshots that replay others: their writers checked the old head."""
_MANIFEST_COUNTS = ("manifests-created", "manifests-kept", "manifests-replaced")


class Proposal(msgspec.Struct, frozen=True):
    """A change that may have been computed on an older state of its table."""

    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    can_rebase: bool = False
    """Whether it is an append that means the same on every head of its branch, which only its writer knows."""


class RebasedChange(msgspec.Struct, frozen=True):
    """A change as it can be committed to a base."""

    change: TableChange
    written: tuple[str, ...] = ()
    """The files that were written for it, to discard if the commit certainly did not land."""


def rebase(
    io: FileIO, base: LoadedTable, proposal: Proposal, now_ms: int, files: SnapshotFiles | None = None
) -> RebasedChange:
    """The change as it can be committed to this base; ConflictError if it cannot.

    It stays as it is if its requirements and its number hold. If only its number or its row ids are taken, it is
    renumbered.
    If a requirement fails, it is put on the head of its branch, provided that it `can_rebase`.
    """
    failed = _failed(base, proposal.requirements)
    if failed and not proposal.can_rebase:
        raise failed[0][1]
    reason = failed[0][1] if failed else _taken(base.metadata, proposal.updates)
    if not failed:
        check_layout(files or io, base.metadata, proposal.requirements, proposal.updates)
    if reason is None:
        return RebasedChange(TableChange(base, proposal.requirements, proposal.updates, proposal.can_rebase))
    rebasing = _Rebase(io, base, proposal, now_ms, files or io)
    try:
        return rebasing.on_new_head([r for r, _ in failed]) if failed else rebasing.renumbered()
    except UnfitError as error:
        rebasing.discard()
        raise ConflictError(f"{reason}; the snapshot cannot be put on the table as it is now: {error}") from error
    except UNREADABLE as error:
        rebasing.discard()
        raise ConflictError(f"{reason}; its manifests cannot be read: {error}") from error
    except BaseException:
        rebasing.discard()
        raise


def _failed(base: LoadedTable, requirements: Iterable[Requirement]) -> list[tuple[Requirement, ConflictError]]:
    found: list[tuple[Requirement, ConflictError]] = []
    for requirement in requirements:
        try:
            check_requirements(base.metadata, (requirement,), str(base.name))
        except ConflictError as error:
            found.append((requirement, error))
    return found


def _taken(metadata: TableMetadata, updates: Iterable[Update]) -> ConflictError | None:
    """The conflict of a snapshot whose number or row ids belong to another one, or that has none where they came."""
    version = metadata.format_version
    for update in updates:
        if (
            not isinstance(update, AddSnapshot)
            or version == 1
            or update.snapshot.snapshot_id in metadata.snapshots_by_id
        ):
            continue
        new = update.snapshot
        # spec: the numbers of a table only grow
        # as in Java, one without a parent may have an old number (see `add_snapshot`)
        if new.sequence_number <= metadata.last_sequence_number and new.parent_snapshot_id is not None:
            return ConflictError(
                f"expected a sequence number above {metadata.last_sequence_number}, found {new.sequence_number}: "
                "another commit took it meanwhile"
            )
        if version < ROW_LINEAGE_VERSION:
            continue
        if new.first_row_id is None:
            return ConflictError(
                f"expected a first-row-id, found none in snapshot {new.snapshot_id}: "
                f"the table has format version {version} by now"
            )
        if new.first_row_id < metadata.next_row_id:
            return ConflictError(
                f"expected a first-row-id of {metadata.next_row_id} or more, found {new.first_row_id}: "
                "another commit took those row ids meanwhile"
            )
    return None


class _Rebase:
    """One change on its way to another base, and the files that were written for it."""

    def __init__(self, io: FileIO, base: LoadedTable, proposal: Proposal, now_ms: int, files: SnapshotFiles) -> None:
        self._io = io
        self._files = files
        self._base = base
        self._metadata = base.metadata
        self._proposal = proposal
        self._now_ms = now_ms
        self._written: list[str] = []

    def discard(self) -> None:
        """Remove what was written: the change goes nowhere."""
        if self._written:
            with cleaning_up(self._base.name):
                self._files.delete(self._written)

    def renumbered(self) -> RebasedChange:
        """The snapshot on the parent that it has, with the next number and the next row ids.

        All requirements hold, so any operation may be renumbered: nothing that it depends on has changed.
        """
        snapshot = self._snapshot(_RENUMBERED_WITH)
        self._check_refs_held(snapshot)
        source = snapshot.summary.get(SOURCE_SNAPSHOT_ID)
        if source is not None and not (source.isdecimal() and int(source) in self._metadata.snapshots_by_id):
            raise UnfitError(f"snapshot {source[:20]}, which it replays, is gone")
        listed, own = self._read(snapshot)
        for manifest in own.values():
            manifest.check_numbers(snapshot)
            if self._comes_without_row_ids(snapshot):  # what it rewrote has row ids by now, and would lose them
                manifest.check_append(snapshot)
        self._check_carried(snapshot, [m for m in listed if m.manifest_path not in own])
        first_row_id = snapshot.first_row_id
        manifests = [
            own[m.manifest_path].unnumbered if m.manifest_path in own else _without_new_row_ids(m, first_row_id)
            for m in listed
        ]
        return self._placed(snapshot, self._known_parent(snapshot), manifests, self._proposal.requirements)

    def on_new_head(self, failed: Sequence[Requirement]) -> RebasedChange:
        """The appended files on the head that the branch has now.

        A requirement of the writer does not hold any more, so this must be an append and nothing else, whatever the
        summary calls it: the manifests say.
        """
        snapshot = self._snapshot(_REBASED_WITH)
        branch = self._branch(snapshot, failed)
        check_not_encrypted(self._metadata)
        if snapshot.operation != SnapshotOperation.APPEND or any(k in snapshot.summary for k in _CHECKED_BY_ITS_WRITER):
            raise UnfitError("it does more than append")
        if snapshot.schema_id != self._metadata.current_schema_id:
            raise UnfitError(f"the current schema is {self._metadata.current_schema_id}, its own {snapshot.schema_id}")
        self._check_never_made(snapshot)
        listed, own = self._read(snapshot)
        for manifest in own.values():
            manifest.check_append(snapshot)
        self._check_carried(snapshot, [m for m in listed if m.manifest_path not in own])
        head = self._metadata.head(branch if branch in self._metadata.refs else MAIN)
        current = self._listed(head)
        for known in current:
            if known.manifest_path in own:  # its rows would be there twice
                raise UnfitError(f"{known.manifest_path} is in the table already")
        manifests = self._joined(snapshot, listed, list(own.values()), current)
        counts = {
            "added-data-files": sum(m.holds.added_files for m in own.values()),
            "added-records": sum(m.holds.added_rows for m in own.values()),
            "added-files-size": sum(m.holds.added_bytes for m in own.values()),
        }
        requirements = tuple(
            AssertRefSnapshotId(r.ref, _id(self._metadata.head(r.ref))) if isinstance(r, AssertRefSnapshotId) else r
            for r in self._proposal.requirements
        )
        summary = without_totals(snapshot.summary) | totals(head.summary if head else None, counts)
        summary |= _manifest_counts(snapshot, manifests, current)
        moved = msgspec.structs.replace(snapshot, summary=summary)
        return self._placed(moved, head, manifests, requirements)

    def _comes_without_row_ids(self, snapshot: Snapshot) -> bool:
        """Whether it was worked out before the table had them, when rows were deleted by other files."""
        return snapshot.first_row_id is None and self._metadata.format_version >= ROW_LINEAGE_VERSION

    def _snapshot(self, allowed: tuple[type[Update], ...]) -> Snapshot:
        """The one snapshot that the change adds; nothing else in it may depend on the base."""
        for update in self._proposal.updates:
            if not isinstance(update, allowed):
                raise UnfitError(f"{type(update).__name__} comes with it")
        added = [u.snapshot for u in self._proposal.updates if isinstance(u, AddSnapshot)]
        if len(added) != 1:
            raise UnfitError(f"{len(added)} snapshots come together")
        if self._metadata.format_version == 1:
            raise UnfitError("the table has format version 1")
        if added[0].snapshot_id in self._metadata.snapshots_by_id:
            raise UnfitError(f"the table has a snapshot {added[0].snapshot_id} already")
        return added[0]

    def _branch(self, snapshot: Snapshot, failed: Sequence[Requirement]) -> str:
        """The branch that the snapshot is appended to; only where it is, or begins, may have changed."""
        moves = [u for u in self._proposal.updates if isinstance(u, SetSnapshotRef)]
        if (
            len(moves) != 1
            or moves[0].snapshot_id != snapshot.snapshot_id
            or moves[0].type is not SnapshotRefType.BRANCH
        ):
            raise UnfitError("it is not appended to one branch")
        branch = moves[0].ref_name
        ref = self._metadata.refs.get(branch)
        begins = AssertRefSnapshotId(branch, None) in self._proposal.requirements
        for requirement in failed:
            if not isinstance(requirement, AssertRefSnapshotId) or requirement.ref not in (branch, MAIN):
                raise UnfitError("more than its branch has changed")
            if requirement.ref == branch and ref is None:
                raise UnfitError(f"branch `{branch}` is gone")
            if requirement.ref != branch and not begins:
                raise UnfitError("more than its branch has changed")
        if ref is not None and not ref.is_branch:
            raise UnfitError(f"`{branch}` is a tag")
        if ref is not None and moves[0] != _moved_ref(branch, ref, snapshot.snapshot_id):
            raise UnfitError(f"branch `{branch}` has another retention")
        return branch

    def _check_refs_held(self, snapshot: Snapshot) -> None:
        """UnfitError for a ref that others may have changed.

        A client that requires nothing of a ref relied on its stale number to be refused, which renumbering would undo.
        """
        required = self._proposal.requirements
        placed = {r.ref for r in required if isinstance(r, AssertRefSnapshotId)}
        kept = {r.ref for r in required if isinstance(r, AssertRefRetention)}
        for move in (u for u in self._proposal.updates if isinstance(u, SetSnapshotRef)):
            name, ref = move.ref_name, self._metadata.refs.get(move.ref_name)
            if ref is None:
                continue
            if name not in placed and ref.snapshot_id != snapshot.parent_snapshot_id:
                raise UnfitError(f"it does not say where `{name}` was")
            if name not in kept and move != _moved_ref(name, ref, move.snapshot_id):
                raise UnfitError(f"`{name}` has another retention")

    def _check_never_made(self, snapshot: Snapshot) -> None:
        """UnfitError if a snapshot that came since its base is gone: it may be this one, which was sent before.

        Every snapshot takes the next number, so a gap in the numbers since then is a snapshot that was removed.
        """
        first, last = snapshot.sequence_number, self._metadata.last_sequence_number
        newest = takewhile(lambda s: s.sequence_number >= first, reversed(self._metadata.snapshots))
        if len({s.sequence_number for s in newest}) < last - first + 1:
            raise UnfitError("snapshots that came since were expired, and it may have been among them")

    def _read(self, snapshot: Snapshot) -> tuple[list[ManifestFile], dict[str, ProposedManifest]]:
        """All manifests of the snapshot as its writer listed them, and its own ones with what they hold."""
        listed = read_proposed_list(self._files, self._metadata, snapshot)
        own = [m for m in listed if m.added_snapshot_id == snapshot.snapshot_id]
        return listed, {m.manifest_path: read_proposed(self._files, self._metadata, m, snapshot) for m in own}

    def _check_carried(self, snapshot: Snapshot, carried: Sequence[ManifestFile]) -> None:
        """UnfitError for a manifest that is neither new nor of the parent: nobody has looked at what it holds."""
        parent = self._known_parent(snapshot)
        known = {m.manifest_path for m in self._listed(parent)} if carried else set()
        for manifest in carried:
            if manifest.manifest_path not in known:
                raise UnfitError(f"{manifest.manifest_path} is not of its parent")

    def _listed(self, snapshot: Snapshot | None) -> list[ManifestFile]:
        """The manifests of a snapshot of the table, whose list may still be being written with those of a group."""
        return [] if snapshot is None else load_manifest_list(self._io, snapshot, files=self._files)

    def _known_parent(self, snapshot: Snapshot) -> Snapshot | None:
        if snapshot.parent_snapshot_id is None:
            return None
        parent = self._metadata.snapshots_by_id.get(snapshot.parent_snapshot_id)
        if parent is None:
            raise UnfitError(f"its parent {snapshot.parent_snapshot_id} is gone")
        return parent

    def _joined(
        self,
        snapshot: Snapshot,
        listed: Sequence[ManifestFile],
        own: Sequence[ProposedManifest],
        current: Sequence[ManifestFile],
    ) -> list[ManifestFile]:
        """Its own manifests in front of the head's.

        A writer may have merged older manifests into its own. If the head still has all of those, the merged ones take
        their place. If not, another commit has removed or rewritten files in them, and keeping the merged ones would
        bring these back: then only what they add is kept, and the head's manifests stay as they are.
        """
        merged = [m for m in own if m.holds.existing_files]
        replaced = self._replaced(snapshot, listed) if merged else []
        if not merged or not _stand_for(merged, replaced, current):
            added = [m.unnumbered for m in own if not m.holds.existing_files]
            rest = [self._added_only(snapshot, m) for m in merged if m.holds.added_files]
            return [*added, *rest, *current]
        gone = frozenset(replaced)
        older = [m.unnumbered for m in merged if not m.holds.added_files]
        result = [m.unnumbered for m in own if m.holds.added_files or not m.holds.existing_files]
        for manifest in current:
            if manifest in gone:
                result += older
                older = []
            else:
                result.append(manifest)
        return result

    def _replaced(self, snapshot: Snapshot, listed: Sequence[ManifestFile]) -> list[ManifestFile]:
        """The manifests of its parent that it no longer lists."""
        parent = self._known_parent(snapshot)
        kept = {m.manifest_path for m in listed}
        return [m for m in self._listed(parent) if m.manifest_path not in kept and m.has_live_files]

    def _added_only(self, snapshot: Snapshot, manifest: ProposedManifest) -> ManifestFile:
        location = join(_directory(snapshot), f"{uuid.uuid4()}-m0.avro")
        self._written.append(location)
        return write_added(self._files, self._metadata, manifest, location, snapshot.snapshot_id)

    def _placed(
        self,
        snapshot: Snapshot,
        parent: Snapshot | None,
        manifests: Sequence[ManifestFile],
        requirements: tuple[Requirement, ...],
    ) -> RebasedChange:
        """The change with another manifest list, in which the snapshot's own manifests get its number and row ids.

        The snapshot keeps its id, by which the writer recognizes its commit, and `rebased-from` names the manifest list
        that the writer sent, so that the same request is recognized if it comes again.
        """
        metadata, number = self._metadata, self._metadata.next_sequence_number
        counted = [with_counts(self._io, m) for m in assign_numbers(manifests, snapshot.snapshot_id, number)]
        first_row_id = added_rows = None
        if metadata.format_version >= ROW_LINEAGE_VERSION:
            first_row_id = metadata.next_row_id
            counted, added_rows = assign_row_ids(counted, first_row_id)
        location = join(_directory(snapshot), f"snap-{snapshot.snapshot_id}-0-{uuid.uuid4()}.avro")
        data = render_manifest_list(
            counted,
            snapshot.snapshot_id,
            _id(parent),
            number,
            format_version=metadata.format_version,
            first_row_id=first_row_id,
        )
        self._written.append(location)
        self._files.create(location, data)
        keep_manifest_list(self._io, location, counted)
        placed = msgspec.structs.replace(
            snapshot,
            parent_snapshot_id=_id(parent),
            sequence_number=number,
            timestamp_ms=max(self._now_ms, metadata.last_updated_ms),
            manifest_list=location,
            summary=snapshot.summary | {REBASED_FROM: snapshot.manifest_list or ""},
            first_row_id=first_row_id,
            added_rows=added_rows,
        )
        updates = tuple(AddSnapshot(placed) if isinstance(u, AddSnapshot) else u for u in self._proposal.updates)
        change = TableChange(self._base, requirements, updates, self._proposal.can_rebase)
        return RebasedChange(change, tuple(self._written))


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.snapshot_id


def _directory(snapshot: Snapshot) -> str:
    return (snapshot.manifest_list or "").rpartition("/")[0]


def _moved_ref(name: str, ref: SnapshotRef, snapshot_id: int) -> SetSnapshotRef:
    return set_ref(name, msgspec.structs.replace(ref, snapshot_id=snapshot_id))


def _without_new_row_ids(manifest: ManifestFile, first_row_id: int | None) -> ManifestFile:
    """A manifest from before row ids, which the snapshot was to give its first ones."""
    if first_row_id is None or manifest.first_row_id is None or manifest.first_row_id < first_row_id:
        return manifest
    return msgspec.structs.replace(manifest, first_row_id=None)


def _stand_for(
    merged: Sequence[ProposedManifest], replaced: Sequence[ManifestFile], current: Sequence[ManifestFile]
) -> bool:
    """Whether merged manifests may take the place of those that they replaced: all are there, with as many rows."""
    files = sum((m.added_files_count or 0) + (m.existing_files_count or 0) for m in replaced)
    rows = sum((m.added_rows_count or 0) + (m.existing_rows_count or 0) for m in replaced)
    as_many = files == sum(m.holds.existing_files for m in merged) and rows == sum(
        m.holds.existing_rows for m in merged
    )
    # equal in all, for another commit may have given row ids to rows that have none in the merged ones
    return as_many and frozenset(replaced) <= frozenset(current)


def _manifest_counts(
    snapshot: Snapshot, manifests: Sequence[ManifestFile], current: Sequence[ManifestFile]
) -> dict[str, str]:
    """How many manifests are new, kept and replaced, if the writer said so."""
    if not any(name in snapshot.summary for name in _MANIFEST_COUNTS):
        return {}
    created = sum(m.added_snapshot_id == snapshot.snapshot_id for m in manifests)
    kept = len(manifests) - created
    counts = created, kept, len(current) - kept
    return {name: str(count) for name, count in zip(_MANIFEST_COUNTS, counts, strict=True) if name in snapshot.summary}
