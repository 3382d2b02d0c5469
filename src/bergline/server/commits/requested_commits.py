"""Commits that clients of the server request: requirements and updates by table name, without a base.

A swap that was lost to another commit is retried here for as long as the requirements hold, so that writers of
different branches, or of properties, do not conflict; snapshots get their numbers here if others took them.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import assert_never

import msgspec

from bergline.catalog.at_ref.catalog_at_ref import check_still_joins
from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.at_ref.landing import LandingChange, check_writable, created_at, landing, published
from bergline.catalog.catalog import (
    Catalog,
    Committed,
    Conflicted,
    LoadedTable,
    LoadedView,
    NewTable,
    Outcome,
    Unknown,
    ViewChange,
)
from bergline.catalog.conflicts import describe_holder, describe_latest
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.protocol.messages import failed_requirement
from bergline.catalog.turns import TurnTaken
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
)
from bergline.format.metadata.apply import create_from_updates
from bergline.format.metadata.requirements import AssertCreate, AssertRefRetention, Requirement, check_requirements
from bergline.format.metadata.snapshot import REBASED_FROM, Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
    Update,
)
from bergline.format.view.updates import ViewRequirement, ViewUpdate
from bergline.table.commits.operation import cleaning_up
from bergline.table.commits.proposed_manifests import SnapshotFiles
from bergline.table.commits.rebase import Proposal, RebasedChange, rebase
from bergline.table.commits.retry import RetryLimits, RetryLoop, Timing

_MAX_UPDATES = 20_000
_MAX_LAYOUTS = 500
_RETENTION = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
LIMITS = RetryLimits(
    retries=1000, when_unavailable=0, when_unmoved=1000, total_ms=30_000, min_wait_ms=2, max_wait_ms=250
)
"""Clients wait for the response: short waits, and what is unavailable is theirs to retry."""


class LandingAt(msgspec.Struct, frozen=True):
    """The ref of the lake at which a change was worked out."""

    ref: LakeRef
    check_joins: Callable[[TableName], None]
    """Raises for a table that may not join the branch."""

    def check_new(self, table: TableName) -> None:
        """Refuse a new table where nothing can be written, or that may not join the branch."""
        check_writable(self.ref, table)
        self.check_joins(table)


class RequestedChange(msgspec.Struct, frozen=True):
    """The change that a request asks for on one table."""

    name: TableName
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    can_rebase: bool = False
    """Whether the client says that it is an append which means the same on every head."""

    at: LandingAt | None = None

    def landing(self, base: LoadedTable) -> "RequestedChange":
        """What it means for the table itself."""
        if self.at is None:
            return self
        asked = LandingChange(self.requirements, self.updates)
        landed = landing(base.metadata, self.at.ref, self.name, asked, self.at.check_joins)
        return msgspec.structs.replace(self, requirements=landed.requirements, updates=landed.updates, at=None)

    def proposal(self, base: LoadedTable) -> Proposal:
        """The change as it is put on a base."""
        return Proposal(self.requirements, _keeping_retention(base.metadata, self), self.can_rebase)

    @property
    def creates(self) -> bool:
        """Whether the table is created by this change, after it was staged."""
        return any(isinstance(r, AssertCreate) for r in self.requirements)


def _keeping_retention(metadata: TableMetadata, change: RequestedChange) -> tuple[Update, ...]:
    """The updates; a branch that moves to a new snapshot keeps the retention that it has.

    The one that comes with the snapshot is what the client knew, or, of PyIceberg, none; only another one after it is
    what the client wants. Clients that require a retention know it.
    """
    added = {u.snapshot.snapshot_id for u in change.updates if isinstance(u, AddSnapshot)}
    kept = {name: ref for name, ref in metadata.refs.items() if ref.is_branch}
    for requirement in change.requirements:
        if isinstance(requirement, AssertRefRetention):
            kept.pop(requirement.ref, None)
    known: dict[str, SetSnapshotRef] = {}
    updates: list[Update] = []
    for update in change.updates:
        match update:
            case RemoveSnapshotRef(ref_name=name):
                kept.pop(name, None)
            case SetSnapshotRef(ref_name=name) if name in kept and update.snapshot_id in added:
                first = known.setdefault(name, update)
                if update == msgspec.structs.replace(first, snapshot_id=update.snapshot_id):
                    of_ref = dict(zip(_RETENTION, kept[name].retention, strict=True))
                    updates.append(msgspec.structs.replace(update, **of_ref))
                    continue
        updates.append(update)
    return tuple(updates)


def check_update_count(updates: Sequence[Update]) -> None:
    """Refuse more updates than one commit may have, so that none keeps the others waiting."""
    counted = [u for u in updates if not isinstance(u, RemoveSnapshots)]
    layouts = sum(isinstance(u, AddSchema | AddPartitionSpec | AddSortOrder) for u in counted)
    for number, most, what in ((len(counted), _MAX_UPDATES, "updates"), (layouts, _MAX_LAYOUTS, "new layouts")):
        if number > most:
            raise InvalidInputError(f"expected up to {most} {what} of a table in one commit, found {number}")


def commit_requested(catalog: PointerCatalog, changes: Sequence[RequestedChange]) -> tuple[LoadedTable, ...]:
    """Commit the changes, all or none; the tables after them. ConflictError says what was committed first.

    CommitUnknownError if the outcome is not known.
    """
    if not changes:
        raise InvalidInputError("expected changes to tables, found none")
    created = [change for change in changes if change.creates]
    if created and len(changes) == 1:
        return (_create(catalog, changes[0]),)
    changed = [change for change in changes if not change.creates]

    def attempt(_: int) -> tuple[LoadedTable, ...] | Conflicted | Unknown:
        bases = tuple(catalog.load_table(change.name) for change in changed)
        if all(map(is_done, changed, bases)) and all(_is_created(catalog, change) for change in created):
            return bases
        placed = _place(catalog, changed, bases)
        if not any(change.updates for change in changes):
            return bases
        outcome = _commit_placed(catalog, placed, created)
        match outcome:
            case Committed(tables):
                return tables
            case Unknown():
                return outcome
            case Conflicted(reason):
                if bases and all(catalog.pointer(base.name) == base.metadata_location for base in bases):
                    latest = "; ".join(describe_latest(base.metadata) for base in bases)
                    raise ConflictError(f"{reason}; {latest}", hints=reason.hints) from reason
                return Conflicted(reason, tuple(base.metadata_location for base in bases))
            case _:
                assert_never(outcome)

    return RetryLoop(Timing(), lambda: LIMITS).run(attempt)


def commit_requested_view(
    catalog: Catalog, name: TableName, requirements: tuple[ViewRequirement, ...], updates: tuple[ViewUpdate, ...]
) -> LoadedView:
    """The view after the change."""

    def attempt(_: int) -> LoadedView | Conflicted:
        base = catalog.load_view(name)
        try:
            return catalog.commit_view(ViewChange(base, requirements, updates))
        except ConflictError as error:
            if catalog.load_view(name).metadata_location == base.metadata_location:
                raise
            return Conflicted(error, (base.metadata_location,))

    return RetryLoop(Timing(), lambda: LIMITS).run(attempt)


def _place(
    catalog: PointerCatalog, changes: Sequence[RequestedChange], bases: Sequence[LoadedTable]
) -> tuple[RebasedChange, ...]:
    """The changes on their bases; ConflictError for one that cannot be, and then no file is left of the others."""
    placed: list[RebasedChange] = []
    try:
        for change, base in zip(changes, bases, strict=True):
            placed.append(place_requested(catalog, change, base))
    except BaseException:
        discard(catalog.io, placed)
        raise
    return tuple(placed)


def place_requested(
    catalog: PointerCatalog, change: RequestedChange, base: LoadedTable, files: SnapshotFiles | None = None
) -> RebasedChange:
    """A change on a base; ConflictError, in words that clients know, if it cannot be."""
    change = change.landing(base)
    try:
        return rebase(catalog.io, base, change.proposal(base), time.time_ns() // 1_000_000, files)
    except ConflictError as error:
        _check_requirements(change, base, error)
        raise ConflictError(f"{error}; {describe_latest(base.metadata)}", hints=error.hints) from error


def _commit_placed(
    catalog: PointerCatalog, placed: Sequence[RebasedChange], created: Sequence[RequestedChange]
) -> Outcome:
    """Commit; the files that were written for the changes go if they certainly did not get in."""
    try:
        outcome = catalog.commit(tuple(p.change for p in placed), tuple(map(_new_table, created)))
    except CommitUnknownError:
        raise
    except (BerglineError, TurnTaken) as error:
        discard(catalog.io, placed)
        if isinstance(error, AlreadyExistsError) and error.kind == "table":
            raise _not_new(error) from error
        raise
    if isinstance(outcome, Conflicted):
        discard(catalog.io, placed)
    return outcome


def discard(files: SnapshotFiles, placed: Iterable[RebasedChange]) -> None:
    """Remove the files that were written for changes which certainly did not get in."""
    for one in placed:
        if one.written:
            with cleaning_up(one.change.base.name):
                files.delete(one.written)


def _create(catalog: PointerCatalog, change: RequestedChange) -> LoadedTable:
    try:
        made = catalog.create_table(change.name, _new_table(change).metadata)
    except AlreadyExistsError as error:
        if error.kind != "table":
            raise
        raise _not_new(error) from error
    if change.at is not None:
        check_still_joins(catalog, made, change.at.check_joins)
    return made


def _new_table(change: RequestedChange) -> NewTable:
    others = [r for r in change.requirements if not isinstance(r, AssertCreate)]
    if others:
        raise InvalidInputError(f"expected no requirement beside assert-create, found {type(others[0]).__name__}")
    metadata = create_from_updates(change.updates, now_ms=time.time_ns() // 1_000_000)
    if change.at is not None:
        change.at.check_new(change.name)
        metadata = created_at(metadata, change.at.ref)
    return NewTable(change.name, published(metadata, metadata))


def _is_created(catalog: PointerCatalog, change: RequestedChange) -> bool:
    """Whether the table that is to be created exists already, by its uuid."""
    requested = {u.uuid.lower() for u in change.updates if isinstance(u, AssignUuid)}
    try:
        return (catalog.load_table(change.name).metadata.table_uuid or "").lower() in requested
    except NotFoundError:
        return False


def _not_new(error: AlreadyExistsError) -> AlreadyExistsError:
    """The error for a table to be created that exists already."""
    message = f"{failed_requirement(AssertCreate())}: {error}"
    return AlreadyExistsError(message, kind="requirement", name=error.name)


def is_done(change: RequestedChange, base: LoadedTable) -> bool:
    """Whether the snapshots of a change are in the table: ids never recur, so the same change was sent before."""
    added = [u.snapshot for u in change.updates if isinstance(u, AddSnapshot)]
    present = base.metadata.snapshots_by_id
    return bool(added) and all(_is_same(s, present.get(s.snapshot_id)) for s in added)


def _is_same(requested: Snapshot, present: Snapshot | None) -> bool:
    """Whether a snapshot is the one that was requested, or came of it: then it names the manifest list of that one."""
    if _identity(requested) == _identity(present):
        return True
    came_from = None if present is None else present.summary.get(REBASED_FROM)
    return came_from is not None and came_from == requested.manifest_list


def _identity(snapshot: Snapshot | None) -> tuple[object, ...]:
    if snapshot is None:
        return ()
    return snapshot.timestamp_ms, snapshot.parent_snapshot_id, snapshot.manifest_list, snapshot.manifests


def _check_requirements(change: RequestedChange, base: LoadedTable, reason: ConflictError) -> None:
    """The conflict of the first requirement that does not hold, with what became of the change."""
    for requirement in change.requirements:
        try:
            check_requirements(base.metadata, (requirement,), str(change.name))
        except ConflictError as error:
            why = f"{reason}; {describe_holder(base.metadata, requirement)}"
            raise ConflictError(f"{failed_requirement(requirement)}: {why}") from error
