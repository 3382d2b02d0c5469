"""Responses to loads in plain bytes or gzip, as the client accepts; both have the same weak `ETag`.

Clients on the same machine get plain bytes: compressing would take longer than sending.
"""

from bergline.server.cache.response_cache import CachedResponse
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response

_NOT_MODIFIED = 304
_VARY = {"vary": "Accept-Encoding"}


def load_response(
    context: ServerContext,
    request: Request,
    cached: CachedResponse,
    *,
    tag: str | None = None,
    suffix: bytes | None = None,
) -> Response:
    """A cached response, in gzip if it is long and the client accepts that; with another suffix where one is given."""
    headers = _VARY if tag is None else _VARY | {"etag": tag}
    if _is_sent_in_gzip(request, cached):
        return Response(200, context.loads.responses.gzip(cached, suffix), headers | {"content-encoding": "gzip"})
    return Response(200, cached.plain(suffix), headers)


def needs_compression(request: Request, cached: CachedResponse) -> bool:
    """Whether the response must be compressed first, which would block the event loop."""
    return cached.compressed is None and _is_sent_in_gzip(request, cached)


def not_modified(tag: str) -> Response:
    """304: the client has it already, in whichever encoding."""
    return Response(_NOT_MODIFIED, headers=_VARY | {"etag": tag})


def _is_sent_in_gzip(request: Request, cached: CachedResponse) -> bool:
    return cached.is_long and not request.is_local and accepts_gzip(request.headers.get("accept-encoding"))


_GZIP = ("gzip", "x-gzip", "*")
_PLAIN = ("identity",)


def accepts_gzip(header: str | None) -> bool:
    """Whether Accept-Encoding takes gzip and does not prefer plain bytes; without the header they are plain."""
    if not header:
        return False
    weights: dict[str, float] = {}
    for offer in header.split(","):
        name, *parameters = (part.strip().lower() for part in offer.split(";"))
        weights[name] = _weight(parameters)
    gzip = next((weights[name] for name in _GZIP if name in weights), 0.0)
    plain = next((weights[name] for name in _PLAIN if name in weights), 0.0)
    return gzip > 0 and gzip >= plain


def _weight(parameters: list[str]) -> float:
    """The quality value, from 0 to 1; 0 if it cannot be read."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0
