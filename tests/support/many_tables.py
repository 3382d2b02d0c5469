"""A catalog of very many tables, as rows alone, and how much work a database has with a request."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.server.handlers.context import ServerContext

TABLES = 100_000
BIG = "big"
_STEPS = 1000

_FILL = {
    "sqlite": """
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :most - 1)
        INSERT INTO iceberg_tables
        SELECT :catalog, :namespace, 't' || substr('00000' || (i * 7919 % :most), -6), 'file:///nowhere/' || i, NULL,
            CASE WHEN i % 1000 = 7 THEN 'VIEW' ELSE 'TABLE' END FROM n
    """,
    "postgresql": """
        INSERT INTO iceberg_tables
        SELECT :catalog, :namespace, 't' || lpad(mod(i * 7919, :most)::text, 6, '0'), 'file:///nowhere/' || i, NULL,
            CASE WHEN mod(i, 1000) = 7 THEN 'VIEW' ELSE 'TABLE' END
        FROM generate_series(0::bigint, :most - 1) AS i
    """,
}


def fill(served: ServerContext, namespace: str = BIG, most: int = TABLES) -> None:
    """Put tables into a namespace: t000000, t000001, …, of which each thousandth is a view; there are no files."""
    database = served.store.database
    values = {"catalog": served.store.catalog_name, "namespace": namespace, "most": most}
    with database.writing() as connection:
        connection.execute(sa.text(_FILL[connection.dialect.name]), values)


class Work:
    """What a database did: the statements, and on SQLite thousands of its own steps."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, Any]] = []
        self.thousands = 0

    def count(self) -> int:
        self.thousands += 1
        return 0


@contextlib.contextmanager
def watched(database: SqlDatabase) -> Iterator[Work]:
    """Count the work that the database has from here to the end."""
    work = Work()

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        work.statements.append((statement, parameters))

    def lent(connection: Any, _record: Any, _proxy: Any) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.set_progress_handler(work.count, _STEPS)

    listeners = (("before_cursor_execute", note), ("checkout", lent))
    for event, listener in listeners:
        sa.event.listen(database.engine, event, listener)
    try:
        yield work
    finally:
        for event, listener in listeners:
            sa.event.remove(database.engine, event, listener)
        database.engine.dispose()


def plans(database: SqlDatabase, work: Work) -> list[str]:
    """How the database goes about each query that it was asked: the lines of all plans."""
    explain = "EXPLAIN QUERY PLAN " if database.engine.dialect.name == "sqlite" else "EXPLAIN (ANALYZE, TIMING OFF) "
    lines: list[str] = []
    with database.reading() as connection:
        for statement, parameters in work.statements:
            if statement.strip().startswith(("SELECT", "WITH")):
                lines += [str(row[-1]) for row in connection.exec_driver_sql(explain + statement, parameters)]
    return lines
