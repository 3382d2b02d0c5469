"""The event log of a SQL catalog, in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import EVENTS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import InvalidInputError, NotFoundError
from bergline.governance.events.model import EVENT_POSITION, Event, EventFilter, EventPage
from bergline.governance.events.store import SqlEvents, append_events
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    yield from opened(uri, tmp_path)


@pytest.fixture
def postgres_store(postgres: str, tmp_path: Path) -> Iterator[SqlPointerStore]:
    yield from opened(postgres, tmp_path)


def opened(uri: str, tmp_path: Path) -> Iterator[SqlPointerStore]:
    name = f"events-{tmp_path.name}"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", name, {}, 10.0, (), 10**6, True))
    catalog.store.database.migrate()
    yield catalog.store
    catalog.close()


def log_of(store: SqlPointerStore) -> SqlEvents:
    return SqlEvents(store.database, store.catalog_name)


def event(store: SqlPointerStore, number: int, subject: str = "table/db/orders", kind: str = "table.commit") -> Event:
    return Event(store.catalog_name, kind, subject, "ann", number, {"number": number}, "u-1")


def write(store: SqlPointerStore, *numbers: int, **about: str) -> None:
    with store.database.changing() as connection:
        append_events(connection, [event(store, number, **about) for number in numbers])


def numbers(page: EventPage) -> list[int]:
    return [found.data["number"] for found in page.events]


def test_events_are_read_in_order_from_a_cursor(store: SqlPointerStore) -> None:
    log = log_of(store)
    assert log.read() == EventPage((), 0, 0)
    write(store, 1, 2, 3)
    first = log.read(limit=2)
    assert (numbers(first), first.position, first.newest) == ([1, 2], 2, 3)
    assert first.events[0].principal == "ann"
    assert first.events[0].table_uuid == "u-1"
    rest = log.read(first.position)
    assert ([e.position for e in rest.events], rest.position) == ([3], 3)
    write(store, 4)
    assert numbers(log.read(rest.position)) == [4]


def test_catalogs_in_one_database_have_positions_of_their_own(store: SqlPointerStore) -> None:
    write(store, 1, 2)
    with store.database.changing() as connection:
        append_events(connection, [Event(f"{store.catalog_name}-other", "table.drop", "table/db/t", "bob", 5)])
    other = SqlEvents(store.database, f"{store.catalog_name}-other").read()
    assert [(e.position, e.type) for e in other.events] == [(1, "table.drop")]
    assert numbers(log_of(store).read()) == [1, 2]


def test_filter_takes_whole_names_and_beginnings_and_still_moves_the_cursor(store: SqlPointerStore) -> None:
    write(store, 1)
    write(store, 2, subject="table/db/Orders")
    write(store, 3, subject="table/raw/orders", kind="ref.move")
    write(store, 4, subject="namespace/db", kind="namespace.drop")
    log = log_of(store)
    assert numbers(log.read(wanted=EventFilter(subjects=("table/db/orders",)))) == [1]
    assert numbers(log.read(wanted=EventFilter(subjects=("table/db/*",)))) == [1, 2]
    assert numbers(log.read(wanted=EventFilter(types=("ref.*", "namespace.drop")))) == [3, 4]
    nothing = log.read(wanted=EventFilter(types=("table.drop",)))
    assert (nothing.events, nothing.position) == ((), 4)
    latest = log.latest(1, EventFilter(types=("table.*",)))
    assert ([e.position for e in latest.events], latest.position, latest.newest) == ([2], 4, 4)


def test_event_of_a_change_that_is_rolled_back_leaves_no_gap(store: SqlPointerStore) -> None:
    write(store, 1)

    def fail() -> None:
        with store.database.changing() as connection:
            append_events(connection, [event(store, 2)])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    write(store, 3)
    assert [(e.position, e.data["number"]) for e in log_of(store).read().events] == [(1, 1), (2, 3)]


def test_old_events_go_in_pieces_and_a_cursor_behind_them_is_told(store: SqlPointerStore) -> None:
    log = log_of(store)
    write(store, 10, 20, 15, 30, 5)
    assert log.prune(25, most=2) == 2
    assert log.prune(25, most=2) == 1
    assert log.prune(25, most=2) == 0  # the last one is older, but behind one that is kept
    assert log.oldest_position() == 4
    assert numbers(log.read()) == [30, 5]
    assert numbers(log.read(3)) == [30, 5]
    with pytest.raises(NotFoundError, match="the oldest is at 4") as gone:
        log.read(2)
    assert gone.value.kind == EVENT_POSITION
    with pytest.raises(InvalidInputError, match="up to 5, the newest, found 6"):
        log.read(6)
    assert log.prune(100) == 2
    assert log.read() == EventPage((), 5, 5)
    write(store, 40)
    assert [e.position for e in log.read(5).events] == [6]


def test_many_events_get_positions_in_pieces(store: SqlPointerStore) -> None:
    write(store, *range(2500))
    assert log_of(store).newest_position() == 2500


@pytest.mark.server
def test_commit_that_ends_late_is_not_skipped_though_its_id_is_lower(postgres_store: SqlPointerStore) -> None:
    """A cursor over ids would have passed it: this is why there are positions."""
    store, log = postgres_store, log_of(postgres_store)
    with store.database.writing() as slow:
        append_events(slow, [event(store, 1, subject="table/db/slow")])
        write(store, 2, subject="table/db/quick")
        seen = log.read()
        assert numbers(seen) == [2]
    later = log.read(seen.position)
    assert (numbers(later), later.position) == ([1], 2)
    with store.database.reading() as connection:
        query = sa.select(EVENTS.c.id).where(EVENTS.c.catalog_name == store.catalog_name).order_by(EVENTS.c.position)
        ids = connection.execute(query).scalars().all()
    assert ids == sorted(ids, reverse=True)


@pytest.mark.server
def test_readers_and_writers_at_once_miss_nothing_and_keep_the_order_of_each_table(
    postgres_store: SqlPointerStore,
) -> None:
    """Writers of one table wait for each other on a row, as commits do on that of the pointer."""
    store, per_writer = postgres_store, 25
    tables, counters = (
        ("a", "b"),
        sa.Table(
            "event_test_counters",
            sa.MetaData(),
            sa.Column("t", sa.String, primary_key=True),
            sa.Column("n", sa.Integer),
        ),
    )
    with store.database.changing() as connection:
        counters.metadata.create_all(connection)
        connection.execute(sa.insert(counters), [{"t": f"{store.catalog_name}-{t}", "n": 0} for t in tables])
    done = threading.Event()

    def commits(database: SqlDatabase, table: str) -> None:
        row = counters.c.t == f"{store.catalog_name}-{table}"
        for _ in range(per_writer):
            with database.changing() as connection:
                connection.execute(sa.update(counters).where(row).values(n=counters.c.n + 1))
                number = connection.execute(sa.select(counters.c.n).where(row)).scalar_one()
                append_events(connection, [event(store, number, subject=f"table/db/{table}")])

    found: list[list[tuple[int, str, int]]] = [[], []]

    def follows(into: list[tuple[int, str, int]]) -> None:
        log, cursor = log_of(store), 0
        while True:
            is_last = done.is_set()
            page = log.read(cursor, limit=7)
            into += [(e.position, e.subject, e.data["number"]) for e in page.events]
            cursor = page.position
            if is_last and cursor == page.newest:
                return

    writers = [threading.Thread(target=commits, args=(store.database, table)) for table in tables for _ in range(3)]
    readers = [threading.Thread(target=follows, args=(into,)) for into in found]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert found[0] == found[1]
    assert [position for position, _, _ in found[0]] == list(range(1, 6 * per_writer + 1))
    for table in tables:
        assert [n for _, subject, n in found[0] if subject == f"table/db/{table}"] == list(range(1, 3 * per_writer + 1))
