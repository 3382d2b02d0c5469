"""The access log: a line for each request, as text or JSON.

It has no query strings, bodies or headers but two, so that tokens and credentials are never in it.
"""

import contextlib
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from bergline.governance.events.model import render_event_time
from bergline.server.http.request import CALLER
from bergline.server.http.settings import AccessLogFormat

_LONGEST: Final = 1000
_NONE: Final = "-"
_PLAIN = re.compile(r"[!#-~]+")
_IN_PATH: Final = "".join(map(chr, range(ord("!"), ord("~") + 1))).replace('"', "")


class AccessLogLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request: the caller is known once a token was accepted, the status if there was a response."""

    time: str
    method: str
    path: str
    bytes: int
    ms: float
    status: int | None = None
    caller: str | None = None
    client: str | None = None
    request_id: str | None = None
    user_agent: str | None = None

    def text(self) -> str:
        """A line with a place for each; `-` for what there is not."""
        asked = f'"{self.method} {self.path}"'
        ends = (self.request_id, self.user_agent)
        parts = (self.time, self.client, self.caller, asked, self.status, self.bytes, f"{self.ms:.1f}ms", *ends)
        return " ".join(part if part is asked else _word(part) for part in parts)


class AccessLog:
    """An application that writes a line for each request to another one, after the response."""

    def __init__(self, application: ASGIApp, how: AccessLogFormat, write: Callable[[str], object]) -> None:
        self._application = application
        self._how = how
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of ASGI."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        at_ms, started, status, size = time.time_ns() // 1_000_000, time.perf_counter(), None, 0

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status, size
            await send(message)
            status = message.get("status", status)
            size += len(message.get("body", b""))

        try:
            await self._application(scope, receive, counted)
        finally:
            headers, client = Headers(scope=scope), scope.get("client")
            line = AccessLogLine(
                render_event_time(at_ms),
                scope["method"],
                quote(scope["raw_path"].partition(b"?")[0], safe=_IN_PATH)[:_LONGEST],
                size,
                round((time.perf_counter() - started) * 1000, 3),
                status,
                scope.get(CALLER),
                client[0] if client else None,
                _cut(headers.get("x-request-id")),
                _cut(headers.get("user-agent")),
            )
            text = line.text() if self._how is AccessLogFormat.TEXT else msgspec.json.encode(line).decode()
            with contextlib.suppress(OSError, ValueError):  # a log that cannot be written is no reason to refuse
                self._write(f"{text}\n")


def _cut(text: str | None) -> str | None:
    return text[:_LONGEST] if text else None


def _word(value: object) -> str:
    """A value without spaces, or as a JSON string: one request never looks like two."""
    if value is None:
        return _NONE
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text != _NONE else msgspec.json.encode(text).decode()
