"""Atomic commits of several pointer objects.

Every pointer gets an intent that names one commit record, in sorted order; the record's change from pending to
committed is the commit. Only the writer itself commits, so nothing can have moved before it has requested that. A
writer may die between any two steps: the record still decides what the intents mean, and the next writer continues.
"""

import contextlib
import datetime as dt
from collections.abc import Callable, Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.object_store.format import CommitObject, Intent, Member, State, new_stamp, render
from bergline.catalog.object_store.names import COMMITS, commit_object, commit_of
from bergline.catalog.object_store.pointers import PointerChange, PointerObjects, Seen, nothing_moved
from bergline.errors import BerglineError
from bergline.io.conditional_objects import StoredObject

_LEFT_BEHIND = dt.timedelta(minutes=1)
_SWEPT_AT_ONCE = 10


class PointerCommits:
    """Atomic changes of several pointers."""

    def __init__(
        self, pointers: PointerObjects, *, now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)
    ) -> None:
        self._pointers = pointers
        self._objects = pointers.objects
        self._now = now

    def change_all(self, changes: Sequence[PointerChange]) -> bool:
        """True if and only if all changes were allowed and made; False if and only if none was made.

        Any doubt is an exception; UnavailableError if and only if it is certain that none was made.
        """
        ordered = sorted(changes, key=lambda c: c.table)
        attempts = self._pointers.attempts(*(c.table for c in ordered))
        while True:
            next(attempts)
            seen = [self._pointers.settled(c.table) for c in ordered]
            if not all(c.allowed(s.entry) for c, s in zip(ordered, seen, strict=True)):
                return False
            if self._commit(ordered, seen):
                self._sweep()
                return True

    def _commit(self, changes: Sequence[PointerChange], seen: Sequence[Seen]) -> bool:
        """One attempt; False if another writer interfered or aborted it."""
        commit = new_stamp()
        members = [Member([*s.table.namespace, s.table.name], s.stamp) for s in seen]
        pending = CommitObject(stamp=new_stamp(), state=State.PENDING, members=members)
        with nothing_moved():
            record = self._objects.create(commit_object(commit), render(pending))
            if record is None or not self._prepare(commit, changes, seen):
                return False
        committed = self._pointers.decide(commit, record, pending, State.COMMITTED)
        with contextlib.suppress(BerglineError):  # leftovers are removed by a later commit
            self._release(commit, pending)
        return committed

    def _prepare(self, commit: str, changes: Sequence[PointerChange], seen: Sequence[Seen]) -> bool:
        """Put the intent on every pointer; if that fails, remove it again as far as possible."""
        prepared = False
        try:
            prepared = all(
                self._pointers.write(s, s.entry, Intent(commit, c.new)) for c, s in zip(changes, seen, strict=True)
            )
        finally:
            if not prepared:
                with contextlib.suppress(BerglineError):
                    self._end(commit)
        return prepared

    def _end(self, commit: str) -> None:
        """Ensure that a commit is decided, that no pointer names it or ever will, and that its record is deleted."""
        found = self._pointers.commit(commit)
        while found and found[1].state is State.PENDING:
            self._pointers.decide(commit, *found, State.ABORTED)
            found = self._pointers.commit(commit)
        if found:
            self._release(commit, found[1])

    def _release(self, commit: str, record: CommitObject) -> None:
        """Remove the intents of a decided commit from its pointers, then delete the record.

        A pointer that is still as the commit found it is rewritten unchanged, so that a delayed request for the intent
        fails.
        """
        for member in record.members:
            table = TableName(tuple(member.name[:-1]), member.name[-1])
            while (seen := self._pointers.look(table)).stamp == member.stamp or seen.commit == commit:
                self._pointers.write(seen, seen.entry)
        self._objects.delete(commit_object(commit))

    def _sweep(self) -> None:
        """End some commits whose writers died; at worst, one that is still alive has to retry."""
        with contextlib.suppress(BerglineError):
            for name in self._objects.names(COMMITS)[:_SWEPT_AT_ONCE]:
                found = self._pointers.commit(commit_of(name))
                if found and self._is_left_behind(found[0]):
                    self._end(commit_of(name))

    def _is_left_behind(self, stored: StoredObject) -> bool:
        return stored.modified is not None and self._now() - stored.modified > _LEFT_BEHIND
