"""A thread pool with a bounded queue."""

import asyncio
import threading

import pytest

from bergline.server.http.errors import RequestRefused
from bergline.server.http.thread_pool import ThreadPool, in_time
from support.fixtures.concurrency import LONG_S


def test_calls_beyond_the_queue_are_refused_until_there_is_room() -> None:
    pool, go_on = ThreadPool("test", 1, 1), threading.Event()
    running, queued = pool.start(go_on.wait, 60), pool.start(int, "7")
    with pytest.raises(RequestRefused) as refused:
        pool.start(int)
    assert (refused.value.response.status, refused.value.response.headers["retry-after"]) == (503, "1")
    go_on.set()
    assert (running.result(60), queued.result(60)) == (True, 7)
    pool.close()


def test_call_that_was_cancelled_leaves_room() -> None:
    pool, go_on = ThreadPool("test", 1, 1), threading.Event()
    running, queued = pool.start(go_on.wait, 60), pool.start(int)
    assert queued.cancel()
    again = pool.start(int, "8")
    go_on.set()
    assert (running.result(60), again.result(60)) == (True, 8)
    pool.close()
    with pytest.raises(RuntimeError):
        pool.start(int)


def test_call_is_made_beside_the_event_loop() -> None:
    pool = ThreadPool("test", 1, 1)

    async def thread() -> threading.Thread:
        return await in_time(pool.start(threading.current_thread), LONG_S)

    try:
        assert asyncio.run(thread()) is not threading.current_thread()
    finally:
        pool.close()


def test_call_that_takes_too_long_is_given_up_and_one_that_never_began_is_refused() -> None:
    pool, over = ThreadPool("test", 1, 1), threading.Event()

    async def hasty() -> None:
        running, queued = pool.start(over.wait, LONG_S), pool.start(int)
        with pytest.raises(TimeoutError):
            await in_time(running, 0.05)
        with pytest.raises(RequestRefused, match="nothing was changed"):
            await in_time(queued, 0.05)

    try:
        asyncio.run(hasty())
    finally:
        over.set()
        pool.close()
