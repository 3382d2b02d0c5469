"""Pages for those who run the server; they need no token and say nothing about tables."""

from collections.abc import Callable

from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.openapi import openapi_document
from bergline.server.http.response import Response, answer_json

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def health(_context: ServerContext) -> Response:
    """That the server runs."""
    return answer_json({"status": "ok"})


def ready(context: ServerContext) -> Response:
    """That the catalog's database answers and has its tables; an error if not. Nobody shows a token, so it is cheap."""
    context.store.database.check_ready()
    return answer_json({"status": "ready"})


def metrics(context: ServerContext) -> Response:
    """What the server did, for Prometheus."""
    answers = context.loads.answers
    gauges = {
        "load_cache_hits_total": answers.hits,
        "load_cache_misses_total": answers.misses,
        "load_gzip_answers_total": answers.gzip_answers,
    }
    return Response(200, context.metrics.render(gauges).encode(), {"content-type": _PROMETHEUS})


def openapi(_context: ServerContext) -> Response:
    """The server's own OpenAPI document."""
    return Response(200, openapi_document())


OPERATIONS: dict[str, Callable[[ServerContext], Response]] = {
    "/health": health,
    "/ready": ready,
    "/metrics": metrics,
    "/openapi.json": openapi,
}
