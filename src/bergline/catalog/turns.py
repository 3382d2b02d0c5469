"""Turns: a writer that keeps losing races asks the other writers of its tables to let it go first for a moment.

Correctness never depends on them: the swap of the pointer decides.
"""

import contextlib
import random
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from enum import Enum
from typing import Final, Protocol

import msgspec

from bergline.catalog.identifiers import TableName

LONGEST_TURN_MS: Final = 10_000
"""No turn lasts longer, however often it is taken again; then the others go first for as long as it lasted."""
_LOOK_AGAIN_S: Final = (0.01, 0.05)


class Turn(msgspec.Struct, frozen=True):
    """A turn that somebody has on a table now, and how long it still lasts at most."""

    holder: str
    left_ms: int


class TurnKeeper(Protocol):
    """Where writers take turns; errors of its methods say nothing about any commit."""

    def take_turn(self, tables: Collection[TableName], holder: str, lease_ms: int) -> bool:
        """True if and only if the holder now has a turn on all these tables, for `lease_ms` at most.

        A holder that takes it again while it lasts prolongs it, up to the longest turn in all.
        """
        ...

    def give_back_turn(self, tables: Collection[TableName], holder: str) -> None:
        """End the turn of the holder on these tables, if it has one."""
        ...


class TurnTaken(Exception):  # noqa: N818  (never leaves a server)
    """Somebody else has a turn on a table: nothing was changed."""

    def __init__(self, table: TableName, turn: Turn) -> None:
        super().__init__(f"another writer has its turn on `{table}`")
        self.table = table
        self.turn = turn


class TurnManners(Enum):
    """What a commit does that finds somebody else's turn."""

    WAIT = "wait"
    RAISE = "raise"
    IGNORE = "ignore"


_HOLDER: ContextVar[str | None] = ContextVar("turn_holder", default=None)
_MANNERS: ContextVar[TurnManners] = ContextVar("turn_manners", default=TurnManners.WAIT)


@contextlib.contextmanager
def holding_turn(holder: str | None) -> Iterator[None]:
    """Commits that this thread makes in the block are made by the holder of a turn, or by nobody for None."""
    token = _HOLDER.set(holder)
    try:
        yield
    finally:
        _HOLDER.reset(token)


def turn_holder() -> str | None:
    """Whose turn the commits of this thread are made in."""
    return _HOLDER.get()


@contextlib.contextmanager
def meeting_turns(manners: TurnManners) -> Iterator[None]:
    """Set what commits of this thread do in the block when somebody else has a turn."""
    token = _MANNERS.set(manners)
    try:
        yield
    finally:
        _MANNERS.reset(token)


def wait_for_turn(
    table: TableName, turn: Turn | None, look: Callable[[], Turn | None], sleep: Callable[[float], None]
) -> bool:
    """Wait until nobody else has a turn, at most for as long as a turn can last; returns whether it had to wait.

    TurnTaken instead, if `meeting_turns` says so.
    """
    holder, manners = _HOLDER.get(), _MANNERS.get()
    waited_s = 0.0
    while turn is not None and turn.holder != holder and manners is not TurnManners.IGNORE:
        if manners is TurnManners.RAISE:
            raise TurnTaken(table, turn)
        if waited_s * 1000 >= LONGEST_TURN_MS:
            break
        pause_s = random.uniform(*_LOOK_AGAIN_S)  # noqa: S311  (jitter)
        sleep(pause_s)
        waited_s += pause_s
        turn = look()
    return waited_s > 0
