"""Reading of request bodies, with limits on the size, the time and the memory of all together."""

import asyncio
import math
import threading

from starlette.datastructures import Headers
from starlette.types import Receive

from bergline.server.http.errors import RequestRefused
from bergline.server.http.settings import ServerSettings

_PLAIN = "identity"


class RequestBodies:
    """Reads bodies and counts the bytes that are held; safe to use from many threads."""

    def __init__(self) -> None:
        self._held = 0
        self._lock = threading.Lock()

    async def read(self, headers: Headers, receive: Receive, settings: ServerSettings, limit: int) -> bytes:
        """The whole body; RequestRefused if it is too large or too slow, or the client disconnects.

        It counts until `release`. The rest of a refused body is discarded, so that the client can read why.
        """
        encoding = headers.get("content-encoding", _PLAIN)
        if encoding.strip().lower() != _PLAIN:
            why = f"expected a body without Content-Encoding, found `{encoding[:40]}`"
            raise RequestRefused(415, "BadRequestException", why, {"accept-encoding": _PLAIN})
        announced = headers.get("content-length", "0")
        if announced.isascii() and announced.isdecimal() and int(announced[:20]) > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(settings.body_timeout_s):
                await self._read(receive, parts, limit, max(settings.max_held_bytes, limit))
        except TimeoutError:
            self._forget(parts)
            why = "the request's body did not come in time"
            raise RequestRefused(408, "RequestTimeoutException", why, {"connection": "close"}) from None
        except BaseException:
            self._forget(parts)
            raise
        return b"".join(parts)

    def release(self, body: bytes) -> None:
        """The body is not needed any more."""
        self._hold(-len(body))

    def hold_again(self, body: bytes) -> None:
        """A body that was released is needed once more."""
        self._hold(len(body))

    async def _read(self, receive: Receive, parts: list[bytes], most: int, max_held: int) -> None:
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestRefused(400, "BadRequestException", "the client went away before its request was complete")
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise _too_large(most)
            self._hold(len(part), max_held)
            parts.append(part)
            if not message.get("more_body", False):
                return

    def _hold(self, size: int, most: float = math.inf) -> None:
        with self._lock:
            if self._held + size > most:
                why = "too many large requests at once: try again"
                raise RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "1"})
            self._held += size

    def _forget(self, parts: list[bytes]) -> None:
        self._hold(-sum(map(len, parts)))


def _too_large(most: int) -> RequestRefused:
    return RequestRefused(413, "BadRequestException", f"expected a body of up to {most} bytes, found a larger one")
