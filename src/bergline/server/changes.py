"""Changes that happen once: each with an audit row, and with its key where it has one, in its own transaction."""

import hashlib
import re
import time
from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.records import REQUEST, AnsweredRequest, AuditEntry, Records
from bergline.errors import AlreadyExistsError, BerglineError
from bergline.server.answer import Answer
from bergline.server.call import Call
from bergline.server.refusal import Refusal, answer_for
from bergline.server.replay import replay
from bergline.server.served import Served

_KEY = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SHOWN = 255
_FORGET_EVERY_S = 60.0
_FINAL = range(400, 500)


Changed = tuple[tuple[TableName, str | None], ...]


class Changes:
    """Runs what changes something, and remembers what was answered."""

    def __init__(self, served: Served, records: Records) -> None:
        self._served = served
        self._records = records
        self._forget_at = 0.0

    def run(self, call: Call, act: Callable[[], Answer]) -> Answer:
        """The answer of the change; that of the first request where its key had one before."""
        request = self._request(call)
        if request is None:
            with self._records.database.noting(self._note(call, None)):
                return act()
        found = self._records.find_request(request.request_key)
        if found is not None:
            return replay(self._served, call, found, request)
        self._forget()
        return self._run_first(call, request, act)

    def _run_first(self, call: Call, request: AnsweredRequest, act: Callable[[], Answer]) -> Answer:
        try:
            with self._records.database.noting(self._note(call, request)):
                return act()
        except AlreadyExistsError as error:
            if error.kind == REQUEST:  # its twin came first, and nothing was changed here
                return self._replayed(call, request)
            return self._finish(call, request, answer_for(error, call.kind))
        except BerglineError as error:
            return self._finish(call, request, answer_for(call.in_path(error), call.kind))
        except Refusal as refusal:
            return self._finish(call, request, refusal.answer)

    def _finish(self, call: Call, request: AnsweredRequest, answer: Answer) -> Answer:
        """Remember that a request was refused for good; what may go better another time is not remembered."""
        if answer.status not in _FINAL:
            return answer
        refused = _with(request, status=answer.status, error=answer.body.decode())
        try:
            self._records.finish_request(refused)
        except AlreadyExistsError:
            return self._replayed(call, request)
        return answer

    def _replayed(self, call: Call, request: AnsweredRequest) -> Answer:
        found = self._records.find_request(request.request_key)
        if found is None:
            raise Refusal(503, "ServiceUnavailableException", "the request's twin is not answered yet: try again")
        return replay(self._served, call, found, request)

    def _note(self, call: Call, request: AnsweredRequest | None) -> Callable[[sa.Connection, Changed], None]:
        def note(connection: sa.Connection, changed: Changed) -> None:
            location = changed[0][1] if changed else None
            if request is not None:
                self._records.add_request(connection, _with(request, metadata_location=location))
            agent = call.headers.get("user-agent", "")[:_SHOWN] or None
            entry = AuditEntry(_now_ms(), call.principal, call.endpoint.name, call.resource, agent, location)
            self._records.add_audit(connection, entry)

        return note

    def _request(self, call: Call) -> AnsweredRequest | None:
        key = call.headers.get("idempotency-key") if call.endpoint.takes_key else None
        if key is None:
            return None
        if not _KEY.fullmatch(key):
            raise Refusal(400, "BadRequestException", "expected a UUID as Idempotency-Key, found another text")
        return AnsweredRequest(
            request_key=key.lower(),
            principal=call.principal,
            operation=call.endpoint.name,
            resource=call.resource,
            fingerprint=hashlib.sha256(call.body + repr(sorted(call.query.items())).encode()).hexdigest(),
            status=call.endpoint.status,
            at_ms=_now_ms(),
        )

    def _forget(self) -> None:
        """Now and then remove the requests whose time is over."""
        now = time.monotonic()
        if now >= self._forget_at:
            self._forget_at = now + _FORGET_EVERY_S
            self._records.forget_requests(_now_ms() - 2_000 * self._served.settings.idempotency_lifetime_s)


def _with(request: AnsweredRequest, **fields: object) -> AnsweredRequest:
    return msgspec.structs.replace(request, **fields)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
