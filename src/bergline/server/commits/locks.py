"""One commit at a time to each table in this process, so that none writes a metadata file in vain.

Waiting happens in the event loop: however many commits wait for one table, threads are left for others.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

from bergline.catalog.identifiers import TableName
from bergline.server.http.errors import RequestRefused

Release = Callable[[], None]


class _Waiter:
    def __init__(self, size: int) -> None:
        self.size = size
        self.has_turn = False
        self.turn: Future[None] = Future()


class TableLocks:
    """Locks by table name, first come, first served; several event loops may share them."""

    def __init__(self, max_waiting: int, max_bytes: int) -> None:
        self._max_waiting = max_waiting
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._waiting: dict[TableName, deque[_Waiter]] = {}
        """The waiters for each name that is locked."""

    async def take(self, names: Iterable[TableName], size: int = 0) -> Release:
        """Take the locks of all names, always in the same order; the result releases them, from any thread.

        RequestRefused (503), and no lock, if too many wait for one already or hold too many bytes of requests.
        """
        taken: list[TableName] = []
        try:
            for name in sorted(set(names)):
                await self._take(name, size)
                taken.append(name)
        except BaseException:
            self._release(taken)
            raise
        return partial(self._release, taken)

    async def _take(self, name: TableName, size: int) -> None:
        with self._lock:
            waiting = self._waiting.get(name)
            if waiting is None:
                self._waiting[name] = deque()
                return
            held = sum(waiter.size for waiter in waiting)
            if len(waiting) >= self._max_waiting or (waiting and held + size > self._max_bytes):
                raise too_many_commits(name)
            waiter = _Waiter(size)
            waiting.append(waiter)
        try:
            await asyncio.wrap_future(waiter.turn)
        except BaseException:
            with self._lock:
                if not waiter.has_turn:
                    waiting.remove(waiter)
            if waiter.has_turn:
                self._release([name])
            raise

    def _release(self, names: Iterable[TableName]) -> None:
        for name in names:
            with self._lock:
                waiting = self._waiting[name]
                if not waiting:
                    del self._waiting[name]
                    continue
                waiter = waiting.popleft()
                waiter.has_turn = True
            if waiter.turn.set_running_or_notify_cancel():
                waiter.turn.set_result(None)


def too_many_commits(name: TableName) -> RequestRefused:
    """The error for a commit that may not wait for a table."""
    why = f"too many commits wait for `{name}` already: nothing was changed, try again"
    return RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "1"})
