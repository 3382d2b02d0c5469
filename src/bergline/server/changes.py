"""Changes that happen once: each with an audit row, and with its key where it has one, in its own transaction."""

import hashlib
import re
import time
from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import LoadTableResult
from bergline.catalog.rest.protocol.endpoints import CREATE_NAMESPACE
from bergline.catalog.sql.records import REQUEST, AnsweredRequest, AuditEntry, Records
from bergline.errors import AlreadyExistsError, BerglineError, CommitUnknownError, NotFoundError, StorageError
from bergline.server.cache.loads import entity_tag
from bergline.server.handlers.context import ServerContext
from bergline.server.handlers.credentials import made_with_keys, wants_keys
from bergline.server.http.errors import RequestRefused, answer_for
from bergline.server.http.request import Request
from bergline.server.http.response import Response

_KEY = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SHOWN = 255
_FORGET_EVERY_S = 60.0
_FINAL = range(400, 500)
_MOST_KEPT = 1024 * 1024  # of an answer that nothing but its bytes can give again


MovedTables = tuple[tuple[TableName, str | None], ...]


class Changes:
    """Runs what changes something, and remembers what was answered."""

    def __init__(self, context: ServerContext, records: Records) -> None:
        self._context = context
        self._records = records
        self._forget_at = 0.0

    def run(self, call: Request, act: Callable[[], Response]) -> Response:
        """The answer of the change; that of the first request where its key had one before."""
        request = self._request(call)
        if request is None:
            with self._records.database.noting(self._note(call, None)):
                return act()
        found = self._records.find_request(request.request_key)
        if found is not None:
            return replay(self._context, call, found, request)
        self._forget()
        return self._run_first(call, request, act)

    def _run_first(self, call: Request, request: AnsweredRequest, act: Callable[[], Response]) -> Response:
        noted = False

        def note(connection: sa.Connection, changed: MovedTables) -> None:
            nonlocal noted
            noted = True
            take_note(connection, changed)

        take_note = self._note(call, request)
        try:
            with self._records.database.noting(note):
                answer = act()
        except AlreadyExistsError as error:
            if error.kind == REQUEST:  # its twin came first, and nothing was changed here
                return self._replayed(call, request)
            answer = answer_for(error, call.kind)
        except (StorageError, CommitUnknownError):
            known = self._found_out(call, request)
            if known is None:
                raise
            return known
        except BerglineError as error:
            answer = answer_for(call.in_path(error), call.kind)
        except RequestRefused as refusal:
            answer = refusal.answer
        else:
            if noted:
                return answer
        return self._finish(call, request, answer)

    def _finish(self, call: Request, request: AnsweredRequest, answer: Response) -> Response:
        """Remember the answer to a request that changed nothing; what may go better another time is not remembered."""
        if answer.status >= _FINAL.stop or len(answer.body) > _MOST_KEPT:
            return answer
        try:
            self._records.finish_request(_with(request, status=answer.status, body=answer.body.decode()))
        except AlreadyExistsError:
            return self._replayed(call, request)
        except BerglineError as error:  # a twin may have changed what stands against this one
            raise CommitUnknownError(
                f"cannot find out whether the request with this key was answered before: {error}",
                table=request.resource,
                metadata_location=None,
                hints=["send it again with its key"],
            ) from error
        return answer

    def _found_out(self, call: Request, request: AnsweredRequest) -> Response | None:
        """The answer to a change of which the database did not say whether it happened; None if nobody knows."""
        try:
            found = self._records.find_request(request.request_key)
            return None if found is None else replay(self._context, call, found, request)
        except BerglineError:
            return None

    def _replayed(self, call: Request, request: AnsweredRequest) -> Response:
        found = self._records.find_request(request.request_key)
        if found is None:
            raise RequestRefused(
                503, "ServiceUnavailableException", "the request's twin is not answered yet: try again"
            )
        return replay(self._context, call, found, request)

    def _note(self, call: Request, request: AnsweredRequest | None) -> Callable[[sa.Connection, MovedTables], None]:
        def note(connection: sa.Connection, changed: MovedTables) -> None:
            if request is not None:
                location = changed[0][1] if changed else None
                told = call.precomputed.answer
                body = None if told is None else told.body.decode()
                self._records.add_request(connection, _with(request, metadata_location=location, body=body))
            agent = call.headers.get("user-agent", "")[:_SHOWN] or None
            for resource, location in _resources(call, changed):
                entry = AuditEntry(_now_ms(), call.principal, call.endpoint.name, resource, agent, location)
                self._records.add_audit(connection, entry)

        return note

    def _request(self, call: Request) -> AnsweredRequest | None:
        key = call.headers.get("idempotency-key") if call.endpoint.takes_key else None
        if key is None:
            return None
        if not _KEY.fullmatch(key):
            raise RequestRefused(400, "BadRequestException", "expected a UUID as Idempotency-Key, found another text")
        return AnsweredRequest(
            request_key=key.lower(),
            principal=call.principal,
            operation=call.endpoint.name,
            resource=call.resource,
            fingerprint=hashlib.sha256(call.body + repr((sorted(call.query.items()), call.parts)).encode()).hexdigest(),
            status=call.endpoint.status,
            at_ms=_now_ms(),
        )

    def _forget(self) -> None:
        """Now and then remove the requests whose time is over."""
        now = time.monotonic()
        if now >= self._forget_at:
            self._forget_at = now + _FORGET_EVERY_S
            self._records.forget_requests(_now_ms() - 2_000 * self._context.settings.idempotency_lifetime_s)


def _resources(call: Request, changed: MovedTables) -> list[tuple[str, str | None]]:
    """What was changed, and where its metadata is since: each table or view, or a namespace."""
    if changed:
        return [(f"{call.kind}/{'.'.join(name.namespace)}/{name.name}", location) for name, location in changed]
    if call.endpoint is CREATE_NAMESPACE:
        return [(f"namespace/{'.'.join(call.read().namespace)}", None)]
    return [(f"namespace/{'.'.join(call.namespace)}", None)]


def _with(request: AnsweredRequest, **fields: object) -> AnsweredRequest:
    return msgspec.structs.replace(request, **fields)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_BOUND = ("principal", "operation", "resource", "fingerprint")


def replay(context: ServerContext, call: Request, found: AnsweredRequest, asked: AnsweredRequest) -> Response:
    """The same answer again; Refusal where the key belongs to another request."""
    if any(getattr(found, name) != getattr(asked, name) for name in _BOUND):
        raise RequestRefused(
            422, "UnprocessableEntityException", "expected a new Idempotency-Key, found one of another request"
        )
    if found.body is not None:
        return Response(found.status, found.body.encode())
    if found.metadata_location is None or call.endpoint.response is None:
        return Response(found.status)
    return _load(context, call, found.metadata_location)


def _load(context: ServerContext, call: Request, location: str) -> Response:
    if call.kind == "view":
        return Response(200, context.loads.view(location, lambda: context.catalog.view_at(location)).body)
    try:
        body = context.loads.table(location, "all", lambda: context.catalog.metadata_at(location)).body
    except NotFoundError:  # that version is gone: the newer one will do
        location = context.catalog.pointer(call.table)
        body = context.loads.table(location, "all", lambda: context.catalog.metadata_at(location)).body
    answer = Response(200, body, {"etag": entity_tag(location)})
    if call.endpoint.response is not LoadTableResult or not wants_keys(context, call):
        return answer
    name = TableName(call.namespace, call.read().name)
    return made_with_keys(context, call, name, answer, context.catalog.metadata_at(location))
