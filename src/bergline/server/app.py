"""The server as an ASGI application: one request in, one answer out; the core runs in threads beside the event loop."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.endpoints import (
    COMMIT_TABLE,
    COMMIT_TRANSACTION,
    COMMIT_VIEW,
    CREATE_VIEW,
    ENDPOINTS,
    FETCH_SCAN_TASKS,
    GET_TOKEN,
    LOAD_TABLE,
    PLAN_TABLE_SCAN,
    REGISTER_TABLE,
    REGISTER_VIEW,
    RENAME_TABLE,
    RENAME_VIEW,
    Endpoint,
)
from bergline.errors import BerglineError
from bergline.server.access.browsers import check_visitor
from bergline.server.changes import Changes
from bergline.server.commits.locks import Release
from bergline.server.handlers.commits import committed_tables
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.operations import OPERATIONS, ready
from bergline.server.handlers.registry import HANDLERS
from bergline.server.handlers.tables import load_at_once
from bergline.server.http.bodies import Bodies
from bergline.server.http.errors import RequestRefused, answer_for, error_answer
from bergline.server.http.request import Request
from bergline.server.http.response import JSON, HeaderName, Response
from bergline.server.http.routes import Routes, wrong_method
from bergline.server.http.threads import Threads

_Result = TypeVar("_Result")
_LOG = logging.getLogger("bergline.server")
_CHANGES = {"POST", "DELETE"}
_READS = {"GET", "HEAD"}
_FIRST_ERROR = 400
_MOST_FORM_BYTES = 64 * 1024  # of who has shown no token yet
_MOST_NAME_BYTES = 64 * 1024
_OF_NAMES = {e.name for e in (RENAME_TABLE, RENAME_VIEW, REGISTER_TABLE, REGISTER_VIEW)}
"""Whose bodies hold names alone."""
_NAMES = {"etag": HeaderName(b"ETag")}  # Java 1.11 finds it only so
_LOOPBACK = {"127.0.0.1", "::1"}
_COMMITS = {COMMIT_TABLE.name, COMMIT_VIEW.name}
_PLANNING = {PLAN_TABLE_SCAN.name, FETCH_SCAN_TASKS.name}
_CHANGING = frozenset(e.name for e in ENDPOINTS if e.takes_key or e is CREATE_VIEW)


class Application:
    """Routes requests to handlers, and turns everything that goes wrong into the protocol's errors."""

    def __init__(self, context: ServerContext, *, by_any_name: bool = False) -> None:
        self.context = context
        self._by_any_name = by_any_name
        self._routes = Routes()
        self._changes = Changes(context, context.records)
        self._bodies = Bodies()
        self._at_once = context.records.database.answers_at_once
        threads, queued = context.settings.threads, context.settings.max_queued
        self._pool = Threads("bergline-server", threads, queued)
        self._change_pool = Threads("bergline-server-changes", threads, queued)
        self._slow_pool = Threads("bergline-server-slow", max(threads // 4, 1), queued)
        self._planning_pool = Threads("bergline-server-planning", max(threads // 4, 1), queued)
        self._look_lock = threading.Lock()
        self._look: Future[Response] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's event, as ASGI has them."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._http(scope, receive, send)

    def close(self) -> None:
        """Let requests under way end, and take no more."""
        for pool in (self._pool, self._change_pool, self._slow_pool, self._planning_pool):
            pool.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                self.close()
                return

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        name, answer = await self._answer(scope, receive)
        self.context.metrics.count(name, answer.status, time.perf_counter() - began)
        headers = {"content-type": JSON, "content-length": str(len(answer.body))} | answer.headers
        if not answer.body:
            del headers["content-type"]
        without_body = scope["method"] == "HEAD" or answer.status in {204, 304}
        if answer.status in {204, 304}:
            del headers["content-length"]
        if answer.status >= _FIRST_ERROR and any(key == b"expect" for key, _ in scope["headers"]):
            headers["connection"] = "close"  # nobody knows whether a body comes that was not asked for
        encoded = [(_NAMES.get(k) or k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if without_body else answer.body})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[str, Response]:
        """The name of the operation, and its answer."""
        name, method = "unknown", scope["method"]
        try:
            raw_path = scope["raw_path"].decode("latin-1")
            headers = Headers(scope=scope)
            operation = OPERATIONS.get(raw_path)
            if operation is not None:
                name = operation.__name__
                return name, await self._operate(method, operation)
            endpoint, names = self._routes.find(method, raw_path)
            name = endpoint.name
            if not self.context.authenticator.has_tokens and endpoint is not GET_TOKEN:
                check_visitor(headers, by_any_name=self._by_any_name)
            principal = "" if endpoint is GET_TOKEN else await self._principal(headers.get("authorization"))
            query = QueryParams(scope["query_string"]) if scope["query_string"] else {}
            body = await self._body(endpoint, headers, receive) if method in _CHANGES else b""
            settings, is_near = self.context.settings, _is_near(scope)
            call = Request(
                endpoint, names, query, headers, body, settings.separator, principal, is_near, settings.max_json_values
            )
            if endpoint is LOAD_TABLE and self._at_once and (found := load_at_once(self.context, call)):
                return name, found
            return name, await self._in_time(await self._started(call))
        except RequestRefused as refusal:
            return name, refusal.answer
        except BerglineError as error:
            return name, answer_for(error)
        except TimeoutError:
            return name, _too_slow(method, name)
        except Exception:  # noqa: BLE001  (a mistake of ours: the client gets an answer all the same)
            _LOG.exception("%s failed", name)
            return name, error_answer(500, "InternalServerError", "the server failed; its log says why")

    async def _operate(self, method: str, operation: Callable[[ServerContext], Response]) -> Response:
        """A page for those who run the server; that it runs is said also while all threads wait for something."""
        if method not in _READS:
            raise wrong_method(method, _READS)
        if operation is not ready:
            return operation(self.context)
        with self._look_lock:  # however many ask, one looks
            if self._look is None or self._look.done():
                self._look = self._pool.start(operation, self.context)
            looking = self._look
        return await self._in_time(looking)

    async def _body(self, endpoint: Endpoint, headers: Headers, receive: Receive) -> bytes:
        settings = self.context.settings
        most = settings.max_body_bytes
        if endpoint is GET_TOKEN:
            most = min(most, _MOST_FORM_BYTES)
        elif endpoint.name in _OF_NAMES:
            most = min(most, _MOST_NAME_BYTES)
        return await self._bodies.read(headers, receive, settings, most)

    async def _principal(self, header: str | None) -> str:
        authenticator = self.context.authenticator
        known = authenticator.remembered(header)
        if known is None:
            known = await self._in_time(self._pool.start(authenticator.check, header))
        return known

    async def _started(self, call: Request) -> Future[Response]:
        """The handler of a request in a thread, once it has the locks of the tables that it commits to."""
        try:
            release = await self._locked(call)
            try:
                running = self._pool_for(call).start(self._run, call)
            except BaseException:
                release()
                raise
        except BaseException:
            self._bodies.let_go(call.body)
            raise
        running.add_done_callback(lambda _: release())
        running.add_done_callback(lambda _: self._bodies.let_go(call.body))
        return running

    async def _locked(self, call: Request) -> Release:
        """The locks of the tables that a request commits to, which are waited for without a thread."""
        names: list[TableName] = []
        if call.endpoint is COMMIT_TRANSACTION:
            names = await self._in_time(self._pool.start(committed_tables, call))
        elif call.endpoint.name in _COMMITS:
            names = [call.table]
        try:
            async with asyncio.timeout(self.context.settings.request_timeout_s):
                return await self.context.locks.take(names, len(call.body))
        except TimeoutError:
            raise _not_begun() from None

    async def _in_time(self, running: Future[_Result]) -> _Result:
        """What a thread comes to; Refusal where it does not begin in time, TimeoutError where it goes on for longer."""
        try:
            timeout_s = self.context.settings.request_timeout_s
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(running)), timeout_s)
        except TimeoutError:
            if running.cancel():
                raise _not_begun() from None
            raise

    def _pool_for(self, call: Request) -> Threads:
        """Threads of their own for what may take long, so that it is in nobody's way."""
        if call.endpoint.name in _PLANNING:
            return self._planning_pool
        if "purgeRequested" in call.query:
            return self._slow_pool
        return self._change_pool if call.endpoint.name in _CHANGING else self._pool  # writers may wait for the database

    def _run(self, call: Request) -> Response:
        handler = HANDLERS[call.endpoint.name]
        try:
            if call.endpoint.name in _CHANGING:
                return self._changes.run(call, lambda: handler(self.context, call))
            return handler(self.context, call)
        except BerglineError as error:
            return answer_for(call.in_path(error), call.kind)


def _is_near(scope: Scope) -> bool:
    """Whether a request comes from the same machine; a proxy there says whom it speaks for."""
    client = scope.get("client") or ("",)
    return client[0] in _LOOPBACK


def _not_begun() -> RequestRefused:
    """That a request waited too long for its turn."""
    why = "the server is too busy: nothing was changed, try again"
    return RequestRefused(503, "ServiceUnavailableException", why, {"retry-after": "5"})


def _too_slow(method: str, name: str) -> Response:
    """That a request took too long; one that changes something goes on, and nobody knows yet how it ends."""
    if method in _CHANGES and name not in _PLANNING:
        return error_answer(504, "CommitStateUnknownException", "the change took too long: find out what became of it")
    return error_answer(503, "ServiceUnavailableException", "the answer took too long", {"retry-after": "5"})
