"""Sessions of the console, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout_version import SECURITY_VERSION
from bergline.catalog.sql.migrations import LAYOUT
from bergline.catalog.sql.security_layout import CONSOLE_SESSIONS
from bergline.catalog.sql.tokens.console_sessions import ConsoleSession, SqlConsoleSessions, is_session_secret
from bergline.lake.opening import CatalogConfig, open_catalog

ANN = ConsoleSession("corp:ann", frozenset({"corp:a", "corp:b"}), "id", 5)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlDatabase]:
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    config = CatalogConfig(uri, f"file://{tmp_path}", f"sessions-{tmp_path.name}", {}, 10.0, (), 10**6, True)
    catalog: Any = open_catalog(config)
    yield catalog.store.database
    catalog.close()


@pytest.fixture
def sessions(database: SqlDatabase, tmp_path: Path) -> SqlConsoleSessions:
    return SqlConsoleSessions(database, tmp_path.name)


def test_session_is_known_until_its_time_is_over(sessions: SqlConsoleSessions) -> None:
    text = sessions.start(ANN, 10, 20)
    assert is_session_secret(text)
    assert sessions.find(text, 19) == ANN
    assert sessions.find(text, 20) is None
    assert sessions.find(f"{text}x", 19) is None


def test_ended_session_is_gone_and_others_stay(sessions: SqlConsoleSessions) -> None:
    one, other = (sessions.start(ANN, 10, 20) for _ in range(2))
    assert one != other
    sessions.end(one)
    sessions.end("bs_unknown")
    assert sessions.find(one, 11) is None
    assert sessions.find(other, 11) is not None


def test_session_is_of_one_catalog(sessions: SqlConsoleSessions, database: SqlDatabase) -> None:
    other, text = SqlConsoleSessions(database, "other"), sessions.start(ANN, 10, 20)
    assert other.find(text, 11) is None
    other.end(text)
    assert sessions.find(text, 11) is not None


def test_database_has_no_secret_and_forgets_what_is_over(
    sessions: SqlConsoleSessions, database: SqlDatabase, tmp_path: Path
) -> None:
    text = sessions.start(ANN, 10, 20)
    sessions.start(ConsoleSession("corp:bob", frozenset()), 20, 30)
    query = sa.select(CONSOLE_SESSIONS).where(CONSOLE_SESSIONS.c.catalog_name == tmp_path.name)
    with database.reading() as connection:
        rows = connection.execute(query).all()
    assert [row.principal for row in rows] == ["corp:bob"]
    assert text not in str(rows)


def test_older_database_has_no_sessions(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", "lake", {}, 10.0, (), 10**6, True))
    database = catalog.store.database
    with database.writing() as connection:
        connection.execute(sa.delete(LAYOUT).where(LAYOUT.c.version >= SECURITY_VERSION))
        CONSOLE_SESSIONS.drop(connection)
    assert SqlConsoleSessions(database, "lake").find("bs_x", 1) is None
    catalog.close()
