"""ThreadPool for the synchronous core: so many calls at once, so many that wait for a thread, and no more."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from bergline.server.http.errors import RequestRefused

Arguments = ParamSpec("Arguments")
_Result = TypeVar("_Result")


class ThreadPool:
    """A pool of threads with an end to how many calls wait for one."""

    def __init__(self, name: str, number: int, max_waiting: int) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix=name)
        self._room = threading.Semaphore(number + max_waiting)

    def start(
        self, call: Callable[Arguments, _Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Future[_Result]:
        """Call as soon as a thread is free; RequestRefused (503) where too many wait for one already."""
        if not self._room.acquire(blocking=False):
            why = "too many requests at once: nothing was changed, try again"
            raise RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "1"})
        try:
            running = self._pool.submit(call, *arguments, **named)
        except BaseException:
            self._room.release()
            raise
        running.add_done_callback(lambda _: self._room.release())
        return running

    def close(self) -> None:
        """Let calls under way end, and take no more."""
        self._pool.shutdown()


async def in_time(running: Future[_Result], timeout_s: float) -> _Result:
    """What a call gives; RequestRefused (503) if it does not start in time, TimeoutError if it does not end in time."""
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), timeout_s)
    except TimeoutError:
        if running.cancel():
            raise busy() from None
        raise


def busy() -> RequestRefused:
    """The error for a request that was never started."""
    why = "the server is too busy: nothing was changed, try again"
    return RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "5"})
