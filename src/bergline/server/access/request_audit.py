"""The audit of requests: reads of metadata, vended credentials, signatures, denials and failed logins.

The first of a kind, by caller, address and resource, is written at once. What is the same in the same minute is counted
and written as one row at its end, so that nothing is lost in number, however many come. Requests only note: a thread
writes, to the catalog's database and to a file of JSON lines.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from starlette.datastructures import Headers
from starlette.types import Scope

from bergline.catalog.rest.protocol import endpoints
from bergline.catalog.rest.protocol.bodies import ErrorResponse
from bergline.catalog.rest.protocol.names import decode_name
from bergline.errors import BerglineError, InvalidInputError
from bergline.governance.audit.store import (
    AuditedRequest,
    AuditKind,
    SqlAuditedRequests,
    line_of,
)
from bergline.governance.endpoints import ENDPOINTS
from bergline.governance.lake_branches.model import LAKE_BRANCH
from bergline.server.http.request import CALLER, Request, address_of
from bergline.server.http.response import Response

REQUEST: Final = "bergline.request"
"""Where a scope has its parsed request, once a token was accepted."""
OTHERS: Final = "(others)"
"""The resource of a row that counts what there was no room for one by one."""
STDOUT: Final = "-"
_LOG = logging.getLogger("bergline.server")
_INTERVAL_S = 1.0
_MINUTE_MS: Final = 60_000
_MOST_KEYS: Final = 10_000
_MOST_WAITING: Final = 10_000
_PIECE: Final = 1000
_LONGEST: Final = 255
_LONGEST_RESOURCE: Final = 1000
_LONGEST_OPERATION: Final = 64
_FIRST_ERROR, _FORBIDDEN, _UNAUTHORIZED, _SEE_OTHER = 400, 403, 401, 303
_FAILED_LOGINS: Final = {_UNAUTHORIZED: "not accepted", 419: "expired", 429: "too many"}
_GETS: Final = {"GET", "HEAD"}
_READS: Final = (
    {endpoint.name for endpoint in ENDPOINTS if endpoint.method in _GETS}
    | {endpoints.PLAN_TABLE_SCAN.name, endpoints.FETCH_SCAN_TASKS.name}
) - {endpoints.GET_CONFIG.name, endpoints.LOAD_CREDENTIALS.name}
_KINDS: Final = ("table", "view", "namespace")
_LOGIN: Final = "authenticate"
_SESSION: Final = b"bergline-token"

_Key = tuple[AuditKind, str, str, str, str]
"""Kind, principal, address, operation and resource."""
_Counting = tuple[_Key, str | None]
"""With the detail: two denials for other reasons are two."""


class _Counted:
    """What came after the first of its kind in a minute."""

    __slots__ = ("at_ms", "count", "until_ms")

    def __init__(self) -> None:
        self.count, self.at_ms, self.until_ms = 0, 0, 0

    def add(self, now_ms: int) -> None:
        self.at_ms = self.at_ms or now_ms
        self.until_ms = now_ms
        self.count += 1


class _Sink:
    """One place that rows are written to; what cannot be written waits, and is folded into counts if it is too much."""

    def __init__(self, described: str, write: Callable[[Sequence[AuditedRequest]], None]) -> None:
        self._described = described
        self._write = write
        self._waiting: list[AuditedRequest] = []
        self._is_failing = False

    def write(self, rows: Iterable[AuditedRequest]) -> None:
        self._waiting += rows
        if len(self._waiting) > _MOST_WAITING:
            self._waiting = folded(self._waiting[:-_MOST_WAITING]) + self._waiting[-_MOST_WAITING:]
        try:
            while self._waiting:
                self._write(self._waiting[:_PIECE])
                del self._waiting[:_PIECE]
        except Exception as error:  # noqa: BLE001  (whatever it is, rows wait, and no request fails)
            if not self._is_failing:
                _LOG.warning("cannot write the audit of requests to %s: %s", self._described, error)
            self._is_failing = True
        else:
            self._is_failing = False


class RequestAudit:
    """What was noted and is not written yet; bounded, with counts of what is beyond."""

    def __init__(
        self,
        store: SqlAuditedRequests,
        *,
        file: str | None = None,
        retention_s: int = 0,
        with_reads: bool = True,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._store = store
        self._file = file
        self._retention_s = retention_s
        self._with_reads = with_reads
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._rows: list[AuditedRequest] = []
        self._counted: dict[_Counting, _Counted] = {}
        self._others: dict[AuditKind, _Counted] = {}
        self._minute_ends_ms = clock_ms() + _MINUTE_MS
        self._sinks = [_Sink("the database", store.add)]
        if file is not None:
            self._sinks.insert(0, _Sink("its file", self._append))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bergline-request-audit", daemon=True)

    def answered(self, scope: Scope, name: str, response: Response) -> None:
        """Note a request of the API by its response; requests for credentials and signatures note themselves."""
        request: Request | None = scope.get(REQUEST)
        if request is None or name == endpoints.GET_TOKEN.name:
            self._note_unknown(scope, name, response)
        elif response.status == _FORBIDDEN or response.is_hidden:
            self.note(AuditKind.DENIED, request, _message_of(response))
        elif response.status < _FIRST_ERROR and name in _READS and self._with_reads:
            self.note(AuditKind.READ, request)

    def visited(self, scope: Scope, status: int) -> None:
        """Note a visit to the console by its status."""
        path = scope["raw_path"].decode("latin-1")
        caller, is_get = scope.get(CALLER), scope["method"] in _GETS
        headers = Headers(scope=scope)
        agent, operation = headers.get("user-agent"), f"console {path}"
        if caller is None:
            had_token = _SESSION in headers.get("cookie", "").encode() or "authorization" in headers
            if status in _FAILED_LOGINS or (status == _SEE_OTHER and is_get and had_token and path != "/sign-in"):
                self._note(
                    (AuditKind.FAILED_LOGIN, "", address_of(scope), _LOGIN, ""),
                    _FAILED_LOGINS.get(status, "not accepted"),
                    agent,
                )
            return
        kind = AuditKind.DENIED if status == _FORBIDDEN else AuditKind.READ
        if kind is AuditKind.READ and not (is_get and self._with_reads):
            return
        detail = None if status < _FIRST_ERROR else str(status)
        self._note((kind, caller, address_of(scope), operation, _thing_of_page(scope)), detail, agent)

    def note(self, kind: AuditKind, request: Request, detail: str | None = None, resource: str | None = None) -> None:
        """Note a request of a caller who is known; nothing waits for it."""
        key = kind, request.principal, request.address, request.endpoint.name, resource or _resource_of(request)
        self._note(key, detail, request.headers.get("user-agent"))

    def write(self, *, is_last: bool = False) -> None:
        """Write what was noted since the last time, and the counts of a minute that is over."""
        now = self._clock_ms()
        with self._lock:
            rows, self._rows = self._rows, []
            if is_last or now >= self._minute_ends_ms:
                counted, self._counted = self._counted, {}
                others, self._others = self._others, {}
                self._minute_ends_ms = now + _MINUTE_MS
            else:
                counted, others = {}, {}
        rows += [_row(key, many, detail=detail) for (key, detail), many in counted.items() if many.count]
        rows += [_row((kind, "", "", "", OTHERS), many) for kind, many in others.items()]
        for sink in self._sinks:
            sink.write(rows)

    def prune(self) -> None:
        """Delete requests whose time is over."""
        before_ms = self._clock_ms() - 1000 * self._retention_s
        while self._retention_s and not self._stopping.is_set() and self._store.prune_piece(before_ms):
            pass

    def start(self) -> None:
        """Write every second; InvalidInputError if there is a file that cannot be written."""
        try:
            self._append(())
        except OSError as error:
            raise InvalidInputError(
                f"cannot write the audit log `{self._file}`: {error.strerror or error}",
                hints=["give a file in a directory that is there, or - for the standard output"],
            ) from error
        self._thread.start()

    def stop(self) -> None:
        """Write for the last time, also what the last minute counted."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
            self.write(is_last=True)

    def _note_unknown(self, scope: Scope, name: str, response: Response) -> None:
        """Note a request of somebody who did not come in."""
        address, agent = address_of(scope), Headers(scope=scope).get("user-agent")
        if response.status in _FAILED_LOGINS:
            has_token = any(key == b"authorization" for key, _ in scope["headers"]) or name == endpoints.GET_TOKEN.name
            detail = _FAILED_LOGINS[response.status] if has_token else "no token"
            self._note((AuditKind.FAILED_LOGIN, "", address, _LOGIN, ""), detail, agent)
        elif response.status == _FORBIDDEN:
            self._note((AuditKind.DENIED, "", address, name, ""), _message_of(response), agent)

    def _note(self, key: _Key, detail: str | None, agent: str | None) -> None:
        now, detail = self._clock_ms(), detail and _text(detail, _LONGEST_RESOURCE)
        with self._lock:
            counted = self._counted.get((key, detail))
            if counted is not None:
                counted.add(now)
            elif len(self._counted) >= _MOST_KEYS:
                self._others.setdefault(key[0], _Counted()).add(now)
            else:
                self._counted[key, detail] = _Counted()
                self._rows.append(_row(key, None, now, detail, agent))

    def _append(self, rows: Sequence[AuditedRequest]) -> None:
        """Write lines to the file, opened anew each time: it may have been moved away."""
        text = "".join(f"{msgspec.json.encode(line_of(row)).decode()}\n" for row in rows)
        if self._file == STDOUT:
            sys.stdout.write(text)
            sys.stdout.flush()
        elif self._file is not None:
            with os.fdopen(os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "wb", 0) as out:
                out.write(text.encode())

    def _run(self) -> None:
        prune_at = time.monotonic()
        while not self._stopping.wait(_INTERVAL_S):
            self.write()
            if time.monotonic() >= prune_at:
                prune_at = time.monotonic() + _MINUTE_MS / 1000
                try:
                    self.prune()
                except Exception as error:  # noqa: BLE001  (the next minute may do better)
                    _LOG.warning("cannot delete old rows of the audit of requests: %s", error)


def folded(rows: Iterable[AuditedRequest]) -> list[AuditedRequest]:
    """One row for each kind, with the number of all."""
    by_kind = attrgetter("kind")
    found = []
    for kind, same in groupby(sorted(rows, key=by_kind), by_kind):
        many = list(same)
        ends = [row.until_ms or row.at_ms for row in many]
        count = sum(row.count for row in many)
        found.append(
            AuditedRequest(min(r.at_ms for r in many), kind, "", "", "", OTHERS, count=count, until_ms=max(ends))
        )
    return found


def _row(
    key: _Key, counted: _Counted | None, now_ms: int = 0, detail: str | None = None, agent: str | None = None
) -> AuditedRequest:
    kind, principal, address, operation, resource = key
    at_ms, count, until_ms = (now_ms, 1, None) if counted is None else (counted.at_ms, counted.count, counted.until_ms)
    return AuditedRequest(
        at_ms,
        kind,
        _text(principal),
        _text(address),
        _text(operation, _LONGEST_OPERATION),
        _text(resource, _LONGEST_RESOURCE),
        detail,
        agent and _text(agent),
        count,
        until_ms,
    )


def _text(found: str, most: int = _LONGEST) -> str:
    """A text that every database and file can hold: one row that cannot be written would hold up all others."""
    return found[:most].replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def _resource_of(request: Request) -> str:
    """What a request is about, as the audit of changes names it: `table/db/orders`, `namespace/db`, `catalog`."""
    kind = next((kind for kind in _KINDS if kind in request.names), None)
    parts = [request.names[part] for part in ("namespace", kind) if part in request.names] if kind else []
    if kind == "namespace":
        parts = parts[:1]
    with contextlib.suppress(BerglineError):
        if "branch" in request.names:
            return f"{LAKE_BRANCH}/{decode_name(request.names['branch'])}"
        names = [decode_name(part).replace(request.separator, ".") for part in parts]
        whole = "pull-request" if request.kind == "pull-request" else "catalog"
        return "/".join((kind, *names)) if kind else "/".join((whole, *request.names.values()))
    return ""


def _thing_of_page(scope: Scope) -> str:
    """The table or view that a page of the console is about."""
    name = parse_qs(scope["query_string"].decode("latin-1")).get("name", [""])[0]
    namespace, _, last = name.rpartition(".")
    return f"table/{namespace}/{last}" if namespace else "catalog"


def _message_of(response: Response) -> str | None:
    """What the caller was told."""
    with contextlib.suppress(msgspec.MsgspecError):
        body: Any = msgspec.json.decode(response.body, type=ErrorResponse)
        return str(body.error.message)
    return None
