"""Turns for clients that cannot ask for one, such as PyIceberg, DuckDB and Java.

Their commits are never moved, and beside appends that are they would lose every race. So when two of them in a row came
too late, the table is theirs for about as long as they need: they come again, and everybody else waits.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_HEADER
from bergline.catalog.rest.protocol.table_turns import TURN_HEADER
from bergline.catalog.turns import LONGEST_TURN_MS, TurnKeeper
from bergline.errors import BerglineError
from bergline.format.metadata.requirements import AssertRefSnapshotId
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.commits.requested_commits import RequestedChange
from bergline.server.commits.turns import KnownTurns
from bergline.server.http.request import Request

OTHER_CLIENTS: Final = "clients without turns"
"""The holder of their turns: no name that a client can take."""
LOSSES_BEFORE_A_TURN: Final = 2
_COMING_AGAIN_MS: Final = 1000
_FORGOTTEN_AFTER_S: Final = 60.0
_MOST_TABLES: Final = 10_000
_LOG = logging.getLogger("bergline.server")


def holder_of(request: Request) -> str | None:
    """In whose turn a request is made; None for a client that would have asked for one."""
    named = request.headers.get(TURN_HEADER)
    return OTHER_CLIENTS if named is None and MAY_MOVE_HEADER not in request.headers else named


class OvertakenClients:
    """Counts the commits that came too late, by table; thread-safe."""

    def __init__(self, catalog: PointerCatalog, turns: KnownTurns) -> None:
        self._catalog = catalog
        self._turns = turns
        self._lock = threading.Lock()
        self._lost: dict[TableName, tuple[int, float]] = {}
        """How many in a row, and when the last of them was."""

    def refused(self, request: Request, changes: Sequence[RequestedChange]) -> None:
        """A conflict is the answer to a request: let its client come again in a turn, if it has lost twice."""
        keeper = self._catalog.turns
        if holder_of(request) != OTHER_CLIENTS or keeper is None:
            return
        for change in changes:
            try:
                self._lose(keeper, change)
            except BerglineError as error:  # no answer depends on it
                _LOG.info("could not take a turn on %s: %s", change.name, error)

    def landed(self, request: Request, tables: Sequence[TableName]) -> None:
        """A request has made its change: the turn is over, if there was one."""
        if holder_of(request) != OTHER_CLIENTS:
            return
        for table in tables:
            with self._lock:
                self._lost.pop(table, None)
            keeper = self._catalog.turns
            if keeper is None or not self._turns.is_held_by(table, OTHER_CLIENTS):
                continue
            try:
                keeper.give_back_turn([table], OTHER_CLIENTS)
            except BerglineError as error:  # it ends by itself
                _LOG.info("could not give back the turn on %s: %s", table, error)
            self._turns.look(table)

    def _lose(self, keeper: TurnKeeper, change: RequestedChange) -> None:
        took_ms = _took_ms(self._catalog.load_table(change.name).metadata, change)
        if took_ms is None or took_ms + _COMING_AGAIN_MS > LONGEST_TURN_MS or not self._is_due(change.name):
            return
        if keeper.take_turn([change.name], OTHER_CLIENTS, min(2 * took_ms + _COMING_AGAIN_MS, LONGEST_TURN_MS)):
            with self._lock:
                self._lost.pop(change.name, None)
        self._turns.look(change.name)

    def _is_due(self, table: TableName) -> bool:
        """Whether this is at least the second loss in a row."""
        now = time.monotonic()
        with self._lock:
            number, last_s = self._lost.pop(table, (0, now))
            number = number + 1 if now - last_s < _FORGOTTEN_AFTER_S else 1
            if len(self._lost) >= _MOST_TABLES:
                del self._lost[next(iter(self._lost))]
            self._lost[table] = number, now
        return number >= LOSSES_BEFORE_A_TURN


def _took_ms(metadata: TableMetadata, change: RequestedChange) -> int | None:
    """How long ago the head that a change was worked out on came to be; None if no branch has moved on since.

    On a table that never rests that is how long its client took, from the load to the commit.
    """
    for required in change.requirements:
        if not isinstance(required, AssertRefSnapshotId) or required.snapshot_id is None:
            continue
        ref = metadata.refs.get(required.ref)
        base = metadata.snapshots_by_id.get(required.snapshot_id)
        if ref is not None and base is not None and ref.snapshot_id != required.snapshot_id:
            return max(time.time_ns() // 1_000_000 - base.timestamp_ms, 0)
    return None
