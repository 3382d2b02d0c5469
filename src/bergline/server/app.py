"""The server as an ASGI application: one request in, one answer out; the core runs in threads beside the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from bergline.catalog.rest.endpoints import CREATE_VIEW, ENDPOINTS, GET_TOKEN, LOAD_TABLE, PLAN_TABLE_SCAN, Endpoint
from bergline.errors import BerglineError
from bergline.server.answer import JSON, Answer, HeaderName
from bergline.server.call import Call
from bergline.server.changes import Changes
from bergline.server.handlers import HANDLERS
from bergline.server.handlers_tables import load_at_once
from bergline.server.incoming import Bodies
from bergline.server.operations import OPERATIONS, ready
from bergline.server.refusal import Refusal, answer_for, error_answer
from bergline.server.routes import Routes, wrong_method
from bergline.server.served import Served
from bergline.server.visitors import check_visitor

Result = TypeVar("Result")
_LOG = logging.getLogger("bergline.server")
_CHANGES = {"POST", "DELETE"}
_READS = {"GET", "HEAD"}
_FIRST_ERROR = 400
_MOST_FORM_BYTES = 64 * 1024  # of who has shown no token yet
_NAMES = {"etag": HeaderName(b"ETag")}  # Java 1.11 finds it only so
_LOOPBACK = {"127.0.0.1", "::1"}
_CHANGING = frozenset(e.name for e in ENDPOINTS if e.takes_key or e is CREATE_VIEW)


class Application:
    """Routes requests to handlers, and turns everything that goes wrong into the protocol's errors."""

    def __init__(self, served: Served, *, by_any_name: bool = False) -> None:
        self.served = served
        self._by_any_name = by_any_name
        self._routes = Routes()
        self._changes = Changes(served, served.records)
        self._bodies = Bodies()
        self._at_once = served.records.database.answers_at_once
        threads = served.settings.threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="bergline-server")
        self._slow_pool = ThreadPoolExecutor(max(threads // 4, 1), thread_name_prefix="bergline-server-slow")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's event, as ASGI has them."""
        match scope["type"]:
            case "lifespan":
                await self._live(receive, send)
            case "http":
                await self._http(scope, receive, send)

    def close(self) -> None:
        """Let requests under way end, and take no more."""
        for pool in (self._pool, self._slow_pool):
            pool.shutdown()

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
        self.served.metrics.count(name, answer.status, time.perf_counter() - began)
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

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[str, Answer]:
        """The name of the operation, and its answer."""
        name, method = "unknown", scope["method"]
        loop = asyncio.get_running_loop()
        try:
            raw_path = scope["raw_path"].decode("latin-1")
            headers = Headers(scope=scope)
            operation = OPERATIONS.get(raw_path)
            if operation is not None:
                name = operation.__name__
                return name, await self._operate(method, operation)
            endpoint, names = self._routes.find(method, raw_path)
            name = endpoint.name
            if not self.served.door.has_tokens and endpoint is not GET_TOKEN:
                check_visitor(headers, by_any_name=self._by_any_name)
            principal = "" if endpoint is GET_TOKEN else await self._principal(headers.get("authorization"))
            query = QueryParams(scope["query_string"]) if scope["query_string"] else {}
            body = await self._body(endpoint, headers, receive) if method in _CHANGES else b""
            separator, is_near = self.served.settings.separator, _is_near(scope)
            call = Call(endpoint, names, query, headers, body, separator, principal, is_near)
            if endpoint is LOAD_TABLE and self._at_once and (found := load_at_once(self.served, call)):
                return name, found
            end = time.monotonic() + self.served.settings.request_timeout_s
            running = loop.run_in_executor(self._pool_for(call), self._run, call, end)
            running.add_done_callback(lambda _: self._bodies.let_go(body))
            return name, await self._in_time(running)
        except Refusal as refusal:
            return name, refusal.answer
        except BerglineError as error:
            return name, answer_for(error)
        except TimeoutError:
            return name, _too_slow(method)
        except Exception:  # noqa: BLE001  (a mistake of ours: the client gets an answer all the same)
            _LOG.exception("%s failed", name)
            return name, error_answer(500, "InternalServerError", "the server failed; its log says why")

    async def _operate(self, method: str, operation: Callable[[Served], Answer]) -> Answer:
        """A page for those who run the server; that it runs is said also while all threads wait for something."""
        if method not in _READS:
            raise wrong_method(method, _READS)
        if operation is not ready:
            return operation(self.served)
        return await self._in_time(asyncio.get_running_loop().run_in_executor(self._pool, operation, self.served))

    async def _body(self, endpoint: Endpoint, headers: Headers, receive: Receive) -> bytes:
        settings = self.served.settings
        most = _MOST_FORM_BYTES if endpoint is GET_TOKEN else settings.max_body_bytes
        return await self._bodies.read(headers, receive, settings, most)

    async def _principal(self, header: str | None) -> str:
        door = self.served.door
        known = door.remembered(header)
        if known is None:
            known = await self._in_time(asyncio.get_running_loop().run_in_executor(self._pool, door.check, header))
        return known

    async def _in_time(self, running: asyncio.Future[Result]) -> Result:
        """What a thread comes to; TimeoutError where that takes too long, and it goes on."""
        return await asyncio.wait_for(asyncio.shield(running), self.served.settings.request_timeout_s)

    def _pool_for(self, call: Call) -> ThreadPoolExecutor:
        """Threads of their own for what may take long, so that it is in nobody's way."""
        return self._slow_pool if call.endpoint is PLAN_TABLE_SCAN or "purgeRequested" in call.query else self._pool

    def _run(self, call: Call, end: float) -> Answer:
        if time.monotonic() > end:  # the client was told already, and does not expect it to begin any more
            return _too_slow(call.endpoint.method)
        handler = HANDLERS[call.endpoint.name]
        try:
            if call.endpoint.name in _CHANGING:
                return self._changes.run(call, lambda: handler(self.served, call))
            return handler(self.served, call)
        except BerglineError as error:
            return answer_for(call.in_path(error), call.kind)


def _is_near(scope: Scope) -> bool:
    """Whether a request comes from the same machine; a proxy there says whom it speaks for."""
    client = scope.get("client") or ("",)
    return client[0] in _LOOPBACK


def _too_slow(method: str) -> Answer:
    """That a request took too long; one that changes something goes on, and nobody knows yet how it ends."""
    if method in _CHANGES:
        return error_answer(504, "CommitStateUnknownException", "the change took too long: find out what became of it")
    return error_answer(503, "ServiceUnavailableException", "the answer took too long", {"retry-after": "5"})
