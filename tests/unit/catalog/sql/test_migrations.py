"""The layout of catalog databases: made, brought up to date, and refused when it is of a later bergline."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql import migration_steps, migrations
from bergline.catalog.sql.contention_layout import CONTENTION
from bergline.catalog.sql.governance_layout import GOVERNANCE
from bergline.catalog.sql.layout_version import AUDIT_VERSION, CONTENTION_VERSION, LAYOUT_VERSION, RECORDS_VERSION
from bergline.catalog.sql.migration_steps import MIGRATIONS, Migration
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.records import Records
from bergline.catalog.sql.security_layout import SECURITY
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import RefusedError, UnavailableError, UnsupportedError
from support.fixtures.concurrency import run_at_once
from support.fixtures.disks import mounted, remount_read_only

ORDERS = TableName(("db",), "orders")
NOW = [1, 2, 3, 4, 5, 6, 7, 8, 9]  # the versions that a layout has gone through today
_V0 = (
    (
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
        "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
        "PRIMARY KEY (catalog_name, table_namespace, table_name))"
    ),
    (
        "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, "
        "namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000), "
        "PRIMARY KEY (catalog_name, namespace, property_key))"
    ),
    "INSERT INTO iceberg_tables VALUES ('lake', 'db', 'orders', 'a', NULL)",
)


class Database:
    """A database of this test's own, and what stands in it."""

    def __init__(self, url: sa.URL, open_store: Callable[[], SqlPointerStore]) -> None:
        self.url = url
        self.open_store = open_store

    def run(self, *statements: str) -> None:
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def tables(self) -> set[str]:
        return set(sa.inspect(sa.create_engine(self.url, poolclass=sa.NullPool)).get_table_names())

    def versions(self) -> list[int]:
        with sa.create_engine(self.url, poolclass=sa.NullPool).connect() as connection:
            return list(connection.execute(sa.text("SELECT version FROM bergline_layout ORDER BY 1")).scalars())

    def use(self) -> SqlPointerStore:
        store = self.open_store()
        store.create(TableName(("db",), uuid4().hex), "p")
        return store


@pytest.fixture
def postgres_database(postgres: str) -> Iterator[Database]:
    server = sa.make_url(postgres).set(drivername="postgresql+psycopg")
    name = f"d{uuid4().hex}"
    engine = sa.create_engine(server, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    with opened_at(server.set(database=name)) as database:
        yield database
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def opened_at(url: sa.URL) -> Iterator[Database]:
    """The database at a URL; its stores are closed at the end."""
    stores: list[SqlPointerStore] = []

    def open_store() -> SqlPointerStore:
        stores.append(PostgresPointerStore(url.render_as_string(hide_password=False)))
        return stores[-1]

    yield Database(url, open_store)
    for store in stores:
        store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "postgresql":
        found = request.getfixturevalue("postgres_database")
        assert isinstance(found, Database)
        return found
    path = str(tmp_path / "c.db")
    return Database(sa.URL.create("sqlite", database=path), lambda: SqlitePointerStore(path))


def set_migrations(monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
    monkeypatch.setattr(migration_steps, "MIGRATIONS", (*MIGRATIONS, *more))
    monkeypatch.setattr(migrations, "LAYOUT_VERSION", len(MIGRATIONS) + len(more))


def test_versions_are_those_of_the_migrations() -> None:
    names = [step.__name__ for step in MIGRATIONS]
    assert len(MIGRATIONS) == LAYOUT_VERSION
    assert names[RECORDS_VERSION - 1] == "_create_records"
    assert names[AUDIT_VERSION - 1] == "_add_conflicts"
    assert names[CONTENTION_VERSION - 1] == "_create_contention"


def test_new_catalog_has_the_newest_layout(database: Database) -> None:
    database.open_store()
    ours = {"bergline_layout", "bergline_requests", "bergline_audit", "bergline_tokens", "bergline_bin"}
    ours |= {*GOVERNANCE.tables, *CONTENTION.tables, *SECURITY.tables}
    assert database.tables() == {"iceberg_tables", "iceberg_namespace_properties", *ours}
    assert database.versions() == NOW


def test_tables_of_the_commit_queue_that_an_early_build_left_stay_and_do_no_harm(database: Database) -> None:
    database.use()
    left = {"bergline_queued_commits", "bergline_queue_leaders"}
    database.run(*(f"CREATE TABLE {name} (token VARCHAR(32) PRIMARY KEY)" for name in sorted(left)))
    database.use()
    assert database.versions() == NOW
    assert left <= database.tables()


def test_new_catalog_is_made_whole_or_not_at_all(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        set_migrations(patched, lambda c: c.exec_driver_sql("nonsense") and None)
        with pytest.raises(UnavailableError):
            database.open_store()
    assert database.tables() == set()
    database.open_store()
    assert database.versions() == NOW


def test_newer_layout_is_refused_with_its_version_and_what_to_do(database: Database) -> None:
    database.open_store()
    newer = LAYOUT_VERSION + 1
    database.run(f"INSERT INTO bergline_layout VALUES ({newer})")
    with pytest.raises(UnsupportedError, match=f"version {NOW[-1]} or older, found version {newer} in ") as caught:
        database.open_store()
    assert "upgrade bergline" in caught.value.hints[0]


def test_database_of_others_is_read_as_it_is_and_gets_our_tables_with_the_first_change(database: Database) -> None:
    database.run(*_V0)
    store = database.open_store()
    assert store.read(ORDERS) == "a"
    assert store.views is None
    assert "bergline_layout" not in database.tables()
    assert store.swap(ORDERS, "a", "b")
    assert database.versions() == NOW
    again = database.open_store()
    assert (again.read(ORDERS), again.views) == ("b", None)


def test_half_of_the_shared_tables_is_completed(database: Database) -> None:
    database.run(_V0[0], _V0[2])
    store = database.open_store()
    assert store.read(ORDERS) == "a"
    assert store.create_namespace(("new",), {})


def test_older_layout_is_brought_up_to_date_step_by_step(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.use()
    set_migrations(
        monkeypatch,
        lambda c: c.exec_driver_sql("CREATE TABLE bergline_new (a INTEGER)") and None,
        lambda c: c.exec_driver_sql("INSERT INTO bergline_new VALUES (1)") and None,
    )
    store = database.open_store()
    assert database.versions() == NOW
    store.create(ORDERS, "a")
    assert database.versions() == [*NOW, len(NOW) + 1, len(NOW) + 2]
    assert "bergline_new" in database.tables()


def test_pull_requests_of_an_older_layout_no_longer_need_a_branch_of_their_own(database: Database) -> None:
    database.use()
    database.run(
        "DELETE FROM bergline_layout WHERE version >= 8",
        "DROP INDEX bergline_pull_requests_branch",
        "CREATE UNIQUE INDEX bergline_pull_requests_open ON bergline_pull_requests (branch)",
    )
    store = database.open_store()
    store.database.migrate()
    with store.database.reading() as connection:
        found = sa.inspect(connection).get_indexes("bergline_pull_requests")
    assert [index["name"] for index in found] == ["bergline_pull_requests_branch"]


def test_older_audit_log_gets_a_column_for_conflicts_and_keeps_its_rows(database: Database) -> None:
    database.use()
    database.run("ALTER TABLE bergline_audit DROP COLUMN conflict", "DELETE FROM bergline_layout WHERE version >= 5")
    database.run(
        "INSERT INTO bergline_audit (catalog_name, at_ms, principal, operation, resource) "
        "VALUES ('lake', 1, 'a', 'b', 'c')"
    )
    store = database.open_store()
    assert not store.database.has_audit_log()
    store.create(ORDERS, "a")
    assert store.database.has_audit_log()
    (entry,) = Records(store.database, "lake").newest_audit(9, conflicts=True)
    assert (entry.principal, entry.conflict) == ("a", None)


def test_migration_that_fails_changes_nothing_and_is_made_later(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.use()
    with monkeypatch.context() as patched:
        set_migrations(
            patched,
            lambda c: c.exec_driver_sql("CREATE TABLE bergline_new (a INTEGER)") and None,
            lambda c: c.exec_driver_sql("CREATE TABLE bergline_late (a INTEGER); nonsense") and None,
        )
        store = database.open_store()
        with pytest.raises(UnavailableError):
            store.create(ORDERS, "a")
    assert database.versions() == [*NOW, len(NOW) + 1]
    assert "bergline_late" not in database.tables()
    set_migrations(
        monkeypatch, MIGRATIONS[0], lambda c: c.exec_driver_sql("CREATE TABLE bergline_late (a INTEGER)") and None
    )
    assert database.open_store().create(ORDERS, "a")
    assert database.versions() == [*NOW, len(NOW) + 1, len(NOW) + 2]


def test_many_that_start_at_once_migrate_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    set_migrations(monkeypatch, lambda c: c.exec_driver_sql("CREATE TABLE bergline_new (a INTEGER)") and None)
    run_at_once(*[database.use] * 8)
    assert database.versions() == [*NOW, len(NOW) + 1]


def test_sqlite_catalog_on_a_read_only_disk_is_read_and_not_changed(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk):
        store = SqlitePointerStore(f"{disk}/c.db")
        store.create(ORDERS, "a")
        store.close()
        remount_read_only(disk)
        store = SqlitePointerStore(f"{disk}/c.db")
        assert store.read(ORDERS) == "a"
        with pytest.raises(RefusedError, match=r"cannot change catalog database .*: it is read-only"):
            store.swap(ORDERS, "a", "b")
        assert store.read(ORDERS) == "a"
        with pytest.raises((RefusedError, UnavailableError), match=r"catalog database .*new\.db"):
            SqlitePointerStore(f"{disk}/new.db")
        store.close()


@pytest.fixture
def reader(postgres_database: Database) -> Iterator[Database]:
    """The database for a user who may not change it."""
    name = f"u{uuid4().hex}"
    postgres_database.run(*_V0, f"CREATE ROLE {name} LOGIN", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    with opened_at(postgres_database.url.set(username=name)) as database:
        yield database
    postgres_database.run(f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_postgres_catalog_is_read_by_who_may_not_change_it(reader: Database) -> None:
    store = reader.open_store()
    assert store.read(ORDERS) == "a"
    assert store.list_names(("db",)) == [ORDERS]
    with pytest.raises(RefusedError, match="permission denied"):
        store.swap(ORDERS, "a", "b")
    assert store.read(ORDERS) == "a"


def test_postgres_catalog_is_changed_by_who_may_not_add_tables(reader: Database, postgres_database: Database) -> None:
    postgres_database.run(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {reader.url.username}")
    assert reader.open_store().swap(ORDERS, "a", "b")
    assert "bergline_layout" not in postgres_database.tables()
