"""One commit at a time to each table in this process, or those together that waited together.

So none writes a metadata file in vain. Waiting takes no thread: however many wait for one table, threads are left for
others.

Who commits to several tables takes their locks at once, and holds none while it waits. Those behind it go first as long
as it waits for somebody who came before it; after that its tables are kept free for it. So nobody waits forever, and a
table is not held up by those that wait for another one.
"""

import asyncio
import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar

from bergline.catalog.identifiers import TableName
from bergline.server.http.errors import RequestRefused

Release = Callable[[], None]
_MOST_TOGETHER = 64
_MOST_BYTES_TOGETHER = 16 * 1024 * 1024

_Member = TypeVar("_Member")


class _Waiter:
    """One that wants the locks of all its names; the smaller its number, the earlier it came."""

    def __init__(self, names: tuple[TableName, ...], size: int) -> None:
        self.names = names
        self.size = size
        self.number = 0
        self.has_turn = False
        self.turn: Future[None] = Future()

    def company(self, behind: Iterable["_Waiter"]) -> Sequence["_Waiter"]:
        """Those of the ones behind it that share its turn."""
        del behind
        return ()

    def start(self, company: Sequence["_Waiter"], release: Release) -> None:
        """Begin what the turn is for."""
        del company, release
        if self.turn.set_running_or_notify_cancel():
            self.turn.set_result(None)


class _GroupWaiter(_Waiter, Generic[_Member]):
    """One that shares its turn with those of its kind that wait next to it."""

    def __init__(
        self, name: TableName, size: int, member: _Member, start: Callable[[list[_Member], Release], None]
    ) -> None:
        super().__init__((name,), size)
        self._member = member
        self._start_all = start

    def company(self, behind: Iterable[_Waiter]) -> Sequence[_Waiter]:
        found, size = list[_Waiter](), self.size
        for following in itertools.islice(behind, _MOST_TOGETHER - 1):
            size += following.size
            if not isinstance(following, _GroupWaiter) or size > _MOST_BYTES_TOGETHER:
                break
            found.append(following)
        return found

    def start(self, company: Sequence[_Waiter], release: Release) -> None:
        members = [one._member for one in (self, *company) if isinstance(one, _GroupWaiter)]  # noqa: SLF001  (of the same class)
        self._start_all(members, release)


class TableLocks:
    """Locks by table name, first come, first served; several event loops may share them."""

    def __init__(self, max_waiting: int, max_bytes: int) -> None:
        self._max_waiting = max_waiting
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._held: dict[TableName, int] = {}
        """The names that are locked, with the number of the one that has the lock."""
        self._waiting: dict[TableName, deque[_Waiter]] = {}
        """Those that wait for a name, by their numbers. Nobody can start who waits for names that are not locked."""

    async def take(self, names: Iterable[TableName], size: int = 0) -> Release:
        """Take the locks of all names at once; the result releases them, from any thread.

        RequestRefused (503), and no lock, if too many wait for one already or hold too many bytes of requests.
        """
        waiter = _Waiter(tuple(sorted(set(names))), size)
        if self._must_wait(waiter):
            try:
                await asyncio.wrap_future(waiter.turn)
            except BaseException:
                self._give_up(waiter)
                raise
        return partial(self._release, waiter.names)

    def take_together(
        self, name: TableName, size: int, member: _Member, start: Callable[[list[_Member], Release], None]
    ) -> None:
        """Start a member once it has the lock of a name, together with those that wait next to it by then.

        `start` is called here or by whoever releases the lock, with a release of its own. RequestRefused as of `take`.
        """
        if not self._must_wait(_GroupWaiter(name, size, member, start)):
            start([member], partial(self._release, (name,)))

    def _must_wait(self, waiter: _Waiter) -> bool:
        """Whether the locks must be waited for: if not, they are taken."""
        with self._lock:
            waiter.number = next(self._numbers)
            if self._can_start(waiter):
                self._held |= dict.fromkeys(waiter.names, waiter.number)
                return False
            for name in waiter.names:
                waiting = self._waiting.get(name, ())
                held = sum(other.size for other in waiting)
                if len(waiting) >= self._max_waiting or (waiting and held + waiter.size > self._max_bytes):
                    raise too_many_commits(name)
            for name in waiter.names:
                self._waiting.setdefault(name, deque()).append(waiter)
            return True

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if not waiter.has_turn:
                self._remove(waiter)
            starts = [] if waiter.has_turn else self._next(waiter.names)
        if waiter.has_turn:
            self._release(waiter.names)
        for start in starts:
            start()

    def _release(self, names: Sequence[TableName]) -> None:
        with self._lock:
            for name in names:
                del self._held[name]
            starts = self._next(names)
        for start in starts:
            start()

    def _next(self, names: Sequence[TableName]) -> list[Callable[[], None]]:
        """Give their turns to those that wait for names which are free by now; what starts them."""
        starts: list[Callable[[], None]] = []
        for waiter in self._in_order(names):
            if all(name in self._held for name in names):
                break
            if not self._can_start(waiter):
                continue
            queue = self._waiting[waiter.names[0]]
            company = waiter.company(itertools.islice(queue, queue.index(waiter) + 1, None))
            for one in (waiter, *company):
                self._remove(one)
            waiter.has_turn = True
            self._held |= dict.fromkeys(waiter.names, waiter.number)
            starts.append(partial(waiter.start, company, partial(self._release, waiter.names)))
        return starts

    def _in_order(self, names: Sequence[TableName]) -> Iterator[_Waiter]:
        """Those that wait for one of the names, each once, as they came."""
        queues = [tuple(self._waiting.get(name, ())) for name in names]
        return (next(same) for _, same in itertools.groupby(heapq.merge(*queues, key=_NUMBER), _NUMBER))

    def _can_start(self, waiter: _Waiter) -> bool:
        return not any(name in self._held or self._is_kept(name, waiter) for name in waiter.names)

    def _is_kept(self, name: TableName, waiter: _Waiter) -> bool:
        """Whether a name is kept free for who waits first: nobody that came before that one is ahead of it anywhere."""
        first = self._waiting[name][0] if name in self._waiting else waiter
        return first.number < waiter.number and all(
            self._waiting[its][0] is first and self._held.get(its, first.number) >= first.number for its in first.names
        )

    def _remove(self, waiter: _Waiter) -> None:
        for name in waiter.names:
            waiting = self._waiting[name]
            waiting.remove(waiter)
            if not waiting:
                del self._waiting[name]


_NUMBER: Callable[[_Waiter], int] = attrgetter("number")


def too_many_commits(name: TableName) -> RequestRefused:
    """The error for a commit that may not wait for a table."""
    why = f"too many commits wait for `{name}` already: nothing was changed, try again"
    return RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "1"})
