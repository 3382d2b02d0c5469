"""Routing: endpoints are found by the raw segments of the path, before anything is decoded.

So a name may contain a slash, as long as it is percent-encoded.
"""

from collections.abc import Iterable

from starlette.convertors import Convertor, register_url_convertor

from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.server.http.errors import RequestRefused

_PREFIX = "/{prefix}"


class _RawSegment(Convertor[str]):
    """A segment as it came; an empty one is refused as a name, and not as a path."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("raw", _RawSegment())


def endpoints_by_path(endpoints: Iterable[Endpoint]) -> dict[str, dict[str, Endpoint]]:
    """The endpoints by path, as Starlette writes paths, and method."""
    found: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        path = endpoint.path.replace(_PREFIX, "").replace("}", ":raw}")
        found.setdefault(path, {})[endpoint.method] = endpoint
    return found


def no_endpoint(raw_path: str) -> RequestRefused:
    """The error for a path that there is not."""
    advice = "; the address that clients are given ends before /v1" if raw_path.endswith("/v1/config") else ""
    return RequestRefused(404, "NotFoundException", f"no endpoint at {raw_path[:200]}{advice}")


def wrong_method(method: str, known: Iterable[str]) -> RequestRefused:
    """The error for a method that a path does not have."""
    allowed = ", ".join(sorted(known))
    why = f"expected one of {allowed}, found {method[:20]}"
    return RequestRefused(405, "UnsupportedOperationException", why, {"allow": allowed})
