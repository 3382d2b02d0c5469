"""Routing: endpoints are found by the raw segments of the path, before anything is decoded.

So a name may contain a slash, as long as it is percent-encoded.
"""

from collections.abc import Iterable

import msgspec

from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.governance.endpoints import ENDPOINTS
from bergline.server.http.errors import RequestRefused

_PREFIX = "{prefix}"


class _Route(msgspec.Struct, frozen=True):
    """A path's segments: fixed text, or the name of a parameter."""

    fixed: tuple[tuple[int, str], ...]
    named: tuple[tuple[int, str], ...]
    endpoints: dict[str, Endpoint]


class Routes:
    """The endpoints by path."""

    def __init__(self, endpoints: tuple[Endpoint, ...] = ENDPOINTS) -> None:
        by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        self._by_length: dict[int, list[_Route]] = {}
        for path, methods in by_path.items():
            segments = [s for s in path.split("/")[1:] if s != _PREFIX]
            fixed = tuple((i, s) for i, s in enumerate(segments) if not s.startswith("{"))
            named = tuple((i, s[1:-1]) for i, s in enumerate(segments) if s.startswith("{"))
            self._by_length.setdefault(len(segments), []).append(_Route(fixed, named, methods))

    def find(self, method: str, raw_path: str) -> tuple[Endpoint, dict[str, str]]:
        """The endpoint, and the names in the path; RequestRefused where there is none."""
        segments = raw_path.split("/")[1:]
        for route in self._by_length.get(len(segments), ()):
            if all(segments[i] == text for i, text in route.fixed):
                endpoint = route.endpoints.get(method)
                if endpoint is None:
                    raise wrong_method(method, route.endpoints)
                return endpoint, {name: segments[i] for i, name in route.named}
        advice = "; the address that clients are given ends before /v1" if raw_path.endswith("/v1/config") else ""
        raise RequestRefused(404, "NotFoundException", f"no endpoint at {raw_path[:200]}{advice}")


def wrong_method(method: str, known: Iterable[str]) -> RequestRefused:
    """The error for a method that a path does not have."""
    allowed = ", ".join(sorted(known))
    why = f"expected one of {allowed}, found {method[:20]}"
    return RequestRefused(405, "UnsupportedOperationException", why, {"allow": allowed})
