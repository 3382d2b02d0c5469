"""Turns for clients that cannot ask for one, such as PyIceberg, DuckDB and Java.

Their commits are never moved, and beside appends that are they would lose every race. A client of whose commits to a
table two in a row came too late gets a turn when it loads the table to try again: until it commits, others wait.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.turns import LONGEST_TURN_MS
from bergline.errors import BerglineError
from bergline.format.metadata.requirements import AssertRefSnapshotId
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.commits.requested_commits import RequestedChange
from bergline.server.commits.turns import KnownTurns, holder_of, other_client
from bergline.server.http.request import Request

LOSSES_BEFORE_A_TURN: Final = 2
_SENDING_MS: Final = 1000
_FORGOTTEN_AFTER_S: Final = 60.0
_MOST_COUNTED: Final = 10_000
_LOG = logging.getLogger("bergline.server")


class _Losses(NamedTuple):
    """Commits of one client to one table that came too late, one after the other."""

    number: int
    last_s: float
    took_ms: int
    """How long the client took for the last of them."""

    @property
    def bring_turn(self) -> bool:
        return self.number >= LOSSES_BEFORE_A_TURN and time.monotonic() - self.last_s < _FORGOTTEN_AFTER_S


class OvertakenClients:
    """Counts the commits that came too late, by table and client; thread-safe."""

    def __init__(self, catalog: PointerCatalog, turns: KnownTurns) -> None:
        self._catalog = catalog
        self._turns = turns
        self._lock = threading.Lock()
        self._lost: dict[tuple[TableName, str], _Losses] = {}

    def refused(self, request: Request, changes: Sequence[RequestedChange]) -> None:
        """A conflict is the answer to a request: count it, where its branch has moved on meanwhile."""
        holder = other_client(request)
        if holder is None:
            return
        for change in changes:
            with contextlib.suppress(BerglineError):  # no answer depends on it
                base = self._catalog.load_table(change.name)
                took_ms = _took_ms(base.metadata, change.landing(base))
                if took_ms is not None and took_ms + _SENDING_MS <= LONGEST_TURN_MS:
                    self._count(change.name, holder, took_ms)

    def has_turn_to_begin(self, request: Request) -> bool:
        """Whether the load of a table is the begin of a turn."""
        return bool(self._lost) and self._losses(request) is not None

    def begin_turn(self, request: Request) -> None:
        """A client loads a table, to come again: from now on it has its turn, if one is to be had."""
        keeper, losses = self._catalog.turns, self._losses(request) if self._lost else None
        if losses is None or keeper is None:
            return
        table, holder = request.table, holder_of(request) or ""
        try:
            if keeper.take_turn([table], holder, min(2 * losses.took_ms + _SENDING_MS, LONGEST_TURN_MS)):
                self._forget(table, holder)
        except BerglineError as error:  # no answer depends on it
            _LOG.info("could not take a turn on %s: %s", table, error)
        self._turns.look(table)

    def landed(self, request: Request, tables: Sequence[TableName]) -> None:
        """A request has made its change: the turn is over, if there was one."""
        keeper, holder = self._catalog.turns, other_client(request)
        if holder is None or keeper is None:
            return
        for table in tables:
            self._forget(table, holder)
            if not self._turns.is_held_by(table, holder):
                continue
            try:
                keeper.give_back_turn([table], holder)
            except BerglineError as error:  # it ends by itself
                _LOG.info("could not give back the turn on %s: %s", table, error)
            self._turns.look(table)

    def _losses(self, request: Request) -> _Losses | None:
        """The losses for which a client gets a turn on the table that it loads."""
        holder = other_client(request)
        if holder is None:
            return None
        with self._lock:
            found = self._lost.get((request.table, holder))
        return found if found is not None and found.bring_turn else None

    def _count(self, table: TableName, holder: str, took_ms: int) -> None:
        now = time.monotonic()
        with self._lock:
            before = self._lost.pop((table, holder), None)
            is_next = before is not None and now - before.last_s < _FORGOTTEN_AFTER_S
            if len(self._lost) >= _MOST_COUNTED:
                del self._lost[next(iter(self._lost))]
            self._lost[table, holder] = _Losses(before.number + 1 if before and is_next else 1, now, took_ms)

    def _forget(self, table: TableName, holder: str) -> None:
        with self._lock:
            self._lost.pop((table, holder), None)


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
