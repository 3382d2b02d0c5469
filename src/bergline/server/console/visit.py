"""One request to the console."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Receive, Scope

from bergline.arguments import shown
from bergline.catalog.at_ref.lake_ref import LakeRef, LakeRefKind, parse_in_path
from bergline.errors import InvalidInputError
from bergline.server.http.request import CALLER, address_of
from bergline.server.http.response import Response

MAX_FORM_BYTES = 64 * 1024
_MAX_FIELDS = 200
_TWIN = ".json"
_READS = {"GET", "HEAD"}
_KINDS = tuple(f"{kind}." for kind in LakeRefKind)


class Visit(msgspec.Struct, frozen=True):
    """A parsed request."""

    method: str
    path: str
    """Without the ref of the lake, the first slash, and `.json`."""
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
    at: LakeRef | None = None
    """The ref of the lake in the path."""
    note_caller: Callable[[str], Any] = str
    """Called with the caller's name."""

    @property
    def main_address(self) -> str:
        """Path and query on `main`."""
        return f"/{_parted(self.address)[1]}"

    @property
    def is_read(self) -> bool:
        """Whether it only asks."""
        return self.method in _READS


def redirect(to: str, *cookies: str) -> Response:
    """Go on with another page."""
    return Response(303, headers={"location": to}, cookies=cookies)


def is_our_address(text: str) -> bool:
    """Whether an address leads to a page of ours: no other site, however browsers read it."""
    return text.startswith("/") and not text.startswith("//") and not set(text) & {"\\", "\r", "\n", "\t"}


async def read_visit(scope: Scope, receive: Receive) -> Visit:
    """The request, with its form; InvalidInputError if that is none, or too large."""
    headers, method = Headers(scope=scope), scope["method"]
    raw_path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    form = {} if method in _READS else _fields((await _body(receive)).decode("latin-1"))
    return Visit(
        method,
        page_path(raw_path),
        _fields(query),
        headers,
        cookie_parser(headers.get("cookie", "")),  # cookies of other programs may be broken: each for itself
        scope.get("scheme") == "https",
        is_twin(raw_path),
        form,
        f"{raw_path}?{query}" if query else raw_path,
        address_of(scope),
        _ref_of(raw_path),
        partial(scope.__setitem__, CALLER),
    )


def is_twin(raw_path: str) -> bool:
    """Whether a path is that of the twin of a page."""
    return raw_path.endswith(_TWIN)


def page_path(raw_path: str) -> str:
    """The path of a page, without ref and first slash; that of the page itself for its twin."""
    path = _parted(raw_path)[1]
    if not is_twin(path):
        return path
    page = path.removesuffix(_TWIN)
    return "" if page == "lake" else page


def twin_of(path: str) -> str:
    """The path of a page's `.json` twin."""
    return f"{path or 'lake'}{_TWIN}"


def _parted(address: str) -> tuple[str, str]:
    """The segment that names a ref of the lake, which may be empty, and the rest without its first slash."""
    address = address.removeprefix("/")
    segment, slash, rest = address.partition("/")
    return (segment, rest) if slash and segment.startswith(_KINDS) else ("", address)


def _ref_of(raw_path: str) -> LakeRef | None:
    """The ref of the lake in a path; InvalidInputError for a text that is none."""
    segment = unquote(_parted(raw_path)[0])
    at = parse_in_path(segment) if segment else None
    if segment and at is None:
        raise InvalidInputError(f"expected a ref of the lake in the path, found {shown(segment)}")
    return at


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
