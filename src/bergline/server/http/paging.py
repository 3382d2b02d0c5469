"""Paging: a token names the last item of the page before, so pages stay right while items come and go."""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple

from bergline.errors import InvalidInputError

_DEFAULT_SIZE = 1000
_LARGEST_SIZE = 100_000
_MAX_DIGITS = 9


class RequestedPage(NamedTuple):
    """The page that a request asks for: its size, and the parts of the token where the page before ended."""

    size: int
    after: tuple[str, ...] | None


def requested_page(query: Mapping[str, str], parts: int) -> RequestedPage | None:
    """The page that a request asks for, by a token of so many parts; None if it asks for all."""
    token = query.get("pageToken")
    if token is None and "pageSize" not in query:
        return None
    return RequestedPage(_size(query.get("pageSize")), _decode(token, parts) if token else None)


def page_token(*parts: str) -> str:
    """The token for the next page."""
    return base64.urlsafe_b64encode("\0".join(parts).encode()).decode()


def _size(text: str | None) -> int:
    if text is None:
        return _DEFAULT_SIZE
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS and int(text) > 0):
        raise InvalidInputError(f"expected a whole number above 0 for `pageSize`, found `{text[:40]}`")
    return min(int(text), _LARGEST_SIZE)


def _decode(token: str, parts: int) -> tuple[str, ...]:
    try:
        found = tuple(base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode().split("\0"))
    except (binascii.Error, ValueError):
        found = ()
    if len(found) != parts:
        raise InvalidInputError(f"expected a page token of this server, found `{token[:40]}`")
    return found
