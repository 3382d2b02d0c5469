"""Pages for those who run the server; they need no token and say nothing about tables."""

from collections.abc import Callable

from bergline.server.handlers.context import Served
from bergline.server.handlers.openapi import openapi_document
from bergline.server.http.response import Answer, answer_json

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def health(_served: Served) -> Answer:
    """That the server runs."""
    return answer_json({"status": "ok"})


def ready(served: Served) -> Answer:
    """That the catalog's database answers and has its tables; an error if not. Nobody shows a token, so it is cheap."""
    served.store.database.check_ready()
    return answer_json({"status": "ready"})


def metrics(served: Served) -> Answer:
    """What the server did, for Prometheus."""
    answers = served.loads.answers
    gauges = {
        "load_cache_hits_total": answers.hits,
        "load_cache_misses_total": answers.misses,
        "load_gzip_answers_total": answers.gzip_answers,
    }
    return Answer(200, served.metrics.render(gauges).encode(), {"content-type": _PROMETHEUS})


def openapi(_served: Served) -> Answer:
    """The server's own OpenAPI document."""
    return Answer(200, openapi_document())


OPERATIONS: dict[str, Callable[[Served], Answer]] = {
    "/health": health,
    "/ready": ready,
    "/metrics": metrics,
    "/openapi.json": openapi,
}
