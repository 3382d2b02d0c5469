"""What is special about PostgreSQL: the shared layout, lost connections, many writers."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog

import bergline
from bergline import Lake
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql import postgres as postgres_module
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.errors import InvalidInputError, NotFoundError, StorageError, UnavailableError
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ORDERS, ids, order_rows

TABLE = TableName(("db",), "orders")


@pytest.fixture
def store(postgres: str) -> Iterator[PostgresPointerStore]:
    opened = PostgresPointerStore(postgres, catalog_name=uuid4().hex)
    yield opened
    opened.close()


@pytest.fixture
def pg_lake(postgres: str, tmp_path: Path) -> Iterator[Lake]:
    with bergline.connect(postgres, warehouse=tmp_path, name=uuid4().hex, create=True) as lake:
        lake.create_namespace("db")
        yield lake


def end_all_connections(postgres: str) -> None:
    engine = sa.create_engine(sa.make_url(postgres).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        others = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        connection.execute(others)


def test_connection_lost_before_the_commit_changes_nothing(postgres: str, store: PostgresPointerStore) -> None:
    store.create(TABLE, "a")

    def lose_and_swap() -> None:
        with store.database.writing() as connection:
            end_all_connections(postgres)
            connection.execute(sa.text("SELECT 1"))

    with pytest.raises(UnavailableError, match="refused a change"):
        lose_and_swap()
    assert store.read(TABLE) == "a"


def test_connection_lost_at_the_commit_leaves_the_outcome_in_doubt(postgres: str, store: PostgresPointerStore) -> None:
    def lose_at_the_end() -> None:
        with store.database.writing() as connection:
            connection.execute(sa.text("SELECT 1"))
            end_all_connections(postgres)

    with pytest.raises(StorageError, match="failed while committing"):
        lose_at_the_end()


def test_store_works_again_after_the_server_dropped_its_connections(postgres: str, store: PostgresPointerStore) -> None:
    store.create(TABLE, "a")
    end_all_connections(postgres)
    assert store.read(TABLE) == "a"
    assert store.swap(TABLE, "a", "b")


def test_server_that_is_not_there_is_unavailable_and_its_password_stays_secret() -> None:
    with pytest.raises(UnavailableError, match=r"user:\*\*\*@127\.0\.0\.1:1/db") as caught:
        PostgresPointerStore("postgresql://user:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("uri", ["postgresql://host:port/db", "postgres:nothing"])
def test_bad_uri_says_what_a_good_one_looks_like(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="postgresql://user@host:5432/database"):
        PostgresPointerStore(uri)


def test_without_a_warehouse_what_is_there_can_be_used(postgres: str, pg_lake: Lake, tmp_path: Path) -> None:
    pg_lake.create_table("db.orders", ORDERS).append(order_rows(1))
    with bergline.connect(postgres, name=pg_lake.name, create=True) as lake:
        assert lake.list_tables("db") == ["db.orders"]
        assert ids(lake.load_table("db.orders").append(order_rows(2)).scan().to_arrow()) == [1, 2]
        with pytest.raises(InvalidInputError, match="expected a warehouse for what is new in namespace `db`") as caught:
            lake.create_table("db.more", ORDERS)
        assert "`warehouse`" in caught.value.hints[0]
        with pytest.raises(NotFoundError, match="no namespace `dbb`"):
            lake.create_table("dbb.more", ORDERS)
        lake.create_table("db.placed", ORDERS, location=str(tmp_path / "placed"))
        lake.update_namespace("db", {"location": str(tmp_path / "home")})
        assert lake.create_table("db.more", ORDERS).location == f"file://{tmp_path}/home/more"


def test_nothing_is_lost_when_many_append_at_once(pg_lake: Lake) -> None:
    pg_lake.create_table("db.orders", ORDERS)

    def work(first: int) -> None:
        table = pg_lake.load_table("db.orders")
        for number in range(5):
            table.append(order_rows(first * 100 + number))

    run_for_each(work, range(4))
    expected = sorted(first * 100 + number for first in range(4) for number in range(5))
    assert ids(pg_lake.load_table("db.orders").scan().to_arrow()) == expected


def test_pyiceberg_works_on_the_same_catalog(postgres: str, pg_lake: Lake, tmp_path: Path) -> None:
    orders = pg_lake.create_table("db.orders", ORDERS).append(order_rows(1))
    uri = sa.make_url(postgres).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    peer = SqlCatalog(pg_lake.name, uri=uri, warehouse=f"file://{tmp_path}")
    theirs = peer.load_table("db.orders")
    theirs.append(order_rows(2).cast(theirs.schema().as_arrow()))
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]
    orders.append(order_rows(3))
    assert ids(peer.load_table("db.orders").scan().to_arrow()) == [1, 2, 3]
    peer.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_process_opens_its_own_connection(store: PostgresPointerStore) -> None:
    store.create(TABLE, "a")
    child = multiprocessing.get_context("fork").Process(target=store.swap, args=(TABLE, "a", "b"))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert store.read(TABLE) == "b"
    assert store.swap(TABLE, "b", "c")


def test_row_that_another_session_holds_is_unavailable_in_the_end(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(postgres_module._SESSION, "lock_timeout", "200ms")
    store = PostgresPointerStore(postgres, catalog_name=uuid4().hex)
    store.create(TABLE, "a")
    engine = sa.create_engine(sa.make_url(postgres).set(drivername="postgresql+psycopg"), poolclass=sa.NullPool)
    with engine.connect() as other:
        other.execute(sa.text("SELECT * FROM iceberg_tables FOR UPDATE"))
        with pytest.raises(UnavailableError, match="lock timeout"):
            store.swap(TABLE, "a", "b")
        assert store.read(TABLE) == "a"
    assert store.swap(TABLE, "a", "b")
    store.close()


def test_sessions_have_timeouts_unless_they_were_set_before(postgres: str) -> None:
    def shown(uri: str, *names: str) -> list[str]:
        store = PostgresPointerStore(uri)
        with store.database.reading() as connection:
            found = [connection.execute(sa.text(f"SHOW {name}")).scalar_one() for name in names]
        store.close()
        return found

    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    assert shown(postgres, *names) == ["10s", "30s", "30s"]
    own = sa.make_url(postgres).update_query_dict({"options": "-c lock_timeout=2s"})
    assert shown(own.render_as_string(hide_password=False), *names) == ["2s", "30s", "30s"]


def test_what_the_database_cannot_hold_is_refused(postgres: str, pg_lake: Lake, tmp_path: Path) -> None:
    for refused in (
        lambda: pg_lake.update_namespace("db", {"a": "x\0y"}),
        lambda: pg_lake.create_namespace("other", {"a\0": "y"}),
        lambda: pg_lake.update_namespace("db", remove=["a\0"]),
        lambda: bergline.connect(postgres, warehouse=tmp_path, name="a\0b", create=True),
    ):
        with pytest.raises(InvalidInputError, match="expected no null character"):
            refused()
    with pytest.raises(InvalidInputError, match="expected up to 5000 properties at once, found 70000"):
        pg_lake.update_namespace("db", remove=[f"k{i}" for i in range(70_000)])
    many = {f"k{i}": "v" for i in range(4999)}
    pg_lake.update_namespace("db", many)
    assert pg_lake.namespace_properties("db") == many
