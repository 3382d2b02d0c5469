"""The server as an application of Starlette: the API, pages for monitoring and the console behind one router."""

import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from concurrent.futures import Future
from typing import Final

from starlette.datastructures import Headers, QueryParams
from starlette.routing import Router
from starlette.types import Message, Receive, Scope, Send

from bergline.catalog.rest.protocol.endpoints import (
    CANCEL_PLANNING,
    FETCH_PLANNING_RESULT,
    FETCH_SCAN_TASKS,
    GET_TOKEN,
    LOAD_TABLE,
    PLAN_TABLE_SCAN,
    REGISTER_TABLE,
    REGISTER_VIEW,
    RENAME_TABLE,
    RENAME_VIEW,
    SIGN_REQUEST,
    Endpoint,
)
from bergline.errors import BerglineError
from bergline.governance.endpoints import ENDPOINTS
from bergline.governance.events.protocol import LIST_EVENTS
from bergline.server.access.cross_origin import check_cross_origin
from bergline.server.access.principal import ANYBODY, Principal
from bergline.server.access.privileges import is_allowed_at_once
from bergline.server.access.request_audit import REQUEST
from bergline.server.console.app import Console
from bergline.server.console.served import ServedLake
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.monitoring import MONITORING, MonitoringPage, ready
from bergline.server.handlers.tables import load_from_cache
from bergline.server.http.errors import RequestRefused, error_response, response_for
from bergline.server.http.lake_refs import check_at_ref, ref_in_path, without_ref
from bergline.server.http.long_polls import LongPolls
from bergline.server.http.request import CALLER, Request, address_of, is_local
from bergline.server.http.response import Response
from bergline.server.http.routes import endpoints_by_path, no_endpoint, route, wrong_method
from bergline.server.request_runner import RequestRunner

_LOG = logging.getLogger("bergline.server")
_CHANGES = {"POST", "DELETE"}
_READS = {"GET", "HEAD"}
_HTML = "text/html"
_UNKNOWN: Final = "unknown"
_CONSOLE: Final = "console"
_AT: Final = "bergline.at"
_MAX_FORM_BYTES = 64 * 1024  # before a token was checked
_MAX_NAME_BYTES = 64 * 1024
_NAMES_ONLY = {e.name for e in (RENAME_TABLE, RENAME_VIEW, REGISTER_TABLE, REGISTER_VIEW)}
"""Endpoints whose bodies hold names only."""
_WITHOUT_EFFECT = {
    e.name for e in (PLAN_TABLE_SCAN, FETCH_PLANNING_RESULT, FETCH_SCAN_TASKS, CANCEL_PLANNING, SIGN_REQUEST)
}


class Application:
    """Routes requests to handlers, and turns every error into the protocol's."""

    def __init__(self, context: ServerContext, *, any_host: bool = False) -> None:
        self.context = context
        self.runner = RequestRunner(context)
        self._any_host = any_host
        self._console = Console(ServedLake(context, any_host=any_host))
        self._loads_in_event_loop = context.records.database.answers_at_once
        self._polls = LongPolls()
        self._ready_lock = threading.Lock()
        self._ready_check: Future[Response] | None = None
        hottest_first = sorted(ENDPOINTS, key=lambda endpoint: endpoint.path != LOAD_TABLE.path)
        self._router = Router(
            [
                *(route(path, self._serve, known) for path, known in endpoints_by_path(hottest_first).items()),
                *(route(path, self._monitor, page) for path, page in MONITORING.items()),
            ],
            redirect_slashes=False,
            default=self._elsewhere,
            lifespan=self._lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of ASGI."""
        if scope["type"] == "http":
            scope["path"], scope[_AT] = without_ref(scope["raw_path"].decode("latin-1"))  # a name may contain a slash
        await self._router(scope, receive, send)

    def end_waits(self) -> None:
        """Answer those who wait for events: the server is about to stop."""
        self._polls.end()

    def close(self) -> None:
        """Finish the requests that are running, and take no more."""
        self.runner.close()
        self.context.plan_workers.close()
        self.context.row_reading.close()
        self._console.close()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[None]:
        yield
        self.close()

    async def _serve(self, endpoints: Mapping[str, Endpoint], scope: Scope, receive: Receive, send: Send) -> None:
        """The endpoint of a path that a method asks for."""
        endpoint = endpoints.get(scope["method"])
        if endpoint is None:
            await self._send(_UNKNOWN, wrong_method(scope["method"], endpoints).response, scope, receive, send)
        else:
            await self._respond(endpoint.name, self._answer(endpoint, scope, receive), scope, receive, send)

    async def _monitor(self, page: MonitoringPage, scope: Scope, receive: Receive, send: Send) -> None:
        await self._respond(page.__name__, self._monitoring_page(page, scope["method"]), scope, receive, send)

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The console for its paths, and for nothing of the API's that a browser looks for."""
        started, path = time.perf_counter(), scope["path"]
        is_looked_for = scope["method"] in _READS and "/v1/" not in path
        if not self._console.has(path) and not (is_looked_for and _HTML in Headers(scope=scope).get("accept", "")):
            await self._send(_UNKNOWN, no_endpoint(path).response, scope, receive, send)
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.context.request_audit.visited(scope, message["status"])
                self.context.metrics.count(_CONSOLE, message["status"], time.perf_counter() - started)
            await send(message)

        await self._console(scope, receive, noted)

    async def _respond(
        self, name: str, responding: Awaitable[Response], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Send the response of an operation, whatever comes of it."""
        started = time.perf_counter()
        try:
            response = await responding
        except RequestRefused as refusal:
            response = refusal.response
        except BerglineError as error:
            response = response_for(error)
        except TimeoutError:
            response = _timed_out(scope["method"], name)
        except Exception:  # noqa: BLE001  (a bug of ours: the client gets a response all the same)
            _LOG.exception("%s failed", name)
            response = error_response(500, "InternalServerError", "the server failed; its log says why")
        await self._send(name, response, scope, receive, send, took_s=time.perf_counter() - started)

    async def _send(
        self, name: str, response: Response, scope: Scope, receive: Receive, send: Send, *, took_s: float = 0.0
    ) -> None:
        """Send a response, which is noted before."""
        self.context.request_audit.answered(scope, name, response)
        self.context.metrics.count(name, response.status, took_s)
        await response(scope, receive, send)

    async def _answer(self, endpoint: Endpoint, scope: Scope, receive: Receive) -> Response:
        """The response of an endpoint to whoever may ask it."""
        headers = Headers(scope=scope)
        if not self.context.authenticator.has_tokens and endpoint is not GET_TOKEN:
            check_cross_origin(headers, any_host=self._any_host)
        principal = ANYBODY if endpoint is GET_TOKEN else await self._principal(scope, headers)
        scope[CALLER] = principal.name
        settings, at = self.context.settings, ref_in_path(scope[_AT])
        request = Request(
            endpoint,
            scope["path_params"],
            QueryParams(scope["query_string"]) if scope["query_string"] else {},
            headers,
            await self._body(endpoint, headers, receive) if endpoint.method in _CHANGES else b"",
            settings.separator,
            principal.name,
            principal.groups,
            is_local=is_local(scope),
            address=address_of(scope),
            max_values=settings.max_json_values,
            at=at,
        )
        scope[REQUEST] = request
        check_at_ref(endpoint, at)
        can_be_cached = endpoint is LOAD_TABLE and self._loads_in_event_loop
        can_be_cached = can_be_cached and not self.context.overtaken.has_turn_to_begin(request)
        can_be_cached = can_be_cached and is_allowed_at_once(self.context.access, request)
        if can_be_cached and (found := load_from_cache(self.context, request)):
            return found
        if endpoint is LIST_EVENTS:
            return await self._polls.run(request, lambda: self.runner.run(request))
        return await self.runner.run(request)

    async def _monitoring_page(self, page: MonitoringPage, method: str) -> Response:
        """A page for monitoring; all but `ready` are served even while every thread is busy."""
        if method not in _READS:
            raise wrong_method(method, _READS)
        if page is not ready:
            return page(self.context)
        with self._ready_lock:  # one check for all who ask at the same time
            if self._ready_check is None or self._ready_check.done():
                self._ready_check = self.runner.threads.reads.start(page, self.context)
            checking = self._ready_check
        return await self.runner.in_time(checking)

    async def _body(self, endpoint: Endpoint, headers: Headers, receive: Receive) -> bytes:
        settings = self.context.settings
        limit = settings.max_body_bytes
        if endpoint is GET_TOKEN:
            limit = min(limit, _MAX_FORM_BYTES)
        elif endpoint.name in _NAMES_ONLY:
            limit = min(limit, _MAX_NAME_BYTES)
        return await self.runner.bodies.read(headers, receive, settings, limit)

    async def _principal(self, scope: Scope, headers: Headers) -> Principal:
        """Who asks."""
        authenticator, header, address = self.context.authenticator, headers.get("authorization"), address_of(scope)
        known = authenticator.recognize(header, address)
        if known is not None:
            return known
        pool = self.runner.threads.of_token(authenticator, header)
        return await self.runner.in_time(pool.start(authenticator.check, header, address))


def _timed_out(method: str, name: str) -> Response:
    """The response to a request that takes too long; a change goes on, so its outcome is unknown."""
    if method in _CHANGES and name not in _WITHOUT_EFFECT:
        return error_response(
            504, "CommitStateUnknownException", "the change took too long: find out what became of it"
        )
    return error_response(503, "ServiceUnavailableException", "the response took too long", {"retry-after": "5"})
