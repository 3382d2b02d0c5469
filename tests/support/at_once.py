"""Work in several threads at the same time, with an end to how long that may take."""

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

LONG_S = 200
"""Seconds, far more than anything takes, and less than a test is given."""


def run_for_each(work: Callable[[Any], Any], arguments: Iterable[Any]) -> None:
    """One piece of work for each argument, all at the same time; see `run_at_once`."""
    run_at_once(*(partial(work, argument) for argument in arguments))


def run_at_once(*works: Callable[[], Any]) -> None:
    """Each in a thread of its own, until all have ended; what one of them raises is raised."""
    together = AtOnce(*works)
    together.start()
    together.join()


class AtOnce:
    """Threads that begin at the same moment, and are in nobody's way if they never end."""

    def __init__(self, *works: Callable[[], Any]) -> None:
        self._begin = threading.Barrier(len(works), timeout=LONG_S)
        self._errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(work,), daemon=True) for work in works]

    def start(self) -> None:
        """Let them begin."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until all have ended; raises what one of them raised, and fails the test if one hangs."""
        end = time.monotonic() + LONG_S
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0))
        if self._errors:
            raise self._errors[0]
        if any(thread.is_alive() for thread in self._threads):
            pytest.fail(f"a thread has not ended after {LONG_S} seconds")

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._begin.wait()
            work()
        except BaseException as error:  # noqa: BLE001  (raised again in the test's own thread)
            self._errors.append(error)
