"""One request to the console, and the response to it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Receive, Scope

from bergline.errors import InvalidInputError

MAX_FORM_BYTES = 64 * 1024
_MAX_FIELDS = 200
_TWIN = ".json"
_SECURITY = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # under `no-referrer` browsers hide the origin of our own forms too
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
HTML, JSON_TYPE = "text/html; charset=utf-8", "application/json"


CALLER: Final = "bergline.caller"
"""Where a scope has the name of the caller, once it is known: the server's access log shows it."""


class Visit(msgspec.Struct, frozen=True):
    """A parsed request."""

    method: str
    path: str
    """Without the first slash, and without `.json`."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    is_secure: bool = False
    wants_json: bool = False
    form: Mapping[str, str] = {}
    address: str = "/"
    """Path and query as they were sent."""
    peer: str = ""
    """The network address it comes from."""
    note_caller: Callable[[str], Any] = str
    """Called with the caller's name."""

    @property
    def is_read(self) -> bool:
        """Whether it only asks."""
        return self.method in {"GET", "HEAD"}


class Reply(msgspec.Struct, frozen=True):
    """A response; `headers` may have a name twice."""

    status: int
    body: bytes = b""
    content_type: str = HTML
    headers: tuple[tuple[str, str], ...] = ()

    def encoded_headers(self) -> list[tuple[bytes, bytes]]:
        """All headers, with those that every response has."""
        own = {name for name, _ in self.headers}
        fixed = {"cache-control": "no-store", "content-length": str(len(self.body)), **_SECURITY}
        if self.body:
            fixed["content-type"] = self.content_type
        every = [*((k, v) for k, v in fixed.items() if k not in own), *self.headers]
        return [(name.encode(), value.encode("latin-1", "replace")) for name, value in every]


def redirect(to: str, *headers: tuple[str, str]) -> Reply:
    """Go on with another page."""
    return Reply(303, headers=(("location", to), *headers))


def is_our_address(text: str) -> bool:
    """Whether an address leads to a page of ours: no other site, however browsers read it."""
    return text.startswith("/") and not text.startswith("//") and not set(text) & {"\\", "\r", "\n", "\t"}


async def read_visit(scope: Scope, receive: Receive) -> Visit:
    """The request, with its form; InvalidInputError if that is none, or too large."""
    headers = Headers(scope=scope)
    path = _raw_path(scope)
    query_text = scope["query_string"].decode("latin-1")
    wants_json = path.endswith(_TWIN)
    method = scope["method"]
    form = {} if method in {"GET", "HEAD"} else _fields((await _body(receive)).decode("latin-1"))
    return Visit(
        method,
        _page_path(path.removesuffix(_TWIN)) if wants_json else path,
        _fields(query_text),
        headers,
        cookie_parser(headers.get("cookie", "")),  # cookies of other programs may be broken: each for itself
        scope.get("scheme") == "https",
        wants_json,
        form,
        f"/{path}" + (f"?{query_text}" if query_text else ""),
        _peer(scope),
        partial(scope.__setitem__, CALLER),
    )


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return "" if client is None else str(client[0])


def asks_for_json(scope: Scope) -> bool:
    """Whether a request is for the twin of a page, however broken the rest of it."""
    return _raw_path(scope).endswith(_TWIN)


def _raw_path(scope: Scope) -> str:
    raw: str = scope["path"] if scope.get("raw_path") is None else scope["raw_path"].decode("latin-1")
    return raw.partition("?")[0].removeprefix("/")


def _page_path(path: str) -> str:
    return "" if path == "lake" else path


def twin_of(path: str) -> str:
    """The path of a page's `.json` twin."""
    return f"{path or 'lake'}{_TWIN}"


def _fields(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"))
    except (ValueError, UnicodeDecodeError):
        raise InvalidInputError(f"expected up to {_MAX_FIELDS} fields in UTF-8, found something else") from None


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidInputError("expected a whole form, found a part of one")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_FORM_BYTES:
            raise InvalidInputError(f"expected a form of up to {MAX_FORM_BYTES} bytes, found a larger one")
        if not message.get("more_body", False):
            return b"".join(parts)
