"""Health, readiness, metrics and the OpenAPI document; they need no token and reveal nothing about tables."""

from collections.abc import Callable

from bergline.server.context.context import ServerContext
from bergline.server.handlers.openapi import openapi_document
from bergline.server.http.response import Response, json_response

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def health(_context: ServerContext) -> Response:
    """Liveness."""
    return json_response({"status": "ok"})


def ready(context: ServerContext) -> Response:
    """Readiness: the catalog's database responds and has its tables. Needs no token, so it is cheap."""
    context.store.database.check_ready()
    return json_response({"status": "ready"})


def metrics(context: ServerContext) -> Response:
    """Metrics for Prometheus."""
    responses = context.loads.responses
    gauges = {
        "failed_logins_total": context.authenticator.failures.failed,
        "limited_logins_total": context.authenticator.failures.refused,
        "load_cache_hits_total": responses.hits,
        "load_cache_misses_total": responses.misses,
        "load_gzip_answers_total": responses.gzip_responses,
    }
    return Response(200, context.metrics.render(gauges).encode(), {"content-type": _PROMETHEUS})


def openapi(_context: ServerContext) -> Response:
    """The server's own OpenAPI document."""
    return Response(200, openapi_document())


MonitoringPage = Callable[[ServerContext], Response]
MONITORING: dict[str, MonitoringPage] = {
    "/health": health,
    "/ready": ready,
    "/metrics": metrics,
    "/openapi.json": openapi,
}
