"""Threads for the work of pages: the event loop does none of it, and a full house says so at once."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bergline.errors import UnavailableError

_Result = TypeVar("_Result")


class PageThreads:
    """A pool of its own, so that pages never keep engines waiting; so many calls wait for a thread, and no more."""

    def __init__(self, number: int = 4, max_waiting: int = 64, timeout_s: float = 120.0) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="bergline-console")
        self._room = threading.Semaphore(number + max_waiting)
        self._timeout_s = timeout_s

    async def run(self, call: Callable[[], _Result]) -> _Result:
        """The result of a call; UnavailableError if too many wait, TimeoutError if it takes too long."""
        if not self._room.acquire(blocking=False):
            raise UnavailableError("too many pages at once: nothing was changed, try again")
        try:
            running = self._pool.submit(call)
        except BaseException:
            self._room.release()
            raise
        running.add_done_callback(lambda _: self._room.release())
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), self._timeout_s)
        except TimeoutError:
            if running.cancel():
                raise UnavailableError("too many pages at once: nothing was changed, try again") from None
            raise

    def close(self) -> None:
        """Let calls under way end, and take no more."""
        self._pool.shutdown()
