"""Browsers that an issuer has signed in: the cookie has a secret, the database its hash and who that is."""

import json
import secrets

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout_version import SECURITY_VERSION
from bergline.catalog.sql.migrations import find_layout
from bergline.catalog.sql.security_layout import CONSOLE_SESSIONS
from bergline.catalog.sql.tokens.tokens import hash_token

_PREFIX = "bs_"
_BYTES = 32


class ConsoleSession(msgspec.Struct, frozen=True):
    """Who a browser is, and by which token."""

    principal: str
    groups: frozenset[str]
    token_id: str | None = None
    """The ID token's own id, if it has one."""
    issued_ms: int = 0
    """When the issuer made the ID token."""


class SqlConsoleSessions:
    """The sessions of one catalog; those that are over are forgotten when the next one begins."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._is_there = False

    def start(self, session: ConsoleSession, now_ms: int, expires_ms: int) -> str:
        """A new session; returns its secret, which only the browser has."""
        text = f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}"
        row = msgspec.structs.asdict(session) | {
            "catalog_name": self._catalog,
            "hash": hash_token(text),
            "groups": json.dumps(sorted(session.groups)),
            "expires_ms": expires_ms,
        }
        with self._database.changing() as connection:
            connection.execute(sa.delete(CONSOLE_SESSIONS).where(self._mine, CONSOLE_SESSIONS.c.expires_ms <= now_ms))
            connection.execute(sa.insert(CONSOLE_SESSIONS).values(row))
        return text

    def find(self, text: str, now_ms: int) -> ConsoleSession | None:
        """The session with a secret; None if there is none, or its time is over."""
        columns = CONSOLE_SESSIONS.c
        query = sa.select(*(columns[name] for name in ConsoleSession.__struct_fields__)).where(
            self._mine, columns.hash == hash_token(text), columns.expires_ms > now_ms
        )
        with self._database.reading() as connection:
            self._is_there = self._is_there or find_layout(connection).version >= SECURITY_VERSION
            row = connection.execute(query).one_or_none() if self._is_there else None
        if row is None:
            return None
        return ConsoleSession(row.principal, frozenset(json.loads(row.groups)), row.token_id, row.issued_ms)

    def end(self, text: str) -> None:
        """End a session; what is none is left alone."""
        with self._database.changing() as connection:
            connection.execute(
                sa.delete(CONSOLE_SESSIONS).where(self._mine, CONSOLE_SESSIONS.c.hash == hash_token(text))
            )

    @property
    def _mine(self) -> sa.ColumnElement[bool]:
        return CONSOLE_SESSIONS.c.catalog_name == self._catalog


def is_session_secret(text: str) -> bool:
    """Whether a text is made like the secret of a session."""
    return text.startswith(_PREFIX)
