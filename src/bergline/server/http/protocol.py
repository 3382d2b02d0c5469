"""uvicorn's HTTP protocol with limits: size and time of a request's head, and how slowly a response may be read."""

import asyncio

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from bergline.server.http.errors import error_response
from bergline.server.http.response import JSON
from bergline.server.http.settings import ServerSettings

_NOT_HTTP = "expected a request in HTTP/1.1, found another message"
_BODY_AFTER_UPGRADE = "expected a body with a content-length in a request that asks for another protocol"
_REFUSED_AT_ONCE = 100
_LINGER_S = 1.0
"""How long a refused client may go on sending: closed at once, it would not see the response."""


class _GuardedProtocol(HttpToolsProtocol):
    """Closes connections whose head does not arrive, or whose response is not read, in time.

    No other protocol is supported: an `Upgrade` is skipped, with the body of its request, which
    the parser would take for the next request.
    """

    settings: ServerSettings
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _unread = 0
    _body_left = 0
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()
        most = self.settings.max_connections
        if len(self.connections) > most + _REFUSED_AT_ONCE:
            self.transport.abort()
        elif len(self.connections) > most:
            why = f"expected up to {most} connections, found more: try again"
            self._refuse(503, "ServiceUnavailableException", why, "retry-after: 1\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.resume_writing()  # so that nothing waits for a client that is gone
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self._unset_keepalive_if_required()
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._wait_for_head()  # blank lines alone begin no request
        while data and not self._is_over:
            data = self._fed(data)

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
        if self._is_over:
            return
        self._stop_waiting()
        self._body_left = self._upgrade_body() if self.parser.should_upgrade() else 0
        if not self._is_over:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self._is_over:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_over and not self._body_left:
            super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._read_timer = self.loop.call_later(self.settings.body_timeout_s, self._check_read)

    def resume_writing(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """As uvicorn's, but in the protocol's JSON."""
        del msg
        self._refuse(400, "BadRequestException", _NOT_HTTP)

    def _fed(self, data: bytes) -> bytes:
        """Feed the parser; what follows an `Upgrade` is returned."""
        if self._body_left:
            part, rest = data[: self._body_left], data[self._body_left :]
            self._body_left -= len(part)
            self.on_body(part)
            if not self._body_left:
                self.on_message_complete()
            return rest
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("")
        except httptools.HttpParserUpgrade as upgrade:
            return data[upgrade.args[0] :]
        return b""

    def _upgrade_body(self) -> int:
        """The length of the body in a request that asks for another protocol."""
        headers = dict(self.headers)
        if b"transfer-encoding" in headers:
            self._refuse(400, "BadRequestException", _BODY_AFTER_UPGRADE)
            return 0
        return int(headers.get(b"content-length", b"0"))

    def _fits(self, more: int) -> bool:
        """Whether the head is still within its limit; if not, the connection is closed."""
        self._head_bytes += more
        if self._head_bytes <= self.settings.max_header_bytes:
            return True
        most = self.settings.max_header_bytes
        self._refuse(431, "BadRequestException", f"expected a head of up to {most} bytes, found a larger one")
        return False

    def _refuse(self, status: int, kind: str, message: str, more: str = "") -> None:
        """Send an error, and close when the client does, or soon."""
        if self._is_over:
            return
        self._is_refused = True
        body = error_response(status, kind, message).body
        head = f"content-type: {JSON}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{more}\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        if self.transport.can_write_eof():  # TLS cannot
            self.transport.write_eof()
        self._stop_waiting()
        self._head_timer = self.loop.call_later(_LINGER_S, self.transport.close)

    @property
    def _is_over(self) -> bool:
        """Whether nothing more is read."""
        return self._is_refused or self.transport.is_closing()

    def _check_read(self) -> None:
        """Abort a connection that has read nothing since the last check."""
        unread = self.transport.get_write_buffer_size()
        if unread >= self._unread:
            self.transport.abort()
            return
        self._unread = unread
        self._read_timer = self.loop.call_later(self.settings.body_timeout_s, self._check_read)

    def _wait_for_head(self) -> None:
        self._head_timer = self.loop.call_later(self.settings.body_timeout_s, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def guarded_protocol(settings: ServerSettings) -> type[_GuardedProtocol]:
    """The protocol with these limits."""
    return type("LimitedProtocol", (_GuardedProtocol,), {"settings": settings})
