"""The audit of requests that change nothing, in the catalog's database, and its export with the audit of changes."""

import heapq
from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.records_layout import AUDIT
from bergline.catalog.sql.security_layout import AUDITED_REQUESTS
from bergline.governance.events.model import render_event_time

_PIECE: Final = 1000
_INSERT: Final = sa.insert(AUDITED_REQUESTS)


class AuditKind(StrEnum):
    """The kind of a line of the audit."""

    CHANGE = "change"
    CONFLICT = "conflict"
    """A change that was not made because another one came first."""
    READ = "read"
    """Metadata was read: loads, plans and lists."""
    CREDENTIALS = "credentials"
    """Keys for the files of a table were vended."""
    SIGNATURE = "signature"
    """A request for a file was signed."""
    DENIED = "denied"
    """Refused for lack of a privilege or by a rule, or hidden: the caller was told that it does not exist."""
    FAILED_LOGIN = "failed-login"


class AuditedRequest(msgspec.Struct, frozen=True):
    """A request; or, with a `count`, several of the same kind between two times."""

    at_ms: int
    kind: AuditKind
    principal: str
    """The principal; empty if unknown."""
    address: str
    operation: str
    resource: str
    detail: str | None = None
    agent: str | None = None
    count: int = 1
    until_ms: int | None = None


class AuditLine(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A line of the exported audit: a JSON object."""

    time: str
    kind: AuditKind
    principal: str
    operation: str
    resource: str
    address: str | None = None
    detail: str | None = None
    agent: str | None = None
    metadata_location: str | None = None
    count: int = 1
    until: str | None = None


class _Timed(msgspec.Struct, frozen=True):
    at_ms: int
    line: AuditLine


class SqlAuditedRequests:
    """The audited requests of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name

    def add(self, requests: Sequence[AuditedRequest]) -> None:
        """Write requests, all or none."""
        rows = [{"catalog_name": self._catalog} | msgspec.structs.asdict(request) for request in requests]
        with self._database.changing() as connection:
            connection.execute(_INSERT, rows)

    def prune_piece(self, before_ms: int) -> int:
        """Delete the oldest requests from before a time, in a short transaction; returns how many."""
        columns = AUDITED_REQUESTS.c
        old = sa.select(columns.id).where(columns.catalog_name == self._catalog, columns.at_ms < before_ms)
        with self._database.reading() as connection:
            found = connection.execute(old.order_by(columns.at_ms, columns.id).limit(_PIECE)).scalars().all()
        if found:
            with self._database.changing() as connection:
                connection.execute(sa.delete(AUDITED_REQUESTS).where(columns.id.in_(found)))
        return len(found)

    def lines(
        self, since_ms: int | None = None, until_ms: int | None = None, kinds: Collection[AuditKind] = ()
    ) -> Iterator[AuditLine]:
        """The audit of requests and that of changes, oldest first, from a time on and before another."""
        changes = {AuditKind.CHANGE, AuditKind.CONFLICT}
        found: list[Iterator[_Timed]] = []
        if not kinds or changes & set(kinds):
            found.append(map(_line_of_change, self._rows(AUDIT, since_ms, until_ms)))
        if not kinds or set(kinds) - changes:
            found.append(map(_line_of_request, self._rows(AUDITED_REQUESTS, since_ms, until_ms)))
        for timed in heapq.merge(*found, key=attrgetter("at_ms")):
            if not kinds or timed.line.kind in kinds:
                yield timed.line

    def _rows(self, table: sa.Table, since_ms: int | None, until_ms: int | None) -> Iterator[Any]:
        """The rows of a period in pages, in the order of the index."""
        columns = table.c
        query = sa.select(table).where(columns.catalog_name == self._catalog)
        if until_ms is not None:
            query = query.where(columns.at_ms < until_ms)
        if since_ms is not None:
            query = query.where(columns.at_ms >= since_ms)
        page = query.order_by(columns.at_ms, columns.id).limit(_PIECE)
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(page).all()
            yield from rows
            if len(rows) < _PIECE:
                return
            last = rows[-1]
            behind = sa.tuple_(columns.at_ms, columns.id) > sa.tuple_(sa.literal(last.at_ms), sa.literal(last.id))
            page = query.where(behind).order_by(columns.at_ms, columns.id).limit(_PIECE)


def line_of(request: AuditedRequest) -> AuditLine:
    """A request as a line."""
    return AuditLine(
        render_event_time(request.at_ms),
        request.kind,
        request.principal,
        request.operation,
        request.resource,
        request.address,
        request.detail,
        request.agent,
        count=request.count,
        until=None if request.until_ms is None else render_event_time(request.until_ms),
    )


def _line_of_request(row: Any) -> _Timed:
    fields = {name: getattr(row, name) for name in AuditedRequest.__struct_fields__}
    fields["kind"], fields["count"] = AuditKind(row.kind), row._mapping["count"]  # noqa: SLF001  (rows are tuples)
    return _Timed(row.at_ms, line_of(AuditedRequest(**fields)))


def _line_of_change(row: Any) -> _Timed:
    kind = AuditKind.CHANGE if row.conflict is None else AuditKind.CONFLICT
    line = AuditLine(
        render_event_time(row.at_ms),
        kind,
        row.principal,
        row.operation,
        row.resource,
        detail=row.conflict,
        agent=row.agent,
        metadata_location=row.metadata_location,
    )
    return _Timed(row.at_ms, line)
