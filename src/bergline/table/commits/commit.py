"""Commits of operations to one table or several: load the bases, compute the changes, swap; after a conflict, again.

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
from bergline.table.commits.retry import RetryLimits, RetryLoop, Timing, retry_limits, unknown_outcome
from bergline.table.commits.turn import LOSSES_BEFORE_A_TURN, LOSSES_OF_APPENDS, CommitTurn

WATCHERS: list[Callable[[LoadedTable], None]] = []
"""Told of each table that a commit of this process has changed, once that is certain; they raise nothing."""


class TableWork(msgspec.Struct, frozen=True):
    """An operation on one table.

    The table is identified by its uuid, or by the pointer if it has none; without a pointer, it is whichever table has
    the name when the commit begins.
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
    """The current state of a table; ConflictError if another table has its name.

    A table without uuid is the same if the metadata file that was loaded is its current one, or in its metadata log.
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
    """Commit all operations or none, with as many retries as the tables allow, and return the tables after them.

    ConflictError once the retries are used up; CommitUnknownError if the outcome cannot be determined, and then nothing
    is deleted. After any other error, of the operations or the catalog, nothing was committed, and the files that were
    written are deleted, unless an attempt was sent and the tables cannot be read to rule it out.
    With a `refusal`, errors of the operations are collected in one TablesRefusedError that begins with this text.
    """
    attempts = _Attempts(catalog, work, timing or Timing(), refusal)
    with _telling_failure(work, lambda: attempts.may_delete):
        check_table_count(catalog, len(work))
        tables = attempts.until_settled().tables
    _tell_success(work, attempts.landed, tables)
    for table in tables:
        for watch in WATCHERS:
            watch(table)
    return tables


def create(catalog: Catalog, work: TableWork, metadata: TableMetadata, timing: Timing | None = None) -> LoadedTable:
    """Create a table with metadata that has the operation's change in it already.

    AlreadyExistsError if the name was taken meanwhile, CommitUnknownError as for `commit`; files that were written are
    deleted unless the outcome is unknown.
    """
    loop = RetryLoop(timing or Timing(), lambda: retry_limits([metadata], needs_validation=False))
    with _telling_failure((work,)):
        created = loop.run(lambda _: catalog.create_table(work.name, metadata))
    _tell_success((work,), (1,), (created,))
    return created


def _tell_success(work: Sequence[TableWork], landed: tuple[int, ...], tables: Sequence[LoadedTable]) -> None:
    """Tell the operations which attempt landed; if it is one of several, all that was written stays."""
    if len(landed) != 1:
        return
    for one, table in zip(work, tables, strict=True):
        with cleaning_up(one.name):
            one.operation.settled(Landed(landed[0], table.metadata))


@contextlib.contextmanager
def _telling_failure(work: Sequence[TableWork], may_delete: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Have the operations delete what they wrote after an error that says for certain that nothing was committed.

    After anything else that ends a commit, such as an interrupt or a bug, all files stay.
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
    """The requirements of a change that another commit can break.

    The schema and the partition spec are left out, because each attempt computes its change for the current ones; so is
    the head of `main` that a new branch starts from.
    """
    required = [r for r in change.requirements if not isinstance(r, AssertCurrentSchemaId | AssertDefaultSpecId)]
    refs = [r for r in required if isinstance(r, AssertRefSnapshotId)]
    starts_branch = any(r.snapshot_id is None and r.ref != MAIN for r in refs)
    return tuple(r for r in required if not (starts_branch and isinstance(r, AssertRefSnapshotId) and r.ref == MAIN))


class _AttemptOver(Exception):  # noqa: N818  (never leaves this module)
    """The outcome of an attempt is known before all its changes are computed."""

    def __init__(self, outcome: Committed | Conflicted) -> None:
        super().__init__(outcome)
        self.outcome = outcome


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
        self.landed: tuple[int, ...] = ()
        """The number of the attempt that landed; several if it is one of these."""
        self.may_delete = True
        """Whether it is certain, after an error, that nothing needs what was written."""

    def until_settled(self) -> Committed:
        """Run attempts until one has landed, and return all tables after it.

        After an error, the tables are loaded once more if anything was sent: the commit may be there all the same. If
        they cannot be loaded, nothing may be deleted.
        """
        try:
            return self._loop.run(self._attempt_in_turn)
        except CommitUnknownError:
            raise
        except BerglineError as error:
            if (committed := self._look_again()) is not None:
                return committed
            if self._loop.is_stuck:  # what the catalog says and what it shows cannot both be true
                raise unknown_outcome(next(iter(self._work)), None, str(error), error.hints) from error
            raise
        finally:
            self._turn.end()

    def _attempt_in_turn(self, number: int) -> Outcome:
        with self._turn.attempt(LOSSES_OF_APPENDS if self._can_rebase else LOSSES_BEFORE_A_TURN):
            return self._attempt(number)

    def _attempt(self, number: int) -> Outcome:
        """Compute the change to each table and commit them; tables without a change are left out."""
        stamp = CommitStamp(number, self._timing.clock_ms())
        try:
            worked_out = each_table(tuple(self._work), lambda name: self._change(name, stamp), self._refusal)
        except _AttemptOver as over:
            if isinstance(over.outcome, Conflicted):
                return self._lost(over.outcome.reason)
            return Committed(tuple(self._load(name) for name in self._work))
        self._turn.worked_out()
        changes = tuple(change for change in worked_out if change.updates)
        self._can_rebase = all(change.can_rebase for change in changes)
        self._depended_on.add(tuple(_depends_on(c) for c in changes))
        outcome = self._send(number, changes) if changes else Committed(())
        match outcome:
            case Committed(tables):
                moved, self.landed = {t.name: t for t in tables}, (number,)
                return Committed(tuple(moved.get(name, self._bases[name]) for name in self._work))
            case Conflicted(reason):
                return self._lost(reason)
            case Unknown():
                return outcome
            case _:
                assert_never(outcome)

    def _lost(self, reason: ConflictError) -> Conflicted:
        self._turn.lost()
        return Conflicted(reason, tuple(base.metadata_location for base in self._bases.values()))

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

    def _look_again(self) -> Committed | None:
        """The tables as they are now, if an attempt has landed after all."""
        found: dict[TableName, LoadedTable] = {}
        for name in self._sent:
            try:
                found[name] = self._load(name)
            except BerglineError:  # one that is gone may have been renamed, with the commit in it
                self.may_delete = False
        self.landed = next(filter(None, map(self._landed_in, found.values())), ())
        self._bases |= found
        if not self.landed or not self._work.keys() <= self._bases.keys():
            return None
        return Committed(tuple(self._bases[name] for name in self._work))

    def _landed_in(self, table: LoadedTable) -> tuple[int, ...]:
        """The attempts that may have landed in a table; none if its snapshots are not there.

        All attempts have the same snapshot ids, so the manifest list tells them apart. If a server has rebased the
        snapshot, the list is the server's own, and it may have been any attempt that added the snapshot.
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
        if numbers := self._landed_in(base):  # the catalog called an attempt lost that is in this base
            self.landed = numbers
            raise _AttemptOver(Committed(()))
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
        """End the attempt if a file of the base is missing because the table moved on, and expiry deleted it."""
        if error.kind == "file" and self._catalog.load_table(base.name).metadata_location != base.metadata_location:
            moved_on = ConflictError(f"table `{base.name}` moved on from {base.metadata_location}")
            raise _AttemptOver(Conflicted(moved_on)) from error

    def _limits(self) -> RetryLimits:
        """The limits that the tables set, read only after a failure: invalid properties must not stop other commits."""
        needs_validation = any(one.operation.needs_validation for one in self._work.values())
        return msgspec.structs.replace(
            retry_limits([b.metadata for b in self._bases.values()], needs_validation=needs_validation),
            distinct_attempts=len(self._depended_on),
            others_wait=self._turn.is_held,
        )


_Result = TypeVar("_Result")


def each_table(names: Sequence[TableName], run: Callable[[TableName], _Result], refusal: str | None) -> list[_Result]:
    """The result of `run` for each table; without a `refusal`, the first error is raised at once.

    With one, all tables are tried, and the errors are raised as one TablesRefusedError that begins with this text. A
    store that does not respond says nothing about a table, so that such an error is raised at once in any case.
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
