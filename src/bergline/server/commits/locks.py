"""One commit at a time to each table in this process, or those together that waited together.

So none writes a metadata file in vain. Waiting takes no thread: however many wait for one table, threads are left for
others.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Generic, TypeVar

from bergline.catalog.identifiers import TableName
from bergline.server.http.errors import RequestRefused

Release = Callable[[], None]
_MOST_TOGETHER = 64
_MOST_BYTES_TOGETHER = 16 * 1024 * 1024

_Member = TypeVar("_Member")


class _Waiter:
    def __init__(self, size: int) -> None:
        self.size = size
        self.has_turn = False
        self.turn: Future[None] = Future()

    def give_turn(self, others: deque["_Waiter"]) -> Callable[[Release], None]:
        """Take the turn, with the lock of all waiters held; the result starts what it is for, once it is not."""
        del others
        self.has_turn = True
        return self._start

    def _start(self, _: Release) -> None:
        if self.turn.set_running_or_notify_cancel():
            self.turn.set_result(None)


class _GroupWaiter(_Waiter, Generic[_Member]):
    """One that shares its turn with those of its kind that wait next to it."""

    def __init__(self, size: int, member: _Member, start: Callable[[list[_Member], Release], None]) -> None:
        super().__init__(size)
        self._member = member
        self._start_all = start

    def give_turn(self, others: deque[_Waiter]) -> Callable[[Release], None]:
        members, size = [self._member], self.size
        while others and len(members) < _MOST_TOGETHER:
            following = others[0]
            if not isinstance(following, _GroupWaiter) or size + following.size > _MOST_BYTES_TOGETHER:
                break
            others.popleft()
            size += following.size
            members.append(following._member)  # noqa: SLF001  (of the same class)
        return lambda release: self._start_all(members, release)


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

    def take_together(
        self, name: TableName, size: int, member: _Member, start: Callable[[list[_Member], Release], None]
    ) -> None:
        """Start a member once it has the lock of a name, together with those that wait next to it by then.

        `start` is called here or by whoever releases the lock, with a release of its own. RequestRefused as of `take`.
        """
        if not self._wait(name, _GroupWaiter(size, member, start)):
            start([member], partial(self._release, [name]))

    async def _take(self, name: TableName, size: int) -> None:
        waiter = _Waiter(size)
        if not self._wait(name, waiter):
            return
        try:
            await asyncio.wrap_future(waiter.turn)
        except BaseException:
            with self._lock:
                if not waiter.has_turn:
                    self._waiting[name].remove(waiter)
            if waiter.has_turn:
                self._release([name])
            raise

    def _wait(self, name: TableName, waiter: _Waiter) -> bool:
        """Whether the lock must be waited for: if not, it is taken."""
        with self._lock:
            waiting = self._waiting.get(name)
            if waiting is None:
                self._waiting[name] = deque()
                return False
            held = sum(other.size for other in waiting)
            if len(waiting) >= self._max_waiting or (waiting and held + waiter.size > self._max_bytes):
                raise too_many_commits(name)
            waiting.append(waiter)
            return True

    def _release(self, names: Iterable[TableName]) -> None:
        for name in names:
            with self._lock:
                waiting = self._waiting[name]
                if not waiting:
                    del self._waiting[name]
                    continue
                start = waiting.popleft().give_turn(waiting)
            start(partial(self._release, [name]))


def too_many_commits(name: TableName) -> RequestRefused:
    """The error for a commit that may not wait for a table."""
    why = f"too many commits wait for `{name}` already: nothing was changed, try again"
    return RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "1"})
