"""Changes happen once: the audit row and the Idempotency-Key are written in the transaction of the change.

What the console changes is recorded here too, as the request of the API that would do the same.
"""

import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from bergline.catalog.identifiers import TableName, parse_namespace
from bergline.catalog.protection.caller import Caller, acting_for, current_caller
from bergline.catalog.rest.protocol.bodies import LoadTableResult
from bergline.catalog.rest.protocol.endpoints import COMMIT_TRANSACTION, CREATE_NAMESPACE, DROP_TABLE, DROP_VIEW
from bergline.catalog.rest.protocol.final_refusal import REFUSED_KEY_HEADER
from bergline.catalog.rest.protocol.names import decode_name
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.records import REQUEST, AnsweredRequest, AuditEntry, Records
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    NotFoundError,
    StorageError,
)
from bergline.governance.events.change_events import (
    NAMESPACE_EVENTS,
    EventContext,
    MovedTables,
    change_events,
    namespace_event,
)
from bergline.governance.events.model import Event
from bergline.governance.events.store import append_events
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG
from bergline.governance.lake_branches.model import LAKE_BRANCH
from bergline.governance.lake_branches.protocol import CREATE_LAKE_BRANCH, DROP_LAKE_BRANCH
from bergline.server.cache.load_responses import entity_tag, shown_state
from bergline.server.commits.governance_events import governance_events
from bergline.server.context.context import ServerContext
from bergline.server.handlers.commits import committed_tables
from bergline.server.handlers.credentials import with_credentials
from bergline.server.handlers.governance.ownership import follow_owners
from bergline.server.handlers.governance.reserved_directories import follow_directories
from bergline.server.handlers.trash import keep_dropped
from bergline.server.http.errors import RequestRefused, response_for
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response

_Done = TypeVar("_Done")
_KEY = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LOG = logging.getLogger("bergline.server")
_MAX_AGENT_CHARACTERS = 255
_MAX_OPERATION_CHARACTERS = 64
_CLEANUP_INTERVAL_S = 60.0
_FINAL = range(400, 500)
_MAX_RECORDED_BYTES = 1024 * 1024  # of a response that only its own bytes can replay


class IdempotentChanges:
    """Runs changes, records them, and replays the response to a repeated request."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._clean_up_at = 0.0

    def run(self, request: Request, act: Callable[[], Response]) -> Response:
        """The response to a change; for a repeated Idempotency-Key, that of the first request."""
        change = self.begin(request)
        with acting_for(change.caller):
            known = change.replayed()
            return change.run(act) if known is None else known

    def make(self, request: Request, act: Callable[[], _Done]) -> _Done:
        """What a change without a key returns, made with its rows."""
        change = self.begin(request)
        with acting_for(change.caller):
            return change.make(act)

    def begin(self, request: Request) -> "RecordedChange":
        """A change that is to be made; RequestRefused for a key that is none."""
        access, caller = self._context.access, Caller(request.principal, request.groups)
        caller.administers = access.is_active and access.may(
            request.principal, request.groups, Privilege.ADMINISTER, CATALOG
        )
        change = RecordedChange(self._context, request, caller)
        if change.key is not None:
            self._clean_up()
        return change

    def _clean_up(self) -> None:
        """Remove expired requests, at most once a minute."""
        now = time.monotonic()
        if now >= self._clean_up_at:
            self._clean_up_at = now + _CLEANUP_INTERVAL_S
            self._context.records.forget_requests(_now_ms() - 2_000 * self._context.settings.idempotency_lifetime_s)


class RecordedChange:
    """One request for a change: what is written in its transaction, and what is answered."""

    def __init__(self, context: ServerContext, request: Request, caller: Caller) -> None:
        self.request = request
        self.caller = caller
        self.is_noted = False
        """Whether its rows were written, in a transaction that may not have been committed."""
        self._context = context
        self._records = context.records
        self._record = _record(request)

    @property
    def key(self) -> str | None:
        """The request's Idempotency-Key."""
        return None if self._record is None else self._record.request_key

    def replayed(self) -> Response | None:
        """The response to an earlier request with the same key, if there was one."""
        if self._record is None:
            return None
        found = self._records.find_request(self._record.request_key)
        return None if found is None else replay(self._context, self.request, found, self._record)

    def run(self, act: Callable[[], Response]) -> Response:
        """The response to a change that is made here, with its rows."""
        return self.answer(lambda: self._noted(act))

    def make(self, act: Callable[[], _Done]) -> _Done:
        """What a change without a key returns that is made here, with its rows."""
        return self._with_conflicts(lambda: self._noted(act))

    def answer(self, act: Callable[[], Response]) -> Response:
        """The response to a change, given as a call that returns it or raises what became of the change."""
        return self._with_conflicts(act) if self._record is None else self._keyed_answer(self._record, act)

    def refuse(self, error: Exception) -> Response:
        """The response to a change that was refused with an error."""

        def act() -> Response:
            raise error

        return self.answer(act)

    def _noted(self, act: Callable[[], _Done]) -> _Done:
        with self._records.database.before_commit(self.note):
            return act()

    def _with_conflicts(self, act: Callable[[], _Done]) -> _Done:
        try:
            return act()
        except ConflictError as error:
            self._note_conflict(error)
            raise

    def _keyed_answer(self, record: AnsweredRequest, act: Callable[[], Response]) -> Response:
        request = self.request
        try:
            response = act()
        except AlreadyExistsError as error:
            if error.kind == REQUEST:  # a repeated request was first; nothing was changed here
                return self._replayed(record)
            response = response_for(error, request.kind)
        except (StorageError, CommitUnknownError):
            known = self._settled(record)
            if known is None:
                raise
            return known
        except BerglineError as error:
            if isinstance(error, ConflictError):
                self._note_conflict(error)
            response = response_for(request.in_path(error), request.kind)
        except RequestRefused as refusal:
            response = refusal.response
        else:
            if self.is_noted:
                return response
        return self._finish(record, response)

    def _finish(self, record: AnsweredRequest, response: Response) -> Response:
        """Record the response to a request that changed nothing; one that may succeed later, or has keys, is not."""
        has_keys = response.status < _FINAL.start and self._context.credentials.are_wanted(self.request)
        if has_keys or response.status >= _FINAL.stop or len(response.body) > _MAX_RECORDED_BYTES:
            return response
        try:
            self._records.finish_request(_with(record, status=response.status, body=response.body.decode()))
        except AlreadyExistsError:
            return self._replayed(record)
        except BerglineError as error:  # the conflict may be with this very request, sent twice
            raise CommitUnknownError(
                f"cannot find out whether the request with this key was answered before: {error}",
                table=record.resource,
                metadata_location=None,
                hints=["send it again with its key"],
            ) from error
        return _final(response, record)

    def _settled(self, record: AnsweredRequest) -> Response | None:
        """The response to a change whose outcome the database did not report; None if it stays unknown."""
        try:
            found = self._records.find_request(record.request_key)
            return None if found is None else replay(self._context, self.request, found, record)
        except BerglineError:
            return None

    def _replayed(self, record: AnsweredRequest) -> Response:
        found = self._records.find_request(record.request_key)
        if found is None:
            raise RequestRefused(
                503, "ServiceUnavailableException", "the request's twin is not answered yet: try again"
            )
        return replay(self._context, self.request, found, record)

    def note(self, connection: Connection, changed: MovedTables) -> None:
        """Write the rows of the change, in its transaction; AlreadyExistsError if its key has a response."""
        self.is_noted = True
        request, record, now_ms = self.request, self._record, _now_ms()
        if record is not None:
            location = changed[0][1] if changed else None
            made = self.caller.made
            response = request.precomputed.response if made is None else json_response(made)
            body = None if response is None else response.body.decode()
            self._records.add_request(connection, _with(record, metadata_location=location, body=body))
        if request.endpoint in (DROP_TABLE, DROP_VIEW) and self._context.settings.drop_retention_s:
            for name, location in changed:
                keep_dropped(self._context, request, connection, name, location)
        follow_directories(self._context, request, connection, changed, self.caller)
        follow_owners(self._context, request, connection, changed)
        agent = _agent(request)
        for resource, location in _resources(request, changed):
            entry = AuditEntry(now_ms, request.principal, request.endpoint.name, resource, agent, location)
            self._records.add_audit(connection, entry)
        said = AuditEntry(now_ms, request.principal, request.endpoint.name, request.resource, agent)
        audit_rules(self._records, connection, said, dict(changed))
        append_events(connection, self._events(changed, now_ms))

    def _events(self, changed: MovedTables, now_ms: int) -> list[Event]:
        request = self.request
        made = EventContext(self._records.catalog_name, request.endpoint, request.principal, now_ms)
        governance = governance_events(made, request, self.caller.made)
        if changed:
            return [*change_events(made, changed, self.caller), *governance]
        if request.endpoint.name not in NAMESPACE_EVENTS:
            return governance
        is_new = request.endpoint is CREATE_NAMESPACE
        return [namespace_event(made, parse_namespace(request.read().namespace) if is_new else request.namespace)]

    def _note_conflict(self, error: ConflictError) -> None:
        """Record who lost to whom; a record that cannot be written changes nothing about the response."""
        request = self.request
        names = committed_tables(request) if request.endpoint is COMMIT_TRANSACTION else []
        if "namespace" in request.names:
            names = [request.table]
        try:
            for resource, _ in _resources(request, tuple((name, None) for name in names)):
                who, what = request.principal, request.endpoint.name
                lost = AuditEntry(_now_ms(), who, what, resource, _agent(request), conflict=str(error))
                self._records.add_conflict(lost)
        except BerglineError as failure:
            _LOG.warning("could not record a conflict: %s", failure)


def audit_rules(
    records: Records, connection: Connection, change: AuditEntry, locations: Mapping[TableName, str | None]
) -> None:
    """Add a row for each rule about refs that the caller bypassed or changed, in the transaction of the change."""
    for name, notes in current_caller().notes.items():
        for note in notes:
            entry = AuditEntry(
                change.at_ms,
                change.principal,
                f"{note.operation}:{note.rule}"[:_MAX_OPERATION_CHARACTERS],
                f"table/{'.'.join(name.namespace)}/{name.name}",
                change.agent,
                locations.get(name),
            )
            records.add_audit(connection, entry)


def _record(request: Request) -> AnsweredRequest | None:
    key = request.headers.get("idempotency-key") if request.endpoint.takes_key else None
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise RequestRefused(400, "BadRequestException", "expected a UUID as Idempotency-Key, found another text")
    return AnsweredRequest(
        request_key=key.lower(),
        principal=request.principal,
        operation=request.endpoint.name,
        resource=request.resource,
        fingerprint=hashlib.sha256(
            request.body + repr((sorted(request.query.items()), request.parts, *filter(None, (request.at,)))).encode()
        ).hexdigest(),
        status=request.endpoint.status,
        at_ms=_now_ms(),
    )


def _agent(request: Request) -> str | None:
    return request.headers.get("user-agent", "")[:_MAX_AGENT_CHARACTERS] or None


def _resources(request: Request, changed: MovedTables) -> list[tuple[str, str | None]]:
    """The resources that were changed, each with its new metadata location: tables, views or a namespace."""
    if changed:
        kind = "view" if request.kind == "view" else "table"
        return [(f"{kind}/{'.'.join(name.namespace)}/{name.name}", location) for name, location in changed]
    if request.kind == "pull-request":
        return [(request.resource, None)]
    if request.endpoint in (CREATE_LAKE_BRANCH, DROP_LAKE_BRANCH):
        is_new = request.endpoint is CREATE_LAKE_BRANCH
        return [(f"{LAKE_BRANCH}/{request.read().name if is_new else decode_name(request.names['branch'])}", None)]
    if "table" in request.names:
        return [(f"table/{'.'.join(request.namespace)}/{request.table.name}", None)]
    if request.endpoint is CREATE_NAMESPACE:
        return [(f"namespace/{'.'.join(request.read().namespace)}", None)]
    if "namespace" not in request.names:
        return [("catalog", None)]
    return [(f"namespace/{'.'.join(request.namespace)}", None)]


def _final(response: Response, record: AnsweredRequest) -> Response:
    """A response that was recorded; a refusal says so, for it holds for every request with its key."""
    if response.status not in _FINAL:
        return response
    return msgspec.structs.replace(response, headers={**response.headers, REFUSED_KEY_HEADER: record.request_key})


def _with(record: AnsweredRequest, **fields: object) -> AnsweredRequest:
    return msgspec.structs.replace(record, **fields)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_MUST_MATCH = ("principal", "operation", "resource", "fingerprint")


def replay(context: ServerContext, request: Request, found: AnsweredRequest, current: AnsweredRequest) -> Response:
    """The recorded response; RequestRefused if the key belongs to another request."""
    if any(getattr(found, name) != getattr(current, name) for name in _MUST_MATCH):
        raise RequestRefused(
            422, "UnprocessableEntityException", "expected a new Idempotency-Key, found one of another request"
        )
    if found.body is not None:
        return _final(Response(found.status, found.body.encode()), current)
    if found.metadata_location is None or request.endpoint.response is None:
        return Response(found.status)
    return _load(context, request, found.metadata_location)


def _load(context: ServerContext, request: Request, location: str) -> Response:
    if request.kind == "view":
        return Response(200, context.loads.view(location, lambda: context.catalog.views.metadata_at(location)).body)
    name = request.table if "table" in request.names else TableName(request.namespace, request.read().name)
    shown = shown_state(None, request.at)
    name = request.table if "table" in request.names else TableName(request.namespace, request.read().name)

    def table_at(location: str) -> bytes:
        return context.loads.table(
            location, shown, lambda: request.seen(context.catalog.tables.metadata_at(location), name)
        ).body

    try:
        body = table_at(location)
    except NotFoundError:  # that version has expired: the current one will do
        location = context.catalog.pointer(name)
        body = table_at(location)
    response = Response(200, body, {"etag": entity_tag(location, shown)})
    if request.endpoint.response is not LoadTableResult or not context.credentials.are_wanted(request):
        return response
    return with_credentials(context, request, name, response, context.catalog.tables.metadata_at(location))
