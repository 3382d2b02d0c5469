"""The server as an ASGI application: the core is synchronous, in threads beside the event loop."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.endpoints import (
    CANCEL_PLANNING,
    COMMIT_TABLE,
    COMMIT_TRANSACTION,
    COMMIT_VIEW,
    CREATE_VIEW,
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
from bergline.catalog.rest.protocol.table_turns import TURN_HEADER
from bergline.catalog.turns import LONGEST_TURN_MS, TurnManners, TurnTaken, holding_turn, meeting_turns
from bergline.console.web.app import Console
from bergline.console.web.visit import CALLER
from bergline.errors import BerglineError
from bergline.governance.endpoints import ENDPOINTS
from bergline.governance.events.protocol import LIST_EVENTS
from bergline.governance.pull_requests.protocol import LOAD_PULL_REQUEST
from bergline.governance.webhooks.protocol import CREATE_WEBHOOK, TEST_WEBHOOK
from bergline.server.access.cross_origin import check_cross_origin
from bergline.server.access.principal import ANYBODY, Principal
from bergline.server.access.privileges import check_request, is_allowed_at_once
from bergline.server.access.request_audit import REQUEST
from bergline.server.commits.locks import Release
from bergline.server.commits.overtaken_clients import holder_of
from bergline.server.console.served import ServedLake
from bergline.server.grouped_commits import GroupedCommits, WaitingCommit, fail_all
from bergline.server.handlers.commits import committed_tables
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.monitoring import MONITORING, ready
from bergline.server.handlers.registry import HANDLERS
from bergline.server.handlers.tables import load_from_cache
from bergline.server.http.errors import RequestRefused, error_response, response_for
from bergline.server.http.long_polls import LongPolls
from bergline.server.http.request import Request, address_of, is_local
from bergline.server.http.request_bodies import RequestBodies
from bergline.server.http.response import JSON, HeaderName, PendingResponse, Response
from bergline.server.http.routes import Routes, wrong_method
from bergline.server.http.thread_pool import ThreadPool
from bergline.server.idempotency import IdempotentChanges

_Result = TypeVar("_Result")
_LOG = logging.getLogger("bergline.server")
_CHANGES = {"POST", "DELETE"}
_READS = {"GET", "HEAD"}
_HTML = "text/html"
_FIRST_ERROR = 400
_MAX_FORM_BYTES = 64 * 1024  # before a token was checked
_MAX_NAME_BYTES = 64 * 1024
_MAX_TOKENS_WAITING = 100
_NAMES_ONLY = {e.name for e in (RENAME_TABLE, RENAME_VIEW, REGISTER_TABLE, REGISTER_VIEW)}
"""Endpoints whose bodies hold names only."""
_HEADER_NAMES = {  # Java 1.11 finds them only in this case
    "etag": HeaderName(b"ETag"),
    "cache-control": HeaderName(b"Cache-Control"),
}
_COMMITS = (COMMIT_TABLE, COMMIT_VIEW)
_TABLE_COMMITS = (COMMIT_TABLE, COMMIT_TRANSACTION)
_PLANNING = {PLAN_TABLE_SCAN.name, FETCH_PLANNING_RESULT.name, FETCH_SCAN_TASKS.name}
_WITHOUT_EFFECT = {*_PLANNING, CANCEL_PLANNING.name, SIGN_REQUEST.name}
_CALLS_OUT = (CREATE_WEBHOOK, TEST_WEBHOOK)
_CHANGING = frozenset(e.name for e in ENDPOINTS if e.takes_key or e is CREATE_VIEW)


class Application:
    """Routes requests to handlers, and turns every error into the protocol's."""

    def __init__(self, context: ServerContext, *, any_host: bool = False) -> None:
        self.context = context
        self._any_host = any_host
        self._routes = Routes()
        self._console = Console(ServedLake(context, any_host=any_host))
        self._changes = IdempotentChanges(context, context.records)
        self._commits = GroupedCommits(context, self._changes)
        self._bodies = RequestBodies()
        self._loads_in_event_loop = context.records.database.answers_at_once
        threads, queued = context.settings.threads, context.settings.max_queued
        self._pool = ThreadPool("bergline-server", threads, queued)
        self._change_pool = ThreadPool("bergline-server-changes", threads, queued)
        self._slow_pool = ThreadPool("bergline-server-slow", max(threads // 4, 1), queued)
        self._planning_pool = ThreadPool("bergline-server-planning", max(threads // 4, 1), queued)
        known, unknown, issued = (f"bergline-server-{kind}" for kind in ("known-tokens", "tokens", "jwt"))
        self._known_token_pool = ThreadPool(known, max(threads // 4, 1), queued)
        self._token_pool = ThreadPool(unknown, max(threads // 4, 1), min(queued, _MAX_TOKENS_WAITING))
        self._jwt_pool = ThreadPool(issued, max(threads // 4, 1), min(queued, _MAX_TOKENS_WAITING))
        self._polls = LongPolls()
        self._ready_lock = threading.Lock()
        self._ready_check: Future[Response] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The entry point of ASGI."""
        match scope["type"]:
            case "lifespan":
                await self._lifespan(receive, send)
            case "http":
                await self._http(scope, receive, send)

    def end_waits(self) -> None:
        """Answer those who wait for events: the server is about to stop."""
        self._polls.end()

    def close(self) -> None:
        """Finish the requests that are running, and take no more."""
        for pool in (self._pool, self._change_pool, self._slow_pool, self._planning_pool):
            pool.close()
        for pool in (self._known_token_pool, self._token_pool, self._jwt_pool):
            pool.close()
        self.context.plan_workers.close()
        self.context.row_reading.close()
        self._commits.close()
        self._console.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                self.close()
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        if self._is_page(scope):
            status = await self._console.respond(scope, receive, send)
            self.context.request_audit.visited(scope, status)
            self.context.metrics.count("console", status, time.perf_counter() - started)
            return
        name, response = await self._respond(scope, receive)
        self.context.request_audit.answered(scope, name, response)
        self.context.metrics.count(name, response.status, time.perf_counter() - started)
        headers = {"content-type": JSON, "content-length": str(len(response.body))} | response.headers
        if not response.body:
            del headers["content-type"]
        without_body = scope["method"] == "HEAD" or response.status in {204, 304}
        if response.status in {204, 304}:
            del headers["content-length"]
        if response.status >= _FIRST_ERROR and any(key == b"expect" for key, _ in scope["headers"]):
            headers["connection"] = "close"  # the client may send the body all the same
        encoded = [(_HEADER_NAMES.get(k) or k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if without_body else response.body})

    def _is_page(self, scope: Scope) -> bool:
        """Whether a request is for the console: one of its paths, or nothing of the API's that a browser looks for."""
        path = scope["raw_path"].decode("latin-1")
        if self._console.has(path):
            return True
        is_known = path in MONITORING or path.startswith("/v1/") or "/v1/" in path
        return scope["method"] in _READS and not is_known and _HTML in Headers(scope=scope).get("accept", "")

    async def _respond(self, scope: Scope, receive: Receive) -> tuple[str, Response]:
        """The name of the operation, and its response."""
        name, method = "unknown", scope["method"]
        try:
            raw_path = scope["raw_path"].decode("latin-1")
            headers = Headers(scope=scope)
            operation = MONITORING.get(raw_path)
            if operation is not None:
                name = operation.__name__
                return name, await self._monitor(method, operation)
            endpoint, names = self._routes.find(method, raw_path)
            name = endpoint.name
            if not self.context.authenticator.has_tokens and endpoint is not GET_TOKEN:
                check_cross_origin(headers, any_host=self._any_host)
            principal = ANYBODY if endpoint is GET_TOKEN else await self._principal(scope, headers)
            scope[CALLER] = principal.name
            query = QueryParams(scope["query_string"]) if scope["query_string"] else {}
            body = await self._body(endpoint, headers, receive) if method in _CHANGES else b""
            settings = self.context.settings
            request = Request(
                endpoint,
                names,
                query,
                headers,
                body,
                settings.separator,
                principal.name,
                principal.groups,
                is_local=is_local(scope),
                address=address_of(scope),
                max_values=settings.max_json_values,
            )
            scope[REQUEST] = request
            can_be_cached = endpoint is LOAD_TABLE and self._loads_in_event_loop
            can_be_cached = can_be_cached and not self.context.overtaken.has_turn_to_begin(request)
            can_be_cached = can_be_cached and is_allowed_at_once(self.context.access, request)
            if can_be_cached and (found := load_from_cache(self.context, request)):
                return name, found
            if endpoint is LIST_EVENTS:
                return name, await self._polls.run(request, lambda: self._answer(request))
            return name, await self._answer(request)
        except RequestRefused as refusal:
            return name, refusal.response
        except BerglineError as error:
            return name, response_for(error)
        except TimeoutError:
            return name, _timed_out(method, name)
        except Exception:  # noqa: BLE001  (a bug of ours: the client gets a response all the same)
            _LOG.exception("%s failed", name)
            return name, error_response(500, "InternalServerError", "the server failed; its log says why")

    async def _answer(self, request: Request) -> Response:
        """The response; a commit that finds somebody else's turn waits for its end, but no longer than one may last."""
        end = time.monotonic() + LONGEST_TURN_MS / 1000
        if request.endpoint is COMMIT_TABLE:
            await self._wait_for_turn(request, request.table)
        while True:
            try:
                response = await self._with_timeout(await self._start(request))
                return await self._settled(response) if isinstance(response, PendingResponse) else response
            except TurnTaken as taken:
                self._bodies.hold_again(request.body)
                self.context.turns.note(taken.table, taken.turn)
                await self._wait_for_turn(request, taken.table)
                if time.monotonic() > end:
                    request = msgspec.structs.replace(request, heeds_turns=False)

    async def _settled(self, pending: PendingResponse) -> Response:
        """The response to a request that is worked out elsewhere, in time or not."""
        running = asyncio.wrap_future(pending.running)
        running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # `done` raises it
        timeout_s = self.context.settings.request_timeout_s
        await asyncio.wait([running], timeout=timeout_s if pending.wait_s is None else min(pending.wait_s, timeout_s))
        return pending.done() if pending.running.done() else pending.late()

    async def _wait_for_turn(self, request: Request, table: TableName) -> None:
        try:
            await self.context.turns.wait(table, holder_of(request), self._look_for_turn)
        except BaseException:
            self._bodies.release(request.body)
            raise

    async def _look_for_turn(self, table: TableName) -> None:
        with contextlib.suppress(RequestRefused, TimeoutError):  # then what is known has to do
            await self._with_timeout(self._pool.start(self.context.turns.look, table))

    async def _monitor(self, method: str, operation: Callable[[ServerContext], Response]) -> Response:
        """A monitoring page; all but `ready` are served even while every thread is busy."""
        if method not in _READS:
            raise wrong_method(method, _READS)
        if operation is not ready:
            return operation(self.context)
        with self._ready_lock:  # one check for all who ask at the same time
            if self._ready_check is None or self._ready_check.done():
                self._ready_check = self._pool.start(operation, self.context)
            checking = self._ready_check
        return await self._with_timeout(checking)

    async def _body(self, endpoint: Endpoint, headers: Headers, receive: Receive) -> bytes:
        settings = self.context.settings
        limit = settings.max_body_bytes
        if endpoint is GET_TOKEN:
            limit = min(limit, _MAX_FORM_BYTES)
        elif endpoint.name in _NAMES_ONLY:
            limit = min(limit, _MAX_NAME_BYTES)
        return await self._bodies.read(headers, receive, settings, limit)

    async def _principal(self, scope: Scope, headers: Headers) -> Principal:
        """Who asks; tokens that are not known wait for each other alone."""
        authenticator, header, address = self.context.authenticator, headers.get("authorization"), address_of(scope)
        known = authenticator.cached(header)
        if known is not None:
            return known
        authenticator.admit(header, address)
        pool = self._jwt_pool if authenticator.may_wait_for_keys(header) else self._token_pool
        if not authenticator.has_tokens or authenticator.knows(header):
            pool = self._known_token_pool
        return await self._with_timeout(pool.start(authenticator.check, header, address))

    async def _start(self, request: Request) -> Future[Response]:
        """Start the handler of a request in a thread, once it has the locks of the tables that it commits to."""
        if request.endpoint is COMMIT_TABLE and request.heeds_turns and TURN_HEADER not in request.headers:
            return self._join(request)
        try:
            release = await self._take_locks(request)
            try:
                running = self._pool_for(request).start(self._run, request)
            except BaseException:
                release()
                raise
        except BaseException:
            self._bodies.release(request.body)
            raise
        running.add_done_callback(lambda _: release())
        running.add_done_callback(lambda _: self._bodies.release(request.body))
        return running

    def _join(self, request: Request) -> Future[Response]:
        """Let a commit wait for its table, together with others; waiting takes no thread."""
        waiting = WaitingCommit(request)
        waiting.answer.add_done_callback(lambda _: self._bodies.release(request.body))
        try:
            self.context.locks.take_together(request.table, len(request.body), waiting, self._start_together)
        except BaseException:
            waiting.answer.cancel()
            raise
        return waiting.answer

    def _start_together(self, waiting: list[WaitingCommit], release: Release) -> None:
        """Start commits to one table that have its lock."""
        try:
            running = self._change_pool.start(self._commits.run, waiting)
        except Exception as error:  # noqa: BLE001  (there is no room for them, or the server is about to stop)
            release()
            fail_all(waiting, error)
            return
        running.add_done_callback(lambda _: release())

    async def _take_locks(self, request: Request) -> Release:
        """The locks of the tables that a request commits to; waiting for them takes no thread."""
        names: list[TableName] = []
        if request.endpoint is COMMIT_TRANSACTION:
            names = await self._with_timeout(self._pool.start(committed_tables, request))
        elif request.endpoint in _COMMITS:
            names = [request.table]
        try:
            async with asyncio.timeout(self.context.settings.request_timeout_s):
                return await self.context.locks.take(names, len(request.body))
        except TimeoutError:
            raise _busy() from None

    async def _with_timeout(self, running: Future[_Result]) -> _Result:
        """A thread's result; RequestRefused if it does not start in time, TimeoutError if it does not end in time."""
        try:
            timeout_s = self.context.settings.request_timeout_s
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), timeout_s)
        except TimeoutError:
            if running.cancel():
                raise _busy() from None
            raise

    def _pool_for(self, request: Request) -> ThreadPool:
        """A pool of its own for each kind of request that may take long, so that others need not wait."""
        if request.endpoint is GET_TOKEN:
            return self._token_pool
        if request.endpoint.name in _PLANNING or request.endpoint is LOAD_PULL_REQUEST:
            return self._planning_pool
        if "purgeRequested" in request.query or request.endpoint in _CALLS_OUT:
            return self._slow_pool
        return (
            self._change_pool if request.endpoint.name in _CHANGING else self._pool
        )  # writers may wait for the database

    def _run(self, request: Request) -> Response:
        try:
            with self.context.concealing(request):
                check_request(self.context.access, self.context.catalog, request)
            if request.endpoint.name in _CHANGING:
                return self._changes.run(request, lambda: self._handle(request))
            return self._handle(request)
        except BerglineError as error:
            return response_for(request.in_path(error), request.kind)

    def _handle(self, request: Request) -> Response:
        with self.context.concealing(request), meeting_turns(_manners(request)), holding_turn(holder_of(request)):
            return HANDLERS[request.endpoint.name](self.context, request)


def _manners(request: Request) -> TurnManners:
    """What the request does where somebody else has a turn; commits wait in the event loop, all others here."""
    if not request.heeds_turns:
        return TurnManners.IGNORE
    return TurnManners.RAISE if request.endpoint in _TABLE_COMMITS else TurnManners.WAIT


def _busy() -> RequestRefused:
    """The error for a request that was never started."""
    why = "the server is too busy: nothing was changed, try again"
    return RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "5"})


def _timed_out(method: str, name: str) -> Response:
    """The response to a request that takes too long; a change goes on, so its outcome is unknown."""
    if method in _CHANGES and name not in _WITHOUT_EFFECT:
        return error_response(
            504, "CommitStateUnknownException", "the change took too long: find out what became of it"
        )
    return error_response(503, "ServiceUnavailableException", "the response took too long", {"retry-after": "5"})
