"""A thread pool with a bounded queue."""

import threading

import pytest

from bergline.server.http.errors import RequestRefused
from bergline.server.http.thread_pool import ThreadPool


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
