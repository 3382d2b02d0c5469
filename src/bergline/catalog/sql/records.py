"""A server's records in the catalog's database: idempotency keys, audit log, and tokens."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.catalog import Catalog
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.records_layout import AUDIT, REQUESTS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.tokens.tokens import SqlTokens
from bergline.errors import AlreadyExistsError, UnsupportedError

REQUEST = "request"
"""The kind of an AlreadyExistsError for an idempotency key that already has a response; nothing was changed."""

_LONGEST_CONFLICT = 2000
_PIECE = 1000
_INSERT_REQUEST, _INSERT_AUDIT = sa.insert(REQUESTS), sa.insert(AUDIT)  # building a statement is slower than running it


class AnsweredRequest(msgspec.Struct, frozen=True):
    """A request with an idempotency key, and its response: by metadata location, or in full."""

    request_key: str
    principal: str
    operation: str
    resource: str
    fingerprint: str
    status: int
    at_ms: int
    metadata_location: str | None = None
    body: str | None = None
    """The response body if it does not follow from metadata: of refusals and namespace changes."""


class AuditEntry(msgspec.Struct, frozen=True):
    """Who changed what, and when; or wanted to, and lost a conflict."""

    at_ms: int
    principal: str
    operation: str
    resource: str
    agent: str | None = None
    metadata_location: str | None = None
    conflict: str | None = None
    """What was committed first, if this was not committed."""


class Records:
    """The records of one catalog in its database."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self.database = database
        self._catalog = catalog_name
        self.tokens = SqlTokens(database, catalog_name)

    @property
    def catalog_name(self) -> str:
        """The catalog of the records."""
        return self._catalog

    def find_request(self, key: str) -> AnsweredRequest | None:
        """The request with this key, if it has a response."""
        names = AnsweredRequest.__struct_fields__
        query = sa.select(*(REQUESTS.c[name] for name in names)).where(
            REQUESTS.c.catalog_name == self._catalog, REQUESTS.c.request_key == key
        )
        with self.database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else AnsweredRequest(*row)

    def add_request(self, connection: sa.Connection, request: AnsweredRequest) -> None:
        """Record a response in the transaction of the change; AlreadyExistsError if the key has one."""
        row = {"catalog_name": self._catalog} | msgspec.structs.asdict(request)
        try:
            connection.execute(_INSERT_REQUEST, row)
        except sa.exc.IntegrityError as error:
            raise AlreadyExistsError(
                "the request was answered already", kind=REQUEST, name=request.request_key
            ) from error

    def finish_request(self, request: AnsweredRequest) -> None:
        """Record the response to a request that changed nothing."""
        with self.database.changing() as connection:
            self.add_request(connection, request)

    def forget_requests(self, before_ms: int) -> None:
        """Delete older requests, in pieces, so that no other writer waits for all."""
        mine = REQUESTS.c.catalog_name == self._catalog
        while self._delete_piece(REQUESTS.c.request_key, mine, REQUESTS.c.at_ms, before_ms) == _PIECE:
            pass

    def add_audit(self, connection: sa.Connection, entry: AuditEntry) -> None:
        """Record a change in its own transaction."""
        connection.execute(_INSERT_AUDIT, {"catalog_name": self._catalog} | msgspec.structs.asdict(entry))

    def add_conflict(self, entry: AuditEntry) -> None:
        """Record a change that lost a conflict, in a transaction of its own: nothing else was changed."""
        conflict = None if entry.conflict is None else entry.conflict[:_LONGEST_CONFLICT]
        with self.database.changing() as connection:
            self.add_audit(connection, msgspec.structs.replace(entry, conflict=conflict))

    def audit(self) -> list[AuditEntry]:
        """All changes, oldest first."""
        names = AuditEntry.__struct_fields__
        query = sa.select(*(AUDIT.c[name] for name in names)).where(
            AUDIT.c.catalog_name == self._catalog, AUDIT.c.conflict.is_(None)
        )
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(AUDIT.c.id)).all()
        return [AuditEntry(**row._mapping) for row in rows]  # noqa: SLF001

    def newest_audit(
        self,
        limit: int,
        *,
        resources: Sequence[str] = (),
        principal: str | None = None,
        since_ms: int | None = None,
        conflicts: bool = False,
    ) -> list[AuditEntry]:
        """Changes, newest first: all, or by resources, principal and time; with those that lost `conflicts`."""
        columns = [AUDIT.c.id, *(AUDIT.c[name] for name in AuditEntry.__struct_fields__)]
        query = sa.select(*columns).where(AUDIT.c.catalog_name == self._catalog)
        if not conflicts:
            query = query.where(AUDIT.c.conflict.is_(None))
        if principal is not None:
            query = query.where(AUDIT.c.principal == principal)
        if since_ms is not None:
            query = query.where(AUDIT.c.at_ms >= since_ms)
        query = query.order_by(AUDIT.c.at_ms.desc(), AUDIT.c.id.desc()).limit(limit)
        # one query per resource, in index order: a combined query would have to sort all rows
        queries = [query.where(AUDIT.c.resource == resource) for resource in resources] or [query]
        with self.database.reading() as connection:
            rows = [row for one in queries for row in connection.execute(one)]
        rows.sort(key=lambda row: (row.at_ms, row.id), reverse=True)
        return [AuditEntry(*row[1:]) for row in rows[:limit]]

    def prune_audit(self, before_ms: int) -> int:
        """Delete older changes, in pieces; returns how many."""
        removed = 0
        while piece := self.prune_audit_piece(before_ms):
            removed += piece
        return removed

    def prune_audit_piece(self, before_ms: int) -> int:
        """Delete the oldest of the older changes, in a short transaction; returns how many."""
        return self._delete_piece(AUDIT.c.id, AUDIT.c.catalog_name == self._catalog, AUDIT.c.at_ms, before_ms)

    def _delete_piece(
        self, key: sa.Column[Any], mine: sa.ColumnElement[bool], at_ms: sa.Column[Any], before_ms: int
    ) -> int:
        """Delete the oldest rows from before a time by their keys; how many there were, perhaps deleted by another."""
        query = sa.select(key).where(mine, at_ms < before_ms).order_by(at_ms).limit(_PIECE)
        with self.database.reading() as connection:
            keys = connection.execute(query).scalars().all()
        if keys:
            with self.database.changing() as connection:
                connection.execute(sa.delete(key.table).where(mine, key.in_(keys)))
        return len(keys)


def records_of(catalog: Catalog) -> Records:
    """The records of a catalog in SQLite or PostgreSQL, after migrating its layout."""
    store = sql_store_of(catalog)
    store.database.migrate()
    return Records(store.database, store.catalog_name)


def find_sql_store(catalog: Catalog) -> SqlPointerStore | None:
    """The store of a catalog in SQLite or PostgreSQL; None for others."""
    store = catalog.store if isinstance(catalog, PointerCatalog) else None
    return store if isinstance(store, SqlPointerStore) else None


def sql_store_of(catalog: Catalog) -> SqlPointerStore:
    """The same; UnsupportedError for others."""
    store = find_sql_store(catalog)
    if store is None:
        raise UnsupportedError(
            "expected a catalog in SQLite or PostgreSQL to serve, found another",
            hints=["other catalogs need no server: connect to them from every process"],
        )
    return store
