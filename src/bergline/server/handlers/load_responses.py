"""Answers of loads in the encoding that a client takes; all encodings of one answer have the same weak `ETag`.

Packing and unpacking take longer than sending to a client on the same machine: those get the bytes as they are.
"""

from bergline.server.cache.responses import CachedResponse
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response

_NOT_MODIFIED = 304
_VARY = {"vary": "Accept-Encoding"}


def load_answer(
    context: ServerContext, call: Request, kept: CachedResponse, *, tag: str | None = None, end: bytes | None = None
) -> Response:
    """What was kept, in gzip if it is long and the client takes that; with another end where one is given."""
    headers = _VARY if tag is None else _VARY | {"etag": tag}
    if _is_sent_packed(call, kept):
        return Response(200, context.loads.answers.gzip(kept, end), headers | {"content-encoding": "gzip"})
    return Response(200, kept.plain(end), headers)


def waits_for_packing(call: Request, kept: CachedResponse) -> bool:
    """Whether what was kept must be packed first, which is no work for the event loop."""
    return kept.packed is None and _is_sent_packed(call, kept)


def not_modified(tag: str) -> Response:
    """That the client has it already, in whichever encoding."""
    return Response(_NOT_MODIFIED, headers=_VARY | {"etag": tag})


def _is_sent_packed(call: Request, kept: CachedResponse) -> bool:
    return kept.is_long and not call.is_near and takes_gzip(call.headers.get("accept-encoding"))


_GZIP = ("gzip", "x-gzip", "*")
_PLAIN = ("identity",)


def takes_gzip(header: str | None) -> bool:
    """Whether gzip is welcome, and no less than the plain bytes; who says nothing gets those."""
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
    """How welcome, from 0 to 1; what cannot be read is not."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0
