"""Single pointer objects: their meaning and their changes.

An object with an intent has its old value until the commit named by the intent is committed, and the new value from
then on. Readers only interpret intents. Writers first make sure that the commit is decided, then replace the intent.
"""

import contextlib
import random
import time
from collections.abc import Callable, Iterator

import msgspec

from bergline.catalog.attempts import attempts
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.object_store.format import (
    CommitObject,
    Entry,
    Intent,
    NamespaceObject,
    PointerObject,
    State,
    new_stamp,
    parse_commit,
    parse_pointer,
    render,
    render_sized,
)
from bergline.catalog.object_store.names import commit_object, pointer_object
from bergline.errors import FormatError, StorageError, UnavailableError
from bergline.io.conditional_objects import ConditionalObjects, StoredObject

PENDING_TIMEOUT_S = 3.0
_TIMEOUT_FOR_EACH_S = 0.5
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.005, 0.2


class Seen(msgspec.Struct, frozen=True):
    """A name as it was read: its object and current entry; `commit` is the one of its intent."""

    table: TableName
    stored: StoredObject | None
    stamp: str | None
    entry: Entry | None
    commit: str | None


class PointerChange(msgspec.Struct, frozen=True):
    """A new entry for a name, on condition of its current entry."""

    table: TableName
    allowed: Callable[[Entry | None], bool]
    new: Entry | None


class PointerObjects:
    """The pointer objects of a catalog. Another writer's pending commit is aborted after `pending_timeout_s`."""

    def __init__(
        self,
        objects: ConditionalObjects,
        *,
        pending_timeout_s: float = PENDING_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.objects = objects
        self.sized = False
        """Whether the catalog is of a version in which the sizes of objects say what they hold."""
        self._pending_timeout_s = pending_timeout_s
        self._clock = clock
        self._sleep = sleep

    def look(self, table: TableName) -> Seen:
        """The current entry of a name; a pending commit may still change it."""
        return self._read(table, self._state)

    def settled(self, table: TableName) -> Seen:
        """The entry of a name after every pending commit is decided; UnavailableError if that is impossible."""
        with nothing_moved():
            return self._read(table, self._decided)

    def change(self, change: PointerChange) -> bool:
        """True if and only if the current entry was allowed and was replaced; any doubt raises."""
        tries = self.attempts(change.table)
        while True:
            next(tries)
            seen = self.settled(change.table)
            if not change.allowed(seen.entry):
                return False
            if self.write(seen, change.new):
                return True

    def write(self, seen: Seen, current: Entry | None, intent: Intent | None = None) -> StoredObject | None:
        """Replace the object that was seen; None if and only if it changed meanwhile."""
        name = [*seen.table.namespace, seen.table.name]
        data = self.rendered(PointerObject(stamp=new_stamp(), name=name, current=current, intent=intent))
        key = pointer_object(seen.table)
        return self.objects.replace(key, seen.stored, data) if seen.stored else self.objects.create(key, data)

    def rendered(self, value: PointerObject | NamespaceObject) -> bytes:
        """The object of a name, as the catalog's version has it."""
        return render_sized(value) if self.sized else render(value)

    def attempts(self, *names: TableName | Namespace) -> Iterator[None]:
        """Retry with backoff; UnavailableError in the end."""
        shown = ", ".join(f"`{n if isinstance(n, TableName) else '.'.join(n)}`" for n in names)
        moved = f"nothing was changed: other writers changed {shown} first"
        return attempts(moved, error=UnavailableError, wait=lambda number: self._sleep(_wait(number)))

    def _read(self, table: TableName, state_of: Callable[[str], State | None]) -> Seen:
        before: StoredObject | None = None
        while True:
            key = pointer_object(table)
            stored = self.objects.read(key)
            if stored is None:
                return Seen(table, None, None, None, None)
            location = self.objects.location(key)
            pointer = parse_pointer(stored.data, location)
            if pointer.intent is None:
                return Seen(table, stored, pointer.stamp, pointer.current, None)
            state = state_of(pointer.intent.commit)
            if state is not None:
                entry = pointer.intent.becomes if state is State.COMMITTED else pointer.current
                return Seen(table, stored, pointer.stamp, entry, pointer.intent.commit)
            # a commit record is deleted after its last intent: the pointer must have changed since
            if before is not None and before.tag == stored.tag:
                raise FormatError(f"expected commit {pointer.intent.commit} of {location} in the catalog, found none")
            before = stored

    def _state(self, commit: str) -> State | None:
        found = self.commit(commit)
        return found[1].state if found else None

    def _decided(self, commit: str) -> State | None:
        """The outcome of a commit; one that stays pending for too long is aborted."""
        start, number = self._clock(), 0
        while found := self.commit(commit):
            stored, value = found
            if value.state is not State.PENDING:
                return value.state
            if self._clock() - start > self._pending_timeout_s + _TIMEOUT_FOR_EACH_S * len(value.members):
                self.decide(commit, stored, value, State.ABORTED)
            else:
                self._sleep(_wait(number))
                number += 1
        return None

    def commit(self, commit: str) -> tuple[StoredObject, CommitObject] | None:
        """The record of a commit; None if there is none (any more)."""
        key = commit_object(commit)
        stored = self.objects.read(key)
        return None if stored is None else (stored, parse_commit(stored.data, self.objects.location(key)))

    def decide(self, commit: str, stored: StoredObject, value: CommitObject, state: State) -> bool:
        """True if and only if the commit was pending and now has this state; any doubt raises."""
        decided = msgspec.structs.replace(value, state=state, stamp=new_stamp())
        return self.objects.replace(commit_object(commit), stored, render(decided)) is not None


@contextlib.contextmanager
def nothing_moved() -> Iterator[None]:
    """Convert storage errors before any request that moves a pointer to UnavailableError."""
    try:
        yield
    except StorageError as error:
        raise UnavailableError(error.message, hints=error.hints) from error


def _wait(number: int) -> float:
    """Seconds to wait after an attempt, with jitter so that writers do not collide again."""
    longest: float = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** min(number, 10))
    return longest * random.uniform(0.5, 1)  # noqa: S311  (guards nothing)
