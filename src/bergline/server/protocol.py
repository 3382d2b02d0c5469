"""HTTP as uvicorn reads it, with an end to how long and how large the head of a request may be."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bergline.server.settings import Settings

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def guarded_protocol(settings: Settings) -> type[HttpToolsProtocol]:
    """The protocol with these limits."""

    class GuardedProtocol(HttpToolsProtocol):
        """Closes connections whose next request does not begin, or whose head does not end, in time."""

        _head_bytes = 0
        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait_for_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            self._head_bytes = 0
            if self._head_timer is None:
                self._wait_for_head()
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            if self._fits(len(url)):
                super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._fits(len(name) + len(value)):
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._stop_waiting()
            if self._fits(0):
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self._fits(0):
                super().on_body(body)

        def on_message_complete(self) -> None:
            if self._fits(0):
                super().on_message_complete()

        def _fits(self, more: int) -> bool:
            """Whether the head is small enough still; if not, the connection ends."""
            self._head_bytes += more
            if self._head_bytes <= settings.max_header_bytes:
                return True
            if not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()
            return False

        def _wait_for_head(self) -> None:
            self._head_timer = self.loop.call_later(settings.body_timeout_s, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

    kind: Any = GuardedProtocol
    return kind  # type: ignore[no-any-return]
