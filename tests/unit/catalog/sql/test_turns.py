"""Turns of writers, in SQLite, PostgreSQL and memory."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import PointersWithTurns
from bergline.catalog.sql.backup.contents import TABLES_OF_A_CATALOG
from bergline.catalog.sql.contention_layout import CONTENTION, TURNS
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.catalog.turns import LONGEST_TURN_MS, Turn
from support.fixtures.catalog_files import new_catalog_file
from support.fixtures.concurrency import run_at_once

A, B = TableName(("db",), "a"), TableName(("db",), "b")


def opened(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store with two tables."""
    store: Any = MemoryPointerStore()
    if kind == "sqlite":
        store = SqlitePointerStore(str(new_catalog_file(tmp_path / "catalog.db")))
    if kind == "postgres":
        store = PostgresPointerStore(request.getfixturevalue("postgres"), catalog_name=f"turns-{uuid4().hex}")
    for table in (A, B):
        store.create(table, f"file:///{table.name}.metadata.json")
    return store


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PointersWithTurns]:
    found = opened(request.param, request, tmp_path)
    yield found
    found.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def sql_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    found = opened(request.param, request, tmp_path)
    yield found
    found.close()


def holder(store: PointersWithTurns, table: TableName = A) -> str | None:
    turn = store.read_with_turn(table)[1]
    return None if turn is None else turn.holder


def test_pointer_is_read_with_the_turn(store: PointersWithTurns) -> None:
    assert store.read_with_turn(A) == ("file:///a.metadata.json", None)
    assert store.read_with_turn(TableName(("db",), "none")) == (None, None)
    assert store.take_turn([A], "me", 5000)
    pointer, turn = store.read_with_turn(A)
    assert pointer == "file:///a.metadata.json"
    assert isinstance(turn, Turn)
    assert (turn.holder, 0 < turn.left_ms <= 5000) == ("me", True)


def test_turn_is_had_by_one_on_all_its_tables_or_none(store: PointersWithTurns) -> None:
    assert store.take_turn([B], "me", 5000)
    assert not store.take_turn([A, B], "you", 5000)
    assert (holder(store, A), holder(store, B)) == (None, "me")
    store.give_back_turn([A, B], "you")
    assert holder(store, B) == "me"
    store.give_back_turn([A, B], "me")
    assert (holder(store, A), holder(store, B)) == (None, None)


def test_turn_ends_by_itself_when_its_holder_is_gone(store: PointersWithTurns) -> None:
    assert store.take_turn([A], "gone", 40)
    time.sleep(0.06)
    assert holder(store) is None


def test_the_others_go_first_for_as_long_as_a_turn_lasted(store: PointersWithTurns) -> None:
    assert store.take_turn([A], "me", 5000)
    time.sleep(0.3)
    store.give_back_turn([A], "me")
    assert not store.take_turn([A], "you", 5000)
    assert not store.take_turn([A], "me", 5000)
    time.sleep(0.4)
    assert store.take_turn([A], "you", 5000)


def test_holder_prolongs_its_turn_up_to_the_longest_one(store: PointersWithTurns) -> None:
    assert store.take_turn([A], "me", 3000)
    assert store.take_turn([A], "me", 5 * LONGEST_TURN_MS)
    turn = store.read_with_turn(A)[1]
    assert turn is not None
    assert 3000 < turn.left_ms <= LONGEST_TURN_MS
    time.sleep(0.05)
    assert store.take_turn([A], "me", LONGEST_TURN_MS)
    again = store.read_with_turn(A)[1]
    assert again is not None
    assert again.left_ms <= LONGEST_TURN_MS - 50


def test_of_many_who_ask_at_once_one_has_it(store: PointersWithTurns) -> None:
    granted: list[str] = []
    run_at_once(
        *(lambda me=f"w{n}": store.take_turn([A, B], me, 5000) and granted.append(me) for n in range(8))  # type: ignore[misc]
    )
    assert granted == [holder(store, A)] == [holder(store, B)]


def test_turn_of_a_clock_that_was_set_back_is_none(sql_store: SqlPointerStore) -> None:
    assert sql_store.take_turn([A], "me", 5000)
    with sql_store.database.changing() as connection:
        connection.execute(sa.update(TURNS).values(until_ms=TURNS.c.until_ms + 3_600_000))
    assert holder(sql_store) is None
    assert sql_store.take_turn([A], "you", 5000)
    assert holder(sql_store) == "you"


def test_old_rows_are_removed_when_a_turn_is_taken(sql_store: SqlPointerStore) -> None:
    sql_store.take_turn([A], "me", 5000)
    with sql_store.database.changing() as connection:
        connection.execute(sa.update(TURNS).values(since_ms=1, until_ms=2))
    assert sql_store.take_turn([B], "you", 5000)
    with sql_store.database.reading() as connection:
        mine = sa.select(TURNS.c.table_name).where(TURNS.c.catalog_name == sql_store.catalog_name)
        assert list(connection.execute(mine).scalars()) == ["b"]


def test_older_layout_has_no_turns_until_it_is_changed(tmp_path: Path) -> None:
    store = opened("sqlite", None, tmp_path)  # type: ignore[arg-type]
    with store.database.changing() as connection:
        connection.exec_driver_sql("DROP TABLE bergline_turns")
        connection.exec_driver_sql("DELETE FROM bergline_layout WHERE version >= 7")
    store.close()
    store = SqlitePointerStore(f"{tmp_path}/catalog.db")
    assert store.read_with_turn(A) == ("file:///a.metadata.json", None)
    assert store.take_turn([A], "me", 5000)
    assert holder(store) == "me"
    store.close()


@pytest.mark.server
def test_who_may_not_read_turns_commits_without(postgres: str) -> None:
    name, role = f"turns-{uuid4().hex}", f"u{uuid4().hex}"
    with_turns = PostgresPointerStore(postgres, catalog_name=name)
    with_turns.create(A, "file:///a.metadata.json")
    with with_turns.database.changing() as connection:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA public TO {role}",
            f"REVOKE ALL ON bergline_turns FROM {role}",
        ):
            connection.exec_driver_sql(statement)
    url = sa.make_url(postgres).set(username=role).render_as_string(hide_password=False)
    without = PostgresPointerStore(url, catalog_name=name)
    assert with_turns.take_turn([A], "me", 5000)
    assert without.read_with_turn(A) == ("file:///a.metadata.json", None)
    without.close()
    with with_turns.database.changing() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
        connection.exec_driver_sql(f"DROP ROLE {role}")
    with_turns.close()


def test_backups_leave_turns_out() -> None:
    assert not {table.name for table in TABLES_OF_A_CATALOG} & CONTENTION.tables.keys()
