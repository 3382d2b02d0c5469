"""Single rows of an SQLite database, read on one connection that stays open."""

import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

Identity = tuple[int, tuple[int, int] | None]
"""A process, and a file on a disk as it is there now."""

_FROM_PARENT: list[sqlite3.Connection] = []


class QuickRows:
    """Runs queries that are made once, as text; every read sees what was committed before it."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], identity: Callable[[], Identity]) -> None:
        self._connect = connect
        self._identity = identity
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._of: Identity | None = None
        self._texts: dict[int, tuple[sa.Select[Any], str, dict[str, Any]]] = {}

    def first(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The first row; sqlite3.Error where it cannot be read."""
        text, fixed = self._text(query)
        with self._lock:
            connection = self._open()
            try:
                rows = connection.execute(text, fixed | values).fetchall()  # all, so that nothing stays open
            except sqlite3.Error:
                self._let_go()
                raise
            return rows[0] if rows else None

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._let_go()

    def _open(self) -> sqlite3.Connection:
        """The connection of this process to the file that is there now; another is opened where it is not the same."""
        now = self._identity()
        if self._connection is None or self._of != now:
            self._let_go()
            self._connection, self._of = self._connect(), now
        return self._connection

    def _let_go(self) -> None:
        if self._connection is not None:
            if self._of is not None and self._of[0] != self._identity()[0]:
                _FROM_PARENT.append(self._connection)  # closing it here could take the parent's locks away
            else:
                self._connection.close()
        self._connection = None

    def _text(self, query: sa.Select[Any]) -> tuple[str, dict[str, Any]]:
        known = self._texts.get(id(query))
        if known is None:
            compiled = query.compile(dialect=sqlite.dialect(paramstyle="named"))
            known = self._texts[id(query)] = query, str(compiled), dict(compiled.params)
        return known[1], known[2]
