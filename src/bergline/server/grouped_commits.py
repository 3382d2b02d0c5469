"""Commits that wait for one table run together, in one thread; each has its own answer."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final

import msgspec

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.protection.caller import acting_for
from bergline.catalog.turns import TurnManners, holding_turn, meeting_turns
from bergline.errors import BerglineError, ConflictError
from bergline.server.access.privileges import check_request
from bergline.server.commits.group_files import GroupFiles
from bergline.server.commits.requested_commits import RequestedChange
from bergline.server.commits.requested_groups import RequestedMember, commit_together
from bergline.server.commits.turns import holder_of
from bergline.server.handlers.commits import commit_table, requested_change
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.tables import table_response
from bergline.server.http.errors import RequestRefused, response_for
from bergline.server.http.request import Request
from bergline.server.http.response import Response
from bergline.server.idempotency import IdempotentChanges, RecordedChange

_FILES_AT_ONCE: Final = 32


class WaitingCommit:
    """A commit that waits for its table; it can be cancelled until it runs."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: Future[Response] = Future()

    def respond(self, act: Callable[[], Response | None]) -> None:
        """Answer with what a call returns or raises; if it returns nothing, the answer comes later."""
        try:
            response = act()
        except BerglineError as error:
            response = response_for(self.request.in_path(error), self.request.kind)
        except Exception as error:  # noqa: BLE001  (of this request, and not of those beside it)
            self.answer.set_exception(error)
            return
        if response is not None:
            self.answer.set_result(response)


def fail_all(waiting: Iterable[WaitingCommit], error: BaseException) -> None:
    """Answer those that have no answer with an error."""
    for one in waiting:
        if not one.answer.done() and (one.answer.running() or one.answer.set_running_or_notify_cancel()):
            one.answer.set_exception(error)


class _CheckedCommit(msgspec.Struct, frozen=True):
    """A commit that its caller may ask for, and what it is to change."""

    waiting: WaitingCommit
    recorded: RecordedChange
    change: RequestedChange


class GroupedCommits:
    """Runs commits to one table, whose lock is held."""

    def __init__(self, context: ServerContext, changes: IdempotentChanges) -> None:
        self._context = context
        self._changes = changes
        self._threads = ThreadPoolExecutor(_FILES_AT_ONCE, thread_name_prefix="bergline-server-files")

    def close(self) -> None:
        """Take no more commits; none is running."""
        self._threads.shutdown()

    def run(self, waiting: Sequence[WaitingCommit]) -> None:
        """Answer all commits that were not cancelled before, whatever happens."""
        started = [one for one in waiting if one.answer.set_running_or_notify_cancel()]
        try:
            together: list[_CheckedCommit] = []
            for one in started:
                one.respond(partial(self._begin, one, together))
            self._commit(together)
        except BaseException as error:
            fail_all(started, error)
            raise

    def _begin(self, one: WaitingCommit, together: list[_CheckedCommit]) -> Response | None:
        """The answer to a commit that is not made with others; None if it is among them from now on."""
        request = one.request
        with self._context.concealment.concealing(request):
            check_request(self._context.access, self._context.catalog, request)
        recorded = self._changes.begin(request)
        if recorded.key is not None and any(other.recorded.key == recorded.key for other in together):
            self._commit(together)  # it was sent twice, and gets the answer of the first
        with acting_for(recorded.caller):
            known = recorded.replayed()
            if known is not None:
                return known
            try:
                with self._context.concealment.concealing(request):
                    change = requested_change(self._context, request)
            except (BerglineError, RequestRefused) as error:
                return recorded.refuse(error)
            if change.creates:
                self._commit(together)
                return recorded.run(lambda: self._create(request))
        together.append(_CheckedCommit(one, recorded, change))
        return None

    def _create(self, request: Request) -> Response:
        with self._context.concealment.concealing(request):
            return commit_table(self._context, request)

    def _commit(self, together: list[_CheckedCommit]) -> None:
        """Make the commits and answer them; there are none after that."""
        checked = tuple(together)
        together.clear()
        if not checked:
            return
        catalog = self._context.catalog
        files = GroupFiles(catalog.io, self._threads) if len(checked) > 1 else None
        members = [RequestedMember(catalog, one.change, one.recorded, files) for one in checked]
        holders = {holder_of(one.waiting.request) for one in checked}
        with meeting_turns(TurnManners.RAISE), holding_turn(holders.pop() if len(holders) == 1 else None):
            results = commit_together(catalog, checked[0].change.name, members, files)
        for one, result in zip(checked, results, strict=True):
            one.waiting.respond(partial(self._answer, one, result))

    def _answer(self, one: _CheckedCommit, result: LoadedTable | Exception) -> Response:
        recorded, overtaken = one.recorded, self._context.overtaken
        with acting_for(recorded.caller):
            if isinstance(result, ConflictError):
                overtaken.refused(recorded.request, [one.change])
            if isinstance(result, Exception):
                return recorded.refuse(self._context.concealment.concealed(recorded.request, result))
            overtaken.landed(recorded.request, [result.name])
            return recorded.answer(lambda: table_response(self._context, recorded.request, result))
