"""Commits that clients of the server request: requirements and updates by table name, without a base.

A swap that was lost to another commit is retried here for as long as the requirements hold, so that writers of
different branches, or of properties, do not conflict.
"""

import time
from collections.abc import Sequence
from typing import assert_never

import msgspec

from bergline.catalog.catalog import (
    Catalog,
    Committed,
    Conflicted,
    LoadedTable,
    LoadedView,
    NewTable,
    TableChange,
    Unknown,
    ViewChange,
)
from bergline.catalog.conflicts import describe_holder, describe_latest
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.protocol.messages import failed_requirement
from bergline.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError
from bergline.format.metadata.apply import create_from_updates
from bergline.format.metadata.requirements import AssertCreate, Requirement, check_requirements
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveSnapshots,
    Update,
)
from bergline.format.view.updates import ViewRequirement, ViewUpdate
from bergline.table.commits.retry import LostRace, RetryLimits, RetryLoop, Timing

_MAX_UPDATES = 20_000
_MAX_LAYOUTS = 500
LIMITS = RetryLimits(
    retries=1000, when_unavailable=0, when_unmoved=1000, total_ms=30_000, min_wait_ms=2, max_wait_ms=250
)
"""Clients wait for the response: short waits, and what is unavailable is theirs to retry."""


class RequestedChange(msgspec.Struct, frozen=True):
    """The change that a request asks for on one table."""

    name: TableName
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]

    @property
    def creates(self) -> bool:
        """Whether the table is created by this change, after it was staged."""
        return any(isinstance(r, AssertCreate) for r in self.requirements)


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

    def attempt(_: int) -> tuple[LoadedTable, ...] | LostRace | Unknown:
        bases = tuple(catalog.load_table(change.name) for change in changed)
        if all(map(is_done, changed, bases)) and all(_is_created(catalog, change) for change in created):
            return bases
        for change, base in zip(changed, bases, strict=True):
            check_requested(change, base)
        if not any(change.updates for change in changes):
            return bases
        try:
            outcome = catalog.commit(tuple(map(_with_base, changed, bases)), tuple(map(_new_table, created)))
        except AlreadyExistsError as error:
            if error.kind != "table":
                raise
            raise _not_new(error) from error
        match outcome:
            case Committed(tables):
                return tables
            case Unknown():
                return outcome
            case Conflicted(reason):
                if bases and all(catalog.pointer(base.name) == base.metadata_location for base in bases):
                    latest = "; ".join(describe_latest(base.metadata) for base in bases)
                    raise ConflictError(f"{reason}; {latest}", hints=reason.hints) from reason
                return LostRace(reason, tuple(base.metadata_location for base in bases))
            case _:
                assert_never(outcome)

    return RetryLoop(Timing(), lambda: LIMITS).run(attempt)


def commit_requested_view(
    catalog: Catalog, name: TableName, requirements: tuple[ViewRequirement, ...], updates: tuple[ViewUpdate, ...]
) -> LoadedView:
    """The view after the change."""

    def attempt(_: int) -> LoadedView | LostRace:
        base = catalog.load_view(name)
        try:
            return catalog.commit_view(ViewChange(base, requirements, updates))
        except ConflictError as error:
            if catalog.load_view(name).metadata_location == base.metadata_location:
                raise
            return LostRace(error, base.metadata_location)

    return RetryLoop(Timing(), lambda: LIMITS).run(attempt)


def _create(catalog: PointerCatalog, change: RequestedChange) -> LoadedTable:
    try:
        return catalog.create_table(change.name, _new_table(change).metadata)
    except AlreadyExistsError as error:
        if error.kind != "table":
            raise
        raise _not_new(error) from error


def _new_table(change: RequestedChange) -> NewTable:
    others = [r for r in change.requirements if not isinstance(r, AssertCreate)]
    if others:
        raise InvalidInputError(f"expected no requirement beside assert-create, found {type(others[0]).__name__}")
    return NewTable(change.name, create_from_updates(change.updates, now_ms=time.time_ns() // 1_000_000))


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


def _with_base(change: RequestedChange, base: LoadedTable) -> TableChange:
    return TableChange(base, change.requirements, change.updates)


def is_done(change: RequestedChange, base: LoadedTable) -> bool:
    """Whether the snapshots of a change are in the table: ids never recur, so the same change was sent before."""
    added = [u.snapshot for u in change.updates if isinstance(u, AddSnapshot)]
    present = base.metadata.snapshots_by_id
    return bool(added) and all(_identity(s) == _identity(present.get(s.snapshot_id)) for s in added)


def _identity(snapshot: Snapshot | None) -> tuple[object, ...]:
    if snapshot is None:
        return ()
    return snapshot.timestamp_ms, snapshot.parent_snapshot_id, snapshot.manifest_list, snapshot.manifests


def check_requested(change: RequestedChange, base: LoadedTable) -> None:
    """ConflictError that names a requirement which does not hold, and who came first."""
    for requirement in change.requirements:
        try:
            check_requirements(base.metadata, (requirement,), str(change.name))
        except ConflictError as error:
            why = f"{error}; {describe_holder(base.metadata, requirement)}"
            raise ConflictError(f"{failed_requirement(requirement)}: {why}") from error
