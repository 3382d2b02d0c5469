import asyncio
import threading

import pytest

from bergline.console.web.threads import PageThreads
from bergline.errors import UnavailableError
from support.fixtures.concurrency import LONG_S


def test_work_is_done_beside_the_event_loop_and_a_full_house_says_so() -> None:
    threads, over = PageThreads(1, 1), threading.Event()

    async def meanwhile() -> list[object]:
        running = [asyncio.create_task(threads.run(lambda: over.wait(LONG_S))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError, match="too many pages at once"):
            await threads.run(lambda: True)
        over.set()
        return [await task for task in running]

    try:
        assert asyncio.run(meanwhile()) == [True, True]
        assert asyncio.run(threads.run(threading.current_thread)) is not threading.current_thread()
    finally:
        over.set()
        threads.close()


def test_page_that_takes_too_long_is_given_up() -> None:
    threads, over = PageThreads(1, 1, timeout_s=0.05), threading.Event()
    try:
        with pytest.raises(TimeoutError):
            asyncio.run(threads.run(lambda: over.wait(LONG_S)))
    finally:
        over.set()
        threads.close()
