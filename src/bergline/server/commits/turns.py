"""Turns that this server has heard of: the commits of others wait for their end, in the event loop.

A turn that was granted by another server on the same database is heard of by the first commit that finds it.
"""

import asyncio
import hashlib
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_HEADER
from bergline.catalog.rest.protocol.table_turns import TURN_HEADER
from bergline.catalog.turns import Turn
from bergline.errors import BerglineError
from bergline.server.commits.locks import too_many_commits
from bergline.server.http.request import Request

_OTHER: Final = "other client "
"""How the holders of turns begin whose clients cannot ask for one: no name that a client can take."""
_PAUSE_S = (0.01, 0.04)
_LOOK_AGAIN_S = 0.05


class _HeardOf(msgspec.Struct):
    holder: str
    until_s: float
    look_at_s: float
    """When to look at the database again, in which it may have been given back."""


class KnownTurns:
    """By table; thread-safe."""

    def __init__(self, read_turn: Callable[[TableName], Turn | None], max_waiting: int) -> None:
        self._read_turn = read_turn
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._turns: dict[TableName, _HeardOf] = {}
        self._waiting: Counter[TableName] = Counter()

    def note(self, table: TableName, turn: Turn | None) -> None:
        """Somebody has a turn on a table now, or nobody."""
        now = time.monotonic()
        with self._lock:
            self._turns.pop(table, None)
            if turn is not None:
                self._turns[table] = _HeardOf(turn.holder, now + turn.left_ms / 1000, now + _LOOK_AGAIN_S)

    def is_held_by(self, table: TableName, holder: str) -> bool:
        """Whether this is whose turn it is, as far as is known."""
        with self._lock:
            turn = self._turns.get(table)
            return turn is not None and turn.holder == holder

    def look(self, table: TableName) -> None:
        """See who has a turn on a table; where that cannot be seen, what is known stays."""
        try:
            self.note(table, self._read_turn(table))
        except BerglineError:
            return

    async def wait(self, table: TableName, holder: str | None, look: Callable[[TableName], Awaitable[None]]) -> None:
        """Wait until nobody else has a turn on a table, as far as is known; `look` looks, in some thread.

        RequestRefused (503) if too many wait already.
        """
        if not self._is_held(table, holder):
            return
        with self._lock:
            if self._waiting[table] >= self._max_waiting:
                raise too_many_commits(table)
            self._waiting[table] += 1
        try:
            while self._is_held(table, holder):
                if self._is_due(table):
                    await look(table)
                await asyncio.sleep(random.uniform(*_PAUSE_S))  # noqa: S311  (jitter)
        finally:
            with self._lock:
                self._waiting[table] -= 1
                if not self._waiting[table]:
                    del self._waiting[table]

    def _is_held(self, table: TableName, holder: str | None) -> bool:
        with self._lock:
            turn = self._turns.get(table)
            if turn is not None and time.monotonic() >= turn.until_s:
                del self._turns[table]
                return False
            return turn is not None and turn.holder != holder

    def _is_due(self, table: TableName) -> bool:
        """Whether the caller is the one to look at the database now, for all who wait."""
        now = time.monotonic()
        with self._lock:
            turn = self._turns.get(table)
            if turn is None or now < turn.look_at_s:
                return False
            turn.look_at_s = now + _LOOK_AGAIN_S
            return True


def holder_of(request: Request) -> str | None:
    """In whose turn a request is made, if anybody's.

    That of a client which cannot ask for one is known by who calls and by which program; it may be several processes.
    """
    if TURN_HEADER in request.headers or MAY_MOVE_HEADER in request.headers:
        return request.headers.get(TURN_HEADER)
    caller = repr((request.principal, request.headers.get("user-agent")))
    return _OTHER + hashlib.sha256(caller.encode()).hexdigest()[:32]


def other_client(request: Request) -> str | None:
    """The holder of a request if its client cannot ask for a turn."""
    holder = holder_of(request)
    return holder if holder is not None and holder.startswith(_OTHER) else None
