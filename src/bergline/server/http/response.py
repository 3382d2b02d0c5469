"""Responses of handlers."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import msgspec

from bergline.format.encoding.wire import encode_json

JSON = "application/json"


class Response(msgspec.Struct, frozen=True):
    """A status with a body that is JSON unless a header says otherwise."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = {}
    is_hidden: bool = False
    """Whether it says that there is nothing because the caller may not see it."""


class PendingResponse(Response, frozen=True, kw_only=True):
    """A response that is worked out elsewhere: no thread waits for it."""

    running: Future[Any]
    done: Callable[[], Response]
    """The response once that has ended."""
    late: Callable[[], Response]
    """The response if it has not ended in time."""
    wait_s: float | None = None
    """How long to wait; None for as long as a request may take."""


class HeaderName(bytes):
    """The name of a header that uvicorn does not put in lower case."""

    __slots__ = ()

    def lower(self) -> "HeaderName":
        """The name as it is."""
        return self


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as a JSON response."""
    return Response(status, encode_json(value), dict(headers or {}))


NO_CONTENT = Response(204)
