"""From a request to its response: handlers run in threads, with the locks of the tables that they commit to."""

import asyncio
import contextlib
import time
from concurrent.futures import Future
from typing import TypeVar

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.endpoints import COMMIT_TABLE, COMMIT_TRANSACTION, COMMIT_VIEW
from bergline.catalog.rest.protocol.table_turns import TURN_HEADER
from bergline.catalog.turns import LONGEST_TURN_MS, TurnManners, TurnTaken, holding_turn, meeting_turns
from bergline.errors import BerglineError
from bergline.server.access.privileges import check_request
from bergline.server.commits.locks import Release
from bergline.server.commits.turns import holder_of
from bergline.server.context.context import ServerContext
from bergline.server.handlers.commits import committed_tables
from bergline.server.handlers.registry import HANDLERS
from bergline.server.http.errors import RequestRefused, response_for
from bergline.server.http.request import Request
from bergline.server.http.request_bodies import RequestBodies
from bergline.server.http.response import PendingResponse, Response
from bergline.server.http.thread_pool import busy, in_time
from bergline.server.requests.grouped_commits import GroupedCommits, WaitingCommit, fail_all
from bergline.server.requests.idempotency import IdempotentChanges
from bergline.server.requests.request_threads import CHANGING, RequestThreads

_Result = TypeVar("_Result")
_COMMITS = (COMMIT_TABLE, COMMIT_VIEW)
_TABLE_COMMITS = (COMMIT_TABLE, COMMIT_TRANSACTION)


class RequestRunner:
    """Runs the handlers of requests; their bodies count as held until then."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self.threads = RequestThreads(context.settings)
        self.bodies = RequestBodies()
        self._changes = IdempotentChanges(context)
        self._commits = GroupedCommits(context, self._changes)

    def close(self) -> None:
        """Finish the requests that are running, and take no more."""
        self.threads.close()
        self._commits.close()

    async def run(self, request: Request) -> Response:
        """The response; a commit that finds somebody else's turn waits for its end, but no longer than one may last."""
        end = time.monotonic() + LONGEST_TURN_MS / 1000
        if request.endpoint is COMMIT_TABLE:
            await self._wait_for_turn(request, request.table)
        while True:
            try:
                response = await self.in_time(await self._start(request))
                return await self._settled(response) if isinstance(response, PendingResponse) else response
            except TurnTaken as taken:
                self.bodies.hold_again(request.body)
                self._context.turns.note(taken.table, taken.turn)
                await self._wait_for_turn(request, taken.table)
                if time.monotonic() > end:
                    request = msgspec.structs.replace(request, heeds_turns=False)

    async def in_time(self, running: Future[_Result]) -> _Result:
        """What a thread gives within the time of a request."""
        return await in_time(running, self._context.settings.request_timeout_s)

    async def _settled(self, pending: PendingResponse) -> Response:
        """The response to a request that is worked out elsewhere, in time or not."""
        running = asyncio.wrap_future(pending.running)
        running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # `done` raises it
        timeout_s = self._context.settings.request_timeout_s
        await asyncio.wait([running], timeout=timeout_s if pending.wait_s is None else min(pending.wait_s, timeout_s))
        return pending.done() if pending.running.done() else pending.late()

    async def _wait_for_turn(self, request: Request, table: TableName) -> None:
        try:
            await self._context.turns.wait(table, holder_of(request), self._look_for_turn)
        except BaseException:
            self.bodies.release(request.body)
            raise

    async def _look_for_turn(self, table: TableName) -> None:
        with contextlib.suppress(RequestRefused, TimeoutError):  # then what is known has to do
            await self.in_time(self.threads.reads.start(self._context.turns.look, table))

    async def _start(self, request: Request) -> Future[Response]:
        """Start the handler of a request in a thread, once it has the locks of the tables that it commits to."""
        if request.endpoint is COMMIT_TABLE and request.heeds_turns and TURN_HEADER not in request.headers:
            return self._join(request)
        try:
            release = await self._take_locks(request)
            try:
                running = self.threads.of(request).start(self._handled, request)
            except BaseException:
                release()
                raise
        except BaseException:
            self.bodies.release(request.body)
            raise
        running.add_done_callback(lambda _: release())
        running.add_done_callback(lambda _: self.bodies.release(request.body))
        return running

    def _join(self, request: Request) -> Future[Response]:
        """Let a commit wait for its table, together with others; waiting takes no thread."""
        waiting = WaitingCommit(request)
        waiting.answer.add_done_callback(lambda _: self.bodies.release(request.body))
        try:
            self._context.locks.take_together(request.table, len(request.body), waiting, self._start_together)
        except BaseException:
            waiting.answer.cancel()
            raise
        return waiting.answer

    def _start_together(self, waiting: list[WaitingCommit], release: Release) -> None:
        """Start commits to one table that have its lock."""
        try:
            running = self.threads.changes.start(self._commits.run, waiting)
        except Exception as error:  # noqa: BLE001  (there is no room for them, or the server is about to stop)
            release()
            fail_all(waiting, error)
            return
        running.add_done_callback(lambda _: release())

    async def _take_locks(self, request: Request) -> Release:
        """The locks of the tables that a request commits to; waiting for them takes no thread."""
        names: list[TableName] = []
        if request.endpoint is COMMIT_TRANSACTION:
            names = await self.in_time(self.threads.reads.start(committed_tables, request))
        elif request.endpoint in _COMMITS:
            names = [request.table]
        try:
            async with asyncio.timeout(self._context.settings.request_timeout_s):
                return await self._context.locks.take(names, len(request.body))
        except TimeoutError:
            raise busy() from None

    def _handled(self, request: Request) -> Response:
        try:
            with self._context.concealment.concealing(request):
                check_request(self._context.access, self._context.catalog, request)
            if request.endpoint.name in CHANGING:
                return self._changes.run(request, lambda: self._handle(request))
            return self._handle(request)
        except BerglineError as error:
            return response_for(request.in_path(error), request.kind)

    def _handle(self, request: Request) -> Response:
        handler, concealing = HANDLERS[request.endpoint.name], self._context.concealment.concealing
        with concealing(request), meeting_turns(_manners(request)), holding_turn(holder_of(request)):
            return handler(self._context, request)


def _manners(request: Request) -> TurnManners:
    """What the request does where somebody else has a turn; commits wait in the event loop, all others here."""
    if not request.heeds_turns:
        return TurnManners.IGNORE
    return TurnManners.RAISE if request.endpoint in _TABLE_COMMITS else TurnManners.WAIT
