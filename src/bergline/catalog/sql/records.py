"""A server's records in the catalog's database: idempotency keys, audit log, and tokens."""

import hashlib
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bergline.arguments import check_no_nul
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import check_lengths
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.records_layout import AUDIT, REQUESTS, TOKENS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError

REQUEST = "request"
"""The kind of an AlreadyExistsError for an idempotency key that already has a response; nothing was changed."""

_CLOSED = ""
"""The name of the row that marks a catalog that requires tokens; no token has it."""
_HASH_LENGTH = 64
_LONGEST_CONFLICT = 2000
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


class StoredToken(msgspec.Struct, frozen=True):
    """A token's owner and expiry."""

    name: str
    created_ms: int
    expires_ms: int | None


class Records:
    """The records of one catalog in its database."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self.database = database
        self._catalog = catalog_name

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
        """Delete older requests."""
        with self.database.changing() as connection:
            connection.execute(
                sa.delete(REQUESTS).where(REQUESTS.c.catalog_name == self._catalog, REQUESTS.c.at_ms < before_ms)
            )

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
        """Delete older changes; returns how many."""
        statement = sa.delete(AUDIT).where(AUDIT.c.catalog_name == self._catalog, AUDIT.c.at_ms < before_ms)
        with self.database.changing() as connection:
            return connection.execute(statement).rowcount

    def create_token(self, name: str, text: str, created_ms: int, expires_ms: int | None) -> None:
        """Create a token, of which only the hash is stored. The catalog requires tokens from then on."""
        check_lengths(name)
        check_no_nul(name, "the name of a token")
        if not name:
            raise InvalidInputError("expected a name for the token, found empty text")
        row = {"name": name, "hash": hash_token(text), "created_ms": created_ms, "expires_ms": expires_ms}
        try:
            with self.database.changing() as connection:
                self._close(connection)
                connection.execute(sa.insert(TOKENS).values({"catalog_name": self._catalog} | row))
        except sa.exc.IntegrityError as error:
            raise AlreadyExistsError(f"token `{name}` exists already", kind="token", name=name) from error

    @property
    def is_closed(self) -> bool:
        """Whether the catalog requires tokens: it has or had one."""
        query = sa.select(TOKENS.c.name).where(TOKENS.c.catalog_name == self._catalog).limit(1)
        with self.database.reading() as connection:
            return connection.execute(query).first() is not None

    def find_token(self, text: str) -> StoredToken | None:
        """Look up a token by its text."""
        found = self._tokens(TOKENS.c.hash == hash_token(text))
        return found[0] if found else None

    def tokens(self) -> list[StoredToken]:
        """All tokens by name."""
        return self._tokens(TOKENS.c.name != _CLOSED)

    def revoke_token(self, name: str) -> None:
        """Revoke a token; without any, the catalog still requires one."""
        mine = TOKENS.c.catalog_name == self._catalog
        statement = sa.delete(TOKENS).where(mine, TOKENS.c.name == name, TOKENS.c.name != _CLOSED)
        with self.database.changing() as connection:
            found = connection.execute(statement).rowcount
            if found:
                self._close(connection)
        if not found:
            raise NotFoundError(
                f"no token `{name}`", kind="token", name=name, known=[token.name for token in self.tokens()]
            )

    def _close(self, connection: sa.Connection) -> None:
        """Make the catalog require tokens for good, by a row that matches no token."""
        insert = self.database.insert(TOKENS).values(closing_token(self._catalog))
        connection.execute(insert.on_conflict_do_nothing())

    def _tokens(self, which: sa.ColumnElement[bool]) -> list[StoredToken]:
        query = sa.select(TOKENS.c.name, TOKENS.c.created_ms, TOKENS.c.expires_ms).where(
            TOKENS.c.catalog_name == self._catalog, which
        )
        with self.database.reading() as connection:
            return [StoredToken(*row) for row in connection.execute(query.order_by(TOKENS.c.name))]


def records_of(catalog: Catalog) -> Records:
    """The records of a catalog in SQLite or PostgreSQL, after migrating its layout."""
    store = sql_store_of(catalog)
    store.database.migrate()
    return Records(store.database, store.catalog_name)


def sql_store_of(catalog: Catalog) -> SqlPointerStore:
    """The store of a catalog in SQLite or PostgreSQL."""
    if not isinstance(catalog, PointerCatalog) or not isinstance(catalog.store, SqlPointerStore):
        raise UnsupportedError(
            "expected a catalog in SQLite or PostgreSQL to serve, found another",
            hints=["other catalogs need no server: connect to them from every process"],
        )
    return catalog.store


def closing_token(catalog_name: str) -> dict[str, str | int]:
    """The row that marks a catalog that requires tokens; no token has its name or its hash."""
    digest = hashlib.sha256(catalog_name.encode(errors="surrogatepass")).hexdigest()
    row: dict[str, str | int] = {"catalog_name": catalog_name, "name": _CLOSED, "created_ms": 0, "expires_ms": 0}
    return row | {"hash": f"closed-{digest}"[:_HASH_LENGTH]}


def hash_token(text: str) -> str:
    """The stored hash of a token; tokens are long and random, so one round is enough."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
