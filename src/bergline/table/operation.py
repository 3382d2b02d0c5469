"""What the commit loop asks of every operation, whatever its kind."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from bergline.format.metadata import TableMetadata
from bergline.format.requirements import Requirement, same_table
from bergline.format.updates import Update


class Change(msgspec.Struct, frozen=True):
    """What one attempt wants: updates, and what must hold for them. No updates: nothing to do."""

    updates: tuple[Update, ...] = ()
    requirements: tuple[Requirement, ...] = ()


class CommitStamp(msgspec.Struct, frozen=True):
    """Which attempt this is, counted from 1, and when it is made."""

    attempt: int
    now_ms: int


class Operation(Protocol):
    """A change that can be worked out again on every new base."""

    conflicts_in_meaning: bool
    """Whether another commit can make this one wrong, rather than merely late."""

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The change on this base; raises where the base forbids it."""
        ...

    def committed(self, metadata: TableMetadata) -> None:
        """The change is in: remove what only losing attempts wrote."""
        ...

    def abandoned(self) -> None:
        """The change is certainly not in: remove everything that it wrote."""
        ...


class MetadataOperation:
    """An operation that writes no files of its own."""

    def __init__(self, change: Callable[[TableMetadata], Change], *, conflicts_in_meaning: bool = False) -> None:
        self._change = change
        self.conflicts_in_meaning = conflicts_in_meaning

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The change on this base."""
        change = self._change(base)
        if not change.updates:
            return change
        return Change(change.updates, (*same_table(base), *change.requirements))

    def committed(self, metadata: TableMetadata) -> None:
        """Nothing to remove."""

    def abandoned(self) -> None:
        """Nothing to remove."""
