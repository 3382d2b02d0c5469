"""Routing: endpoints are found by the raw segments of the path, before anything is decoded.

So a name may contain a slash, as long as it is percent-encoded.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.routing import Route

from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.server.http.errors import RequestRefused

_PREFIX = "/{prefix}"
_PARAMETER = re.compile(r"\{([^}]*)\}")


class _RawSegment(StringConvertor):
    """A segment as it came; an empty one is refused as a name, and not as a path."""

    regex = "[^/]*"


register_url_convertor("raw", _RawSegment())


def route(path: str, serve: Callable[..., Awaitable[None]], *arguments: Any) -> Route:
    """A route to a method that is called with arguments, and as ASGI has it.

    An endpoint that is a function would be wrapped once for its request, and once more for its exceptions.
    """
    made = Route(path, endpoint=object)
    made.app = partial(serve, *arguments)
    return made


def endpoints_by_path(endpoints: Iterable[Endpoint]) -> dict[str, dict[str, Endpoint]]:
    """The endpoints by path, as Starlette writes paths, and method."""
    found: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        path = _PARAMETER.sub(_as_parameter, endpoint.path.replace(_PREFIX, ""))
        found.setdefault(path, {})[endpoint.method] = endpoint
    return found


def _as_parameter(found: re.Match[str]) -> str:
    """A parameter as Starlette takes it, whose name is an identifier: `{plan_id:raw}` for `{plan-id}`."""
    return f"{{{found[1].replace('-', '_')}:raw}}"


def no_endpoint(raw_path: str) -> RequestRefused:
    """The error for a path that there is not."""
    advice = "; the address that clients are given ends before /v1" if raw_path.endswith("/v1/config") else ""
    return RequestRefused(404, "NotFoundException", f"no endpoint at {raw_path[:200]}{advice}")


def wrong_method(method: str, known: Iterable[str]) -> RequestRefused:
    """The error for a method that a path does not have."""
    allowed = ", ".join(sorted(known))
    why = f"expected one of {allowed}, found {method[:20]}"
    return RequestRefused(405, "UnsupportedOperationException", why, {"allow": allowed})
