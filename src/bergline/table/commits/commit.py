"""Commits of operations to one table or to several: load the bases, work out the changes, swap; after a conflict again.

An attempt ends in a value, Committed, Conflicted or Unknown; the loop around attempts is in `retry.py`.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, assert_never

import msgspec

from bergline.catalog.catalog import (
    Catalog,
    Committed,
    Conflicted,
    LoadedTable,
    Outcome,
    TableChange,
    Unknown,
)
from bergline.catalog.identifiers import TableName
from bergline.errors import (
    BerglineError,
    CommitUnknownError,
    ConflictError,
    NotFoundError,
    TablesRefusedError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.requirements import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    Requirement,
)
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot
from bergline.table.commits.operation import CommitStamp, Landed, Operation, cleaning_up
from bergline.table.commits.retry import LostRace, RetryLimits, RetryLoop, Timing, retry_limits, unknown_outcome
from bergline.table.commits.turn import LOSSES_BEFORE_A_TURN, LOSSES_OF_APPENDS, CommitTurn

WATCHERS: list[Callable[[LoadedTable], None]] = []
"""Told of each table that a commit of this process has changed, once that is certain; they raise nothing."""


class TableWork(msgspec.Struct, frozen=True):
    """An operation on one table; the uuid, or else the pointer, identifies the table of that name.

    Without a pointer it is the one that has the name when the commit begins.
    """

    name: TableName
    table_uuid: str | None
    metadata_location: str | None
    operation: Operation


def check_table_count(catalog: Catalog, count: int) -> None:
    """UnsupportedError where the catalog cannot move this many pointers in one step."""
    if count > 1 and not catalog.atomic_tables:
        raise UnsupportedError(
            f"expected changes to one table, found {count}: this catalog moves one pointer at a time"
        )


def load_same_table(catalog: Catalog, name: TableName, table_uuid: str | None, metadata_location: str) -> LoadedTable:
    """The table now; ConflictError if another one has its name.

    One without uuid is the same if it still has the metadata file that was loaded, or came from it.
    """
    base = catalog.load_table(name)
    if table_uuid is None:
        _check_came_from(base, metadata_location)
    if table_uuid is not None and base.metadata.table_uuid != table_uuid:
        raise ConflictError(
            f"expected table `{name}` with uuid {table_uuid}, found {base.metadata.table_uuid}: "
            "it was dropped and re-created",
            hints=["load the table again"],
        )
    return base


def _check_came_from(now: LoadedTable, metadata_location: str) -> None:
    if metadata_location not in {now.metadata_location, *(e.metadata_file for e in now.metadata.metadata_log)}:
        raise ConflictError(
            f"expected table `{now.name}` at {metadata_location} or after it, found {now.metadata_location}, "
            "which does not name it: the table has no uuid, and may have been dropped and re-created",
            hints=["load the table again"],
        )


def commit(
    catalog: Catalog, work: Sequence[TableWork], timing: Timing | None = None, *, refusal: str | None = None
) -> tuple[LoadedTable, ...]:
    """Bring the operations in, all or none, retrying as the tables allow, and return the tables after them.

    Raises ConflictError when the retries are used up, CommitUnknownError when the outcome cannot be found out (nothing
    was deleted), and what the operations or the catalog raise; then nothing was committed and what was written is gone,
    except where an attempt was sent and the tables cannot be looked at any more.
    With a refusal, what the operations raise is one TablesRefusedError that begins with it.
    """
    attempts = _Attempts(catalog, work, timing or Timing(), refusal)
    with _telling_failure(work, lambda: attempts.may_delete):
        check_table_count(catalog, len(work))
        landed = attempts.until_settled()
    _tell_success(work, landed)
    for table in landed.tables:
        for watch in WATCHERS:
            watch(table)
    return landed.tables


def create(catalog: Catalog, work: TableWork, metadata: TableMetadata, timing: Timing | None = None) -> LoadedTable:
    """Create a table with metadata to which the operation has contributed already.

    Raises AlreadyExistsError if the name was taken meanwhile, CommitUnknownError as `commit` does; what was written is
    gone except where the outcome is unknown.
    """
    loop = RetryLoop(timing or Timing(), lambda: retry_limits([metadata], needs_validation=False))
    with _telling_failure((work,)):
        created = loop.run(lambda _: catalog.create_table(work.name, metadata))
    _tell_success((work,), _LandedAttempt((1,), (created,)))
    return created


class _LandedAttempt(msgspec.Struct, frozen=True):
    """The attempt that landed, or those of which one did, and all tables of the work after it."""

    numbers: tuple[int, ...]
    tables: tuple[LoadedTable, ...]


def _tell_success(work: Sequence[TableWork], landed: _LandedAttempt) -> None:
    """Tell the operations which attempt landed; where that cannot be told, all that was written stays."""
    if len(landed.numbers) != 1:
        return
    for one, table in zip(work, landed.tables, strict=True):
        with cleaning_up(one.name):
            one.operation.settled(Landed(landed.numbers[0], table.metadata))


@contextlib.contextmanager
def _telling_failure(work: Sequence[TableWork], may_delete: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """An error that is sure of its outcome means that nothing was committed: what was written may go.

    After anything else that ends a commit, an interrupt or a fault of ours, everything stays.
    """
    try:
        yield
    except CommitUnknownError:
        raise
    except BerglineError:
        for one in work if may_delete() else ():
            with cleaning_up(one.name):
                one.operation.settled(None)
        raise


def _depends_on(change: TableChange) -> tuple[Requirement, ...]:
    """What another commit can make wrong about a change.

    Not that files fit the columns and partitions, which every attempt looks at anew, nor where a new branch begins.
    """
    required = [r for r in change.requirements if not isinstance(r, AssertCurrentSchemaId | AssertDefaultSpecId)]
    refs = [r for r in required if isinstance(r, AssertRefSnapshotId)]
    starts_branch = any(r.snapshot_id is None and r.ref != MAIN for r in refs)
    return tuple(r for r in required if not (starts_branch and isinstance(r, AssertRefSnapshotId) and r.ref == MAIN))


class _MovedOnError(Exception):
    """An attempt was computed on a base that is no longer current."""

    def __init__(self, reason: ConflictError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _LandedBeforeError(Exception):
    """An attempt that the catalog called lost is in the base of this one; it may be any of these."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


class _Attempts:
    """The attempts at one commit, and what they have cost so far."""

    def __init__(self, catalog: Catalog, work: Sequence[TableWork], timing: Timing, refusal: str | None) -> None:
        self._catalog = catalog
        self._work = {one.name: one for one in work}
        self._timing = timing
        self._refusal = refusal
        self._loop = RetryLoop(timing, self._limits)
        self._turn = CommitTurn(catalog, tuple(self._work), timing.clock_ms)
        self._can_rebase = False
        self._bases: dict[TableName, LoadedTable] = {}
        self._identities = {
            one.name: (one.table_uuid, one.metadata_location) for one in work if one.metadata_location is not None
        }
        self._depended_on: set[tuple[tuple[Requirement, ...], ...]] = set()
        self._sent: defaultdict[TableName, dict[int, tuple[Snapshot, ...]]] = defaultdict(dict)
        """The snapshots of attempts that reached the catalog and did not get in, as it said, by their number."""
        self.may_delete = True
        """Whether it is certain, after an error, that nothing needs what was written."""

    def until_settled(self) -> _LandedAttempt:
        """The attempt that landed, with the tables after it.

        Whatever ends it, the tables are looked at once more if anything was sent: a commit that is there happened, and
        where they cannot be looked at nothing is deleted.
        """
        try:
            return self._loop.run(self._attempt_in_turn)
        except CommitUnknownError:
            raise
        except BerglineError as error:
            if (landed := self._look_again()) is not None:
                return landed
            if self._loop.is_stuck:  # what the catalog says and what it shows cannot both be true
                raise unknown_outcome(next(iter(self._work)), None, str(error), error.hints) from error
            raise
        finally:
            self._turn.end()

    def _attempt_in_turn(self, number: int) -> _LandedAttempt | LostRace | Unknown:
        with self._turn.attempt(LOSSES_OF_APPENDS if self._can_rebase else LOSSES_BEFORE_A_TURN):
            return self._attempt(number)

    def _attempt(self, number: int) -> _LandedAttempt | LostRace | Unknown:
        """Work out every change, then commit those that there are; a table with nothing to do is left out."""
        stamp = CommitStamp(number, self._timing.clock_ms())
        try:
            worked_out = each_table(tuple(self._work), lambda name: self._change(name, stamp), self._refusal)
        except _MovedOnError as error:
            return self._lost(error.reason)
        except _LandedBeforeError as error:
            return _LandedAttempt(error.numbers, tuple(self._load(name) for name in self._work))
        self._turn.worked_out()
        changes = tuple(change for change in worked_out if change.updates)
        self._can_rebase = all(change.can_rebase for change in changes)
        self._depended_on.add(tuple(_depends_on(c) for c in changes))
        outcome = self._send(number, changes) if changes else Committed(())
        match outcome:
            case Committed(tables):
                moved = {t.name: t for t in tables}
                return _LandedAttempt((number,), tuple(moved.get(name, self._bases[name]) for name in self._work))
            case Conflicted(reason):
                return self._lost(reason)
            case Unknown():
                return outcome
            case _:
                assert_never(outcome)

    def _lost(self, reason: ConflictError) -> LostRace:
        self._turn.lost()
        pointers = tuple(base.metadata_location for base in self._bases.values())
        return LostRace(reason, pointers, distinct_attempts=len(self._depended_on), others_wait=self._turn.is_held)

    def _send(self, number: int, changes: tuple[TableChange, ...]) -> Outcome:
        try:
            outcome = self._catalog.commit(changes)
        except UnavailableError:  # nothing was begun
            raise
        except BerglineError:
            self._note(number, changes)
            raise
        self._note(number, changes)
        return outcome

    def _note(self, number: int, changes: tuple[TableChange, ...]) -> None:
        for change in changes:
            if added := tuple(u.snapshot for u in change.updates if isinstance(u, AddSnapshot)):
                self._sent[change.base.name][number] = added

    def _look_again(self) -> _LandedAttempt | None:
        """The attempt that is in after all, with the tables as they were found."""
        found: dict[TableName, LoadedTable] = {}
        for name in self._sent:
            try:
                found[name] = self._load(name)
            except BerglineError:  # one that is gone may have been renamed, with the commit in it
                self.may_delete = False
        numbers = next(filter(None, map(self._landed_in, found.values())), ())
        self._bases |= found
        if not numbers or not self._work.keys() <= self._bases.keys():
            return None
        return _LandedAttempt(numbers, tuple(self._bases[name] for name in self._work))

    def _landed_in(self, table: LoadedTable) -> tuple[int, ...]:
        """The attempts that may have put snapshots into a table, if any did.

        All attempts have the same snapshot ids, so it is the manifest list that tells which one it was, unless the
        catalog put the snapshot on another head, with a list of its own.
        """
        there = table.metadata.snapshots_by_id
        sent = {
            n: [s.manifest_list == there[s.snapshot_id].manifest_list for s in added if s.snapshot_id in there]
            for n, added in self._sent.get(table.name, {}).items()
        }
        exact = tuple(n for n, same in sent.items() if any(same))
        return exact or tuple(n for n, same in sent.items() if same)

    def _change(self, name: TableName, stamp: CommitStamp) -> TableChange:
        self._bases[name] = base = self._load(name)
        if numbers := self._landed_in(base):
            raise _LandedBeforeError(numbers)
        try:
            change = self._work[name].operation.attempt(base.metadata, stamp)
        except NotFoundError as error:
            self._check_moved_on(base, error)
            raise
        return TableChange(base, change.requirements, change.updates, change.can_rebase)

    def _load(self, name: TableName) -> LoadedTable:
        if name in self._identities:
            return load_same_table(self._catalog, name, *self._identities[name])
        base = self._catalog.load_table(name)
        self._identities[name] = base.metadata.table_uuid, base.metadata_location
        return base

    def _check_moved_on(self, base: LoadedTable, error: NotFoundError) -> None:
        """A file of the base is missing: if the table has moved on, expiry was allowed to delete it."""
        if error.kind == "file" and self._catalog.load_table(base.name).metadata_location != base.metadata_location:
            raise _MovedOnError(ConflictError(f"table `{base.name}` moved on from {base.metadata_location}")) from error

    def _limits(self) -> RetryLimits:
        """What the tables say, looked at only where it is needed: other writers may have set anything."""
        needs_validation = any(one.operation.needs_validation for one in self._work.values())
        return retry_limits([b.metadata for b in self._bases.values()], needs_validation=needs_validation)


_Result = TypeVar("_Result")


def each_table(names: Sequence[TableName], run: Callable[[TableName], _Result], refusal: str | None) -> list[_Result]:
    """What `run` gives for every table; what it raises for one is raised at once, unless there is a refusal.

    With one, all tables are tried, and those that cannot are a TablesRefusedError that begins with it. A store
    that does not respond says nothing about a table: that is raised at once in any case.
    """
    results: list[_Result] = []
    reasons: dict[str, BerglineError] = {}
    for name in names:
        try:
            results.append(run(name))
        except (UnavailableError, CommitUnknownError):
            raise
        except BerglineError as error:
            if refusal is None:
                raise
            reasons[str(name)] = error
    if reasons:
        raise TablesRefusedError(
            f"{refusal}: {len(reasons)} of {len(names)} tables cannot, and none was changed", reasons=reasons
        )
    return results
