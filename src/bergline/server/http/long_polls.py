"""Requests that wait for something to happen, without a thread: it is asked for again and again, until there is."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from bergline.errors import InvalidInputError
from bergline.governance.events.protocol import NEWEST_HEADER, POSITION_HEADER
from bergline.server.http.request import Request
from bergline.server.http.response import Response

MOST_WAIT_S = 20
_MOST_WAITING = 200
_INTERVAL_S = 0.5
_EMPTY = b"[]"
_MOST_DIGITS = 9


class LongPolls:
    """Those who wait for events; used in the event loop alone."""

    def __init__(self, interval_s: float = _INTERVAL_S, most_waiting: int = _MOST_WAITING) -> None:
        self._interval_s = interval_s
        self._most_waiting = most_waiting
        self._waiting = 0
        self._is_ending = False

    def end(self) -> None:
        """Have those who wait answered soon, and let nobody wait any more."""
        self._is_ending = True

    async def run(self, request: Request, ask: Callable[[], Awaitable[Response]]) -> Response:
        """The first response that has events; the empty one at the end of the wait, or where too many wait."""
        end = time.monotonic() + _wait_s(request)
        response = await ask()
        if self._waiting >= self._most_waiting:
            return response
        self._waiting += 1
        try:
            while not self._is_ending and _is_nothing_new(response) and (left := end - time.monotonic()) > 0:
                await asyncio.sleep(min(left, self._interval_s))
                response = await ask()
        finally:
            self._waiting -= 1
        return response


def _is_nothing_new(response: Response) -> bool:
    headers = response.headers
    return response.body == _EMPTY and headers.get(POSITION_HEADER) == headers.get(NEWEST_HEADER)


def _wait_s(request: Request) -> int:
    text = request.query.get("wait", "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise InvalidInputError(f"expected whole seconds for `wait`, found `{text[:40]}`")
    return min(int(text), MOST_WAIT_S)
