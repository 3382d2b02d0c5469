"""Who has a session's settings: one pipeline's step or audits at a time, and others wait until these end.

A step that itself waits for one of those others would wait for ever; the other is refused.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import thread as pool
from types import FrameType
from typing import Any

from pyspark.sql import SparkSession

from bergline.errors import RefusedError
from bergline.spark.backends.choose import backend_of

_LOOK_S = 0.2
"""How often a thread that waits looks whether it is waited for."""
_JOIN = threading.Thread.join.__code__
_RESULTS = {futures.Future.result.__code__, futures.Future.exception.__code__}
_SEVERAL = {futures.wait.__code__, futures.as_completed.__code__}
_RUN = pool._WorkItem.run.__code__  # noqa: SLF001  (only its frame tells which thread runs a call of a pool)


class _Turn:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.holder: tuple[int, str] | None = None


_TURNS: dict[str, _Turn] = {}


@contextlib.contextmanager
def session_turn(spark: SparkSession, what: str) -> Iterator[None]:
    """The session for this thread alone, to do `what`; RefusedError if who has it waits for this thread."""
    turn = _TURNS.setdefault(backend_of(spark).session_id, _Turn())
    while not turn.lock.acquire(timeout=_LOOK_S):
        holder = turn.holder
        if holder is not None and threading.get_ident() in _awaited_by(holder[0]):
            raise RefusedError(
                f"cannot run {what} in this thread: {holder[1]} waits for it, and has the session until it ends",
                hints=["run it in the step's own thread, or on a session of its own: `spark.newSession()`"],
            )
    before = turn.holder
    try:
        turn.holder = (threading.get_ident(), what)
        yield
    finally:
        turn.holder = before
        turn.lock.release()


def _awaited_by(ident: int) -> set[int]:
    """The threads that a thread waits for, and those that they wait for: by `join`, or for the result of a pool."""
    stacks = {thread: list(_stack(frame)) for thread, frame in sys._current_frames().items()}  # noqa: SLF001
    workers = {id(_own(frame).future): thread for thread, stack in stacks.items() for frame in stack if _runs(frame)}
    found, left = set[int](), [ident]
    while left:
        frames = stacks.get(left.pop(), [])
        awaited = {thread for frame in frames for thread in _awaited_in(frame, workers)} - found
        found |= awaited
        left += awaited
    return found


def _awaited_in(frame: FrameType, workers: dict[int, int]) -> set[int]:
    if frame.f_code is _JOIN:
        return {_own(frame).ident}
    if frame.f_code in _RESULTS:
        asked = [_own(frame)]
    elif frame.f_code in _SEVERAL:
        asked = [future for future in tuple(frame.f_locals.get("fs", ())) if not future.done()]
    else:
        return set()
    return {workers[id(future)] for future in asked if id(future) in workers}


def _runs(frame: FrameType) -> bool:
    return frame.f_code is _RUN and _own(frame) is not None


def _own(frame: FrameType) -> Any:
    return frame.f_locals.get("self")


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
