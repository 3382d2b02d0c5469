"""Tokens of a server: whose they are, their secrets by hash, and when they were last used.

A token has one row in `bergline_tokens`, with the hash of its secret. The secrets that it had before it was rotated are
beside it, each until its time is over; without the token they are worth nothing.
"""

import hashlib
import json
from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa

from bergline.arguments import check_no_nul
from bergline.catalog.identifiers import check_lengths
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import RETIRED_SECRETS, TOKEN_DETAILS
from bergline.catalog.sql.records_layout import TOKENS
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError

_CLOSED = ""
"""The name of the row that marks a catalog that requires tokens; no token has it."""
_HASH_LENGTH = 64
_MOST_GROUPS = 100


class StoredToken(msgspec.Struct, frozen=True):
    """A token without its secret."""

    name: str
    created_ms: int
    expires_ms: int | None
    principal: str = ""
    """Who comes in with it."""
    groups: frozenset[str] = frozenset()
    last_used_ms: int | None = None
    old_until_ms: int | None = None
    """Until when a secret from before the last rotation is accepted."""


class SqlTokens:
    """The tokens of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name

    def create(
        self,
        name: str,
        text: str,
        created_ms: int,
        expires_ms: int | None,
        *,
        principal: str | None = None,
        groups: Collection[str] = (),
    ) -> None:
        """Create a token, of which only the hash is stored. The catalog requires tokens from then on."""
        _check_name(name, "the token")
        if principal is not None:
            _check_name(principal, "the principal")
        if len(set(groups)) > _MOST_GROUPS:
            raise InvalidInputError(f"expected up to {_MOST_GROUPS} groups of a token, found {len(set(groups))}")
        for group in groups:
            _check_name(group, "a group")
        row = {"name": name, "hash": hash_token(text), "created_ms": created_ms, "expires_ms": expires_ms}
        details = {"name": name, "principal": principal, "groups": json.dumps(sorted(set(groups)))}
        try:
            with self._database.changing() as connection:
                self._close(connection)
                connection.execute(sa.insert(TOKENS).values({"catalog_name": self._catalog} | row))
                self._forget(connection, name)
                connection.execute(sa.insert(TOKEN_DETAILS).values({"catalog_name": self._catalog} | details))
        except sa.exc.IntegrityError as error:
            raise AlreadyExistsError(
                f"token `{name}` exists already",
                kind="token",
                name=name,
                hints=["`bergline token rotate` gives it a new secret, `create --for` makes another of its principal"],
            ) from error

    def rotate(self, name: str, text: str, now_ms: int, overlap_ms: int, lifetime_ms: int | None = None) -> int | None:
        """Give a token a new secret; all older ones end with the overlap, or earlier. When the new one expires.

        Without a new lifetime, the new secret lives as long as the old one was to live.
        """
        mine = sa.and_(TOKENS.c.catalog_name == self._catalog, TOKENS.c.name == name, TOKENS.c.name != _CLOSED)
        query = sa.select(TOKENS.c.hash, TOKENS.c.created_ms, TOKENS.c.expires_ms).where(mine).with_for_update()
        retired = sa.and_(RETIRED_SECRETS.c.catalog_name == self._catalog, RETIRED_SECRETS.c.name == name)
        end_ms = now_ms + overlap_ms
        with self._database.changing() as connection:
            old = connection.execute(query).one_or_none()
            if old is None:
                raise self._missing(name)
            if lifetime_ms is None and old.expires_ms is not None:
                lifetime_ms = old.expires_ms - old.created_ms
            expires_ms = None if lifetime_ms is None else now_ms + lifetime_ms
            new = {"hash": hash_token(text), "created_ms": now_ms, "expires_ms": expires_ms}
            connection.execute(sa.update(TOKENS).where(mine).values(new))
            connection.execute(sa.delete(RETIRED_SECRETS).where(retired, RETIRED_SECRETS.c.expires_ms <= now_ms))
            connection.execute(
                sa.update(RETIRED_SECRETS)
                .where(retired, RETIRED_SECRETS.c.expires_ms > end_ms)
                .values(expires_ms=end_ms)
            )
            until = end_ms if old.expires_ms is None else min(end_ms, old.expires_ms)
            row = {"catalog_name": self._catalog, "hash": old.hash, "name": name, "expires_ms": until}
            connection.execute(sa.insert(RETIRED_SECRETS).values(row))
        return expires_ms

    @property
    def is_closed(self) -> bool:
        """Whether the catalog requires tokens: it has or had one."""
        query = sa.select(TOKENS.c.name).where(TOKENS.c.catalog_name == self._catalog).limit(1)
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None

    def find(self, text: str) -> StoredToken | None:
        """The token with a secret; for one from before a rotation, with the time when that secret ends."""
        digest = hash_token(text)
        found = self._read(TOKENS.c.hash == digest)
        if found:
            return found[0]
        query = sa.select(RETIRED_SECRETS.c.name, RETIRED_SECRETS.c.expires_ms).where(
            RETIRED_SECRETS.c.catalog_name == self._catalog, RETIRED_SECRETS.c.hash == digest
        )
        with self._database.reading() as connection:
            retired = connection.execute(query).one_or_none()
        if retired is None:
            return None
        found = self._read(TOKENS.c.name == retired.name)
        return msgspec.structs.replace(found[0], expires_ms=retired.expires_ms) if found else None

    def all(self) -> list[StoredToken]:
        """All tokens by name."""
        return self._read(TOKENS.c.name != _CLOSED)

    def revoke(self, name: str) -> None:
        """Revoke a token with all its secrets; without any token, the catalog still requires one."""
        mine = TOKENS.c.catalog_name == self._catalog
        statement = sa.delete(TOKENS).where(mine, TOKENS.c.name == name, TOKENS.c.name != _CLOSED)
        with self._database.changing() as connection:
            found = connection.execute(statement).rowcount
            if found:
                self._close(connection)
                self._forget(connection, name)
        if not found:
            raise self._missing(name)

    def revoke_of(self, principal: str, before_ms: int) -> list[str]:
        """Revoke the tokens of a principal that were created before a time, and all older secrets of its others."""
        found = [token for token in self.all() if token.principal == principal]
        old = [token.name for token in found if token.created_ms < before_ms]
        retired = RETIRED_SECRETS.c
        with self._database.changing() as connection:
            mine = sa.and_(retired.catalog_name == self._catalog, retired.name.in_([token.name for token in found]))
            connection.execute(sa.delete(RETIRED_SECRETS).where(mine))
            columns = TOKENS.c
            for name in old:
                which = sa.and_(columns.catalog_name == self._catalog, columns.name == name)
                if connection.execute(sa.delete(TOKENS).where(which, columns.created_ms < before_ms)).rowcount:
                    self._close(connection)
                    self._forget(connection, name)
        return old

    def record_uses(self, used_ms: Mapping[str, int]) -> None:
        """Record when tokens were last used; what another server saw later stays."""
        with self._database.changing() as connection:
            for name, at_ms in sorted(used_ms.items()):
                insert = self._database.insert(TOKEN_DETAILS).values(
                    catalog_name=self._catalog, name=name, last_used_ms=at_ms
                )
                known = TOKEN_DETAILS.c.last_used_ms
                connection.execute(
                    insert.on_conflict_do_update(
                        index_elements=list(TOKEN_DETAILS.primary_key),
                        set_={"last_used_ms": at_ms},
                        where=sa.or_(known.is_(None), known < at_ms),
                    )
                )

    def _missing(self, name: str) -> NotFoundError:
        return NotFoundError(f"no token `{name}`", kind="token", name=name, known=[token.name for token in self.all()])

    def _forget(self, connection: sa.Connection, name: str) -> None:
        """Delete what there is beside the row of a token."""
        for table in (TOKEN_DETAILS, RETIRED_SECRETS):
            connection.execute(sa.delete(table).where(table.c.catalog_name == self._catalog, table.c.name == name))

    def _close(self, connection: sa.Connection) -> None:
        """Make the catalog require tokens for good, by a row that matches no token."""
        insert = self._database.insert(TOKENS).values(closing_token(self._catalog))
        connection.execute(insert.on_conflict_do_nothing())

    def _read(self, which: sa.ColumnElement[bool]) -> list[StoredToken]:
        retired = (
            sa.select(sa.func.max(RETIRED_SECRETS.c.expires_ms))
            .where(RETIRED_SECRETS.c.catalog_name == TOKENS.c.catalog_name, RETIRED_SECRETS.c.name == TOKENS.c.name)
            .scalar_subquery()
        )
        details = TOKENS.outerjoin(
            TOKEN_DETAILS,
            sa.and_(TOKEN_DETAILS.c.catalog_name == TOKENS.c.catalog_name, TOKEN_DETAILS.c.name == TOKENS.c.name),
        )
        query = (
            sa.select(
                TOKENS.c.name,
                TOKENS.c.created_ms,
                TOKENS.c.expires_ms,
                sa.func.coalesce(TOKEN_DETAILS.c.principal, TOKENS.c.name),
                TOKEN_DETAILS.c.groups,
                TOKEN_DETAILS.c.last_used_ms,
                retired,
            )
            .select_from(details)
            .where(TOKENS.c.catalog_name == self._catalog, which)
            .order_by(TOKENS.c.name)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            StoredToken(name, created, expires, principal, frozenset(json.loads(groups or "[]")), last_used, old_until)
            for name, created, expires, principal, groups, last_used, old_until in rows
        ]


def closing_token(catalog_name: str) -> dict[str, str | int]:
    """The row that marks a catalog that requires tokens; no token has its name or its hash."""
    digest = hashlib.sha256(catalog_name.encode(errors="surrogatepass")).hexdigest()
    row: dict[str, str | int] = {"catalog_name": catalog_name, "name": _CLOSED, "created_ms": 0, "expires_ms": 0}
    return row | {"hash": f"closed-{digest}"[:_HASH_LENGTH]}


def hash_token(text: str) -> str:
    """The stored hash of a token; tokens are long and random, so one round is enough."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _check_name(name: str, what: str) -> None:
    check_lengths(name)
    check_no_nul(name, f"the name of {what.removeprefix('the ')}")
    if not name:
        raise InvalidInputError(f"expected a name for {what}, found empty text")
