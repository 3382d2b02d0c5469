"""Changes that processes put into a queue, to be committed together by one of them."""

from collections.abc import Collection
from enum import Enum
from typing import Any, Protocol

import msgspec

from bergline.catalog.identifiers import TableName


class QueueState(Enum):
    """What became of a change in the queue."""

    WAITING = "waiting"
    LANDED = "landed"
    REFUSED = "refused"
    """It is certain that it was not committed, and nobody will."""


class QueueOutcome(msgspec.Struct, frozen=True):
    """The state of a change, and where the metadata is that it landed in."""

    state: QueueState
    metadata_location: str | None = None
    has_leader: bool = False
    """Whether somebody is about to commit what waits for the table."""


class QueuedChange(msgspec.Struct, frozen=True):
    """A change that waits: who put it there, and what it is, as JSON."""

    token: str
    principal: str
    change: str


class CommitQueue(Protocol):
    """The queue of a catalog's database; the token of a change is chosen by who puts it there.

    Every method raises UnavailableError if certainly nothing was changed.
    """

    def add(self, table: TableName, change: QueuedChange, read: Collection[str]) -> bool:
        """Put a change into the queue, and forget those whose outcomes were read; True if the caller is to lead."""
        ...

    def outcome(self, token: str) -> QueueOutcome | None:
        """What became of a change; None if it is not there: it was withdrawn, or forgotten after an hour."""
        ...

    def withdraw(self, token: str) -> bool:
        """True if and only if the change was waiting, and nobody will commit it."""
        ...

    def bar(self, table: TableName, token: str) -> None:
        """Refuse a change that may still be on its way into the queue; nothing happens if it is there."""
        ...

    def lead(self, table: TableName, token: str) -> bool:
        """True if and only if nobody else leads, and the caller now does for some seconds."""
        ...

    def waiting(self, table: TableName, most: int) -> list[QueuedChange]:
        """The changes that wait, or so many of them, in their order; old ones, of processes that are gone, are none."""
        ...

    def land(self, connection: Any, token: str, metadata_location: str, leader: str) -> None:
        """Note, in the transaction of the swap, that a change has landed; RefusedError if it is not waiting any more.

        The leader's own change ends its lead.
        """
        ...

    def refuse(self, tokens: Collection[str], leader: str) -> None:
        """Note that changes that wait were not committed; the leader's own change ends its lead."""
        ...
