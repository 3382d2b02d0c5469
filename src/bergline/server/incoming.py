"""Bodies of requests: no larger and no slower than the settings allow."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import Receive

from bergline.server.refusal import Refusal
from bergline.server.settings import Settings


async def read_body(headers: Headers, receive: Receive, settings: Settings) -> bytes:
    """The whole body; Refusal where it is too large, does not come, or its sender goes away."""
    announced = headers.get("content-length", "0")
    if announced.isascii() and announced.isdecimal() and int(announced[:20]) > settings.max_body_bytes:
        raise _too_large(settings)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            return await _read(receive, settings)
    except TimeoutError:
        raise Refusal(
            408, "RequestTimeoutException", "the request's body did not come in time", {"connection": "close"}
        ) from None


async def _read(receive: Receive, settings: Settings) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "BadRequestException", "the client went away before its request was complete")
        part = message.get("body", b"")
        size += len(part)
        if size > settings.max_body_bytes:
            raise _too_large(settings)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(settings: Settings) -> Refusal:
    return Refusal(
        413,
        "BadRequestException",
        f"expected a body of up to {settings.max_body_bytes} bytes, found a larger one",
        {"connection": "close"},
    )
