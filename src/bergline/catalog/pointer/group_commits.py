"""Group commit: changes to one table that wait at the same time share one metadata file and one swap.

Each is applied to the state after the ones before it, and has an outcome of its own.
"""

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import msgspec

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, Outcome, TableChange, added_snapshots
from bergline.catalog.metadata_files import metadata_directory, next_location
from bergline.catalog.pointer.commits import TableCommits
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, Moved, PointerSwap, PointersWithHooks
from bergline.catalog.pointer.settle import group_history
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.catalog.pointer.tables import PointerTables
from bergline.catalog.protection.caller import see_change
from bergline.catalog.protection.guard import DecideAgain
from bergline.errors import (
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)

_OF_THE_CHANGE: Final = (InvalidInputError, NotFoundError, RefusedError, UnsupportedError)
"""Errors that say that metadata cannot be written as it is: no other time would be better."""

MemberOutcomes = tuple[Outcome | Exception, ...]
"""What became of each change of a group, in their order; an error refused one alone."""


class GroupMember(Protocol):
    """One of the changes that are committed together; every method may be called again for another attempt."""

    def acting(self) -> AbstractContextManager[object]:
        """A block in which the caller of this change acts, for checks and hooks."""
        ...

    def change(self, base: LoadedTable) -> TableChange:
        """The change on the state after the members before it, which has no metadata file of its own.

        A change without updates was made before. Any error refuses this member alone.
        """
        ...

    def finish(self) -> None:
        """Wait until the files of the change are written; any error refuses this member alone."""
        ...

    def before_commit(self, connection: Any, metadata_location: str) -> None:
        """Write the rows of this change, in the transaction of the swap; only stores with transactions call it.

        Any BerglineError refuses this member alone, and the others are committed without it.
        """
        ...


class _PlacedMember(msgspec.Struct, frozen=True):
    place: int
    member: GroupMember
    change: TableChange
    after: LoadedTable
    decide_again: DecideAgain


class _MemberRefused(RefusedError):  # noqa: N818  (never leaves this module)
    """A member was refused in the transaction, which was rolled back."""

    def __init__(self, place: int, error: BerglineError) -> None:
        super().__init__(str(error))
        self.place = place
        self.error = error


class _UnwritableError(Exception):
    """The metadata after all members cannot be written, because of what one of them changes; nothing was swapped."""

    def __init__(self, error: BerglineError) -> None:
        super().__init__(str(error))
        self.error = error


class GroupCommits:
    """Commits of several members at once."""

    def __init__(self, access: StoreAccess, tables: PointerTables, commits: TableCommits) -> None:
        self._access = access
        self._files = tables.files
        self._commits = commits

    def commit(self, base: LoadedTable, members: Sequence[GroupMember]) -> MemberOutcomes:
        """Apply the members in order, write once, swap once; a lost response is settled for all.

        A member that is refused changes nothing for the others. One that is Conflicted is to be computed again on the
        table as it is then: all are if the pointer moved. An exception means that nothing moved for another reason.
        """
        if self._access.read_in_turn(base.name) != base.metadata_location:
            return _all(members, Conflicted(self._commits.moved_on(base)))
        refused_in_swap: dict[int, Exception] = {}
        was_unavailable = False
        while True:
            refused = dict(refused_in_swap)
            placed = self._placed(base, members, refused)
            if not placed:
                return _all(members, Committed((base,)), refused)
            if unfinished := _unfinished(placed):
                refused_in_swap |= unfinished
                continue
            try:
                outcome = self._swap_group(base, placed, self._written(base, placed))
            except _UnwritableError as unwritable:
                if len(placed) > 1:
                    return self._commit_half(base, members)
                refused_in_swap[placed[0].place] = unwritable.error
                continue
            except _MemberRefused as refusal:
                is_unavailable = isinstance(refusal.error, UnavailableError)
                if is_unavailable and was_unavailable:  # it is the store's fault: each member would wait for it in turn
                    raise refusal.error from refusal
                was_unavailable = is_unavailable or was_unavailable
                refused_in_swap[refusal.place] = refusal.error
                continue
            return _all(members, outcome, {} if isinstance(outcome, Conflicted) else refused)

    def _placed(
        self, base: LoadedTable, members: Sequence[GroupMember], refused: dict[int, Exception]
    ) -> list[_PlacedMember]:
        """The changes to make, each on the state after those before it; errors go to `refused`."""
        placed: list[_PlacedMember] = []
        state = base
        for place, member in enumerate(members):
            if place in refused:
                continue
            with member.acting():
                try:
                    one = self._place(place, member, state, is_first=not placed)
                except Exception as error:  # noqa: BLE001  (of this member, and not of those beside it)
                    refused[place] = error
                    continue
            if one is not None:
                placed.append(one)
                state = one.after
        return placed

    def _place(self, place: int, member: GroupMember, state: LoadedTable, *, is_first: bool) -> _PlacedMember | None:
        asked = member.change(state)
        if not asked.updates:
            return None
        change = TableChange(state, asked.requirements, asked.updates)
        after = self._commits.apply(change, logs_base=is_first)
        next_location(after, state.metadata_location)  # alone, a member that names no place for its file is refused
        decide_again = self._access.guard.check_member(state.name, state.metadata, after)
        see_change(state.name, state.metadata, after)
        now = LoadedTable(state.name, after, state.metadata_location)
        return _PlacedMember(place, member, change, now, decide_again)

    def _written(self, base: LoadedTable, placed: Sequence[_PlacedMember]) -> LoadedTable:
        after = placed[-1].after.metadata
        try:
            return LoadedTable(base.name, after, self._files.write(after, base.metadata_location))
        except BerglineError as error:
            if isinstance(error, _OF_THE_CHANGE) or metadata_directory(after) != metadata_directory(base.metadata):
                raise _UnwritableError(error) from error
            raise

    def _commit_half(self, base: LoadedTable, members: Sequence[GroupMember]) -> MemberOutcomes:
        """Commit only the first half of the members, if they cannot be written together; the others are Conflicted.

        By halving, the member that is the cause is found in the end, and refused alone.
        """
        half = len(members) // 2
        later = Conflicted(ConflictError(f"the changes to table `{base.name}` cannot be written all at once"))
        return *self.commit(base, members[:half]), *(later for _ in members[half:])

    def _swap_group(self, base: LoadedTable, placed: Sequence[_PlacedMember], table: LoadedTable) -> Outcome:
        added = [added_snapshots(one.change) for one in placed]

        def history(swap: PointerSwap, pointer: str, made: Committed) -> Outcome | None:
            now = LoadedTable(swap.table, self._files.load(pointer), pointer)
            return group_history(swap, made, base.metadata, now, added)

        whole = TableChange(base, (), tuple(update for one in placed for update in one.change.updates))
        hooks, store = _MemberHooks(placed, table), self._access.store_to_settle
        try:
            with store.before_commit(hooks.run) if isinstance(store, PointersWithHooks) else contextlib.nullcontext():
                return self._commits.swap((whole,), (table,), history)
        except NOTHING_CHANGED as error:
            if isinstance(error, _MemberRefused):
                raise
            if hooks.running is not None:
                raise _MemberRefused(hooks.running, error) from error
            if isinstance(error, InvalidInputError):  # a location that is too long
                raise _UnwritableError(error) from error
            raise


class _MemberHooks:
    """The hooks of all members, run in the transaction of the swap."""

    def __init__(self, placed: Sequence[_PlacedMember], table: LoadedTable) -> None:
        self._placed = placed
        self._table = table
        self.running: int | None = None
        """The member whose hook is running, or failed."""

    def run(self, connection: Any, moved: Moved) -> None:
        """Decide again on each member, and write its rows."""
        for one in self._placed if (self._table.name, self._table.metadata_location) in moved else ():
            self.running = one.place
            with one.member.acting():
                try:
                    one.decide_again(connection)
                    one.member.before_commit(connection, self._table.metadata_location)
                except BerglineError as error:
                    raise _MemberRefused(one.place, error) from error
        self.running = None


def _unfinished(placed: Sequence[_PlacedMember]) -> dict[int, Exception]:
    """The members whose files could not be written; the others have to be computed again without them."""
    found: dict[int, Exception] = {}
    for one in placed:
        try:
            one.member.finish()
        except Exception as error:  # noqa: BLE001  (of this member, and not of those beside it)
            found[one.place] = error
    return found


def _all(
    members: Sequence[GroupMember], outcome: Outcome, refused: dict[int, Exception] | None = None
) -> MemberOutcomes:
    return tuple((refused or {}).get(place, outcome) for place in range(len(members)))
