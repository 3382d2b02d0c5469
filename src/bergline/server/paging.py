"""Pages of a sorted list: a token names the last thing of the page before, so pages hold while others come and go."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from bergline.errors import InvalidInputError

Item = TypeVar("Item")
_DEFAULT_SIZE = 1000
_LARGEST_SIZE = 100_000
_MOST_DIGITS = 9


def page(
    items: Sequence[Item], key: Callable[[Item], tuple[str, ...]], query: Mapping[str, str]
) -> tuple[tuple[Item, ...], str | None]:
    """The items of the page that a request asks for, and the token of the next; all if it asks for none."""
    token = query.get("pageToken")
    if token is None and "pageSize" not in query:
        return tuple(items), None
    size = _size(query.get("pageSize"))
    after = _decode(token) if token else None
    rest = [item for item in items if after is None or key(item) > after]
    shown = tuple(rest[:size])
    return shown, _encode(key(shown[-1])) if len(rest) > size else None


def _size(text: str | None) -> int:
    if text is None:
        return _DEFAULT_SIZE
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0):
        raise InvalidInputError(f"expected a whole number above 0 for `pageSize`, found `{text[:40]}`")
    return min(int(text), _LARGEST_SIZE)


def _encode(key: tuple[str, ...]) -> str:
    return base64.urlsafe_b64encode("\0".join(key).encode()).decode()


def _decode(token: str) -> tuple[str, ...]:
    try:
        return tuple(base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode().split("\0"))
    except (binascii.Error, ValueError) as error:
        raise InvalidInputError(f"expected a page token of this server, found `{token[:40]}`") from error
