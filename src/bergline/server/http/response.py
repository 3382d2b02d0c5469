"""Responses of the API and of the console, and how they are sent."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import msgspec
from starlette.types import Receive, Scope, Send

from bergline.format.encoding.wire import encode_json

JSON = "application/json"
_WITHOUT_BODY = (204, 304)
_FIRST_ERROR = 400


class HeaderName(bytes):
    """The name of a header that uvicorn does not put in lower case."""

    __slots__ = ()

    def lower(self) -> "HeaderName":
        """The name as it is."""
        return self


_NAMES: Final = {  # Java 1.11 finds them only in this case
    "etag": HeaderName(b"ETag"),
    "cache-control": HeaderName(b"Cache-Control"),
}


class Response(msgspec.Struct, frozen=True):
    """A status with a body that is JSON unless a header says otherwise; it sends itself, as those of Starlette do."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}
    is_hidden: bool = False
    """Whether it says that there is nothing because the caller may not see it."""
    cookies: tuple[str, ...] = ()
    """What the browser is to keep."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, without the body where a client expects none."""
        del receive
        body, headers = self.body, {"content-type": JSON, "content-length": str(len(self.body))} | self.headers
        if not body:
            del headers["content-type"]
        if self.status in _WITHOUT_BODY:
            del headers["content-length"]
        if self.status in _WITHOUT_BODY or scope["method"] == "HEAD":
            body = b""
        if self.status >= _FIRST_ERROR and any(key == b"expect" for key, _ in scope["headers"]):
            headers["connection"] = "close"  # the client may send the body all the same
        encoded = [(_NAMES.get(k) or k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items()]
        encoded += [(b"set-cookie", cookie.encode("latin-1", "replace")) for cookie in self.cookies]
        await send({"type": "http.response.start", "status": self.status, "headers": encoded})
        await send({"type": "http.response.body", "body": body})


class PendingResponse(Response, frozen=True, kw_only=True):
    """A response that is worked out elsewhere: no thread waits for it."""

    running: Future[Any]
    done: Callable[[], Response]
    """The response once that has ended."""
    late: Callable[[], Response]
    """The response if it has not ended in time."""
    wait_s: float | None = None
    """How long to wait; None for as long as a request may take."""


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as a JSON response."""
    return Response(status, encode_json(value), dict(headers or {}))


NO_CONTENT = Response(204)
