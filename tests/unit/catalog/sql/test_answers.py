"""SQL catalogs whose COMMIT lands and is then answered by anything: no outcome is wrong, no live file goes."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

import pytest

import bergline
from bergline import Lake
from bergline.catalog.sql.sqlite import SqliteDatabase
from bergline.errors import CommitUnknownError, UnavailableError
from support.fixtures.rows import ORDERS, ids, order_rows
from support.proxies.postgres_proxy import postgres_proxy, server_error

pytestmark = pytest.mark.long

Next = Callable[[object], None]

# shut down, starting, cancelled, a conflict, taken, refused, disk full, internal, of a pooler, unknown
SQLSTATES = (
    "57P01 57P02 57P03 57014 40001 40P01 40003 23505 42501 25006 25P02 53100 53200 58030 XX000 08P01 08006 ZZ999"
)


@contextmanager
def postgres_lake(uri: str, warehouse: Path) -> Iterator[tuple[Lake, Next]]:
    """A lake, and what becomes of its next COMMIT."""
    with (
        postgres_proxy(uri) as (proxy, through),
        bergline.connect(through, warehouse=warehouse, name=uuid4().hex, create=True) as lake,
    ):
        planned: list[str | bytes] = []
        proxy.cut = lambda data: planned.pop() if planned and b"COMMIT\0" in data else None
        yield lake, planned.append  # type: ignore[misc]
        assert planned == []


class ShakyConnection(sqlite3.Connection):
    """Raises the planned error after a commit, or before it."""

    planned: ClassVar[list[tuple[int, bool]]] = []

    def commit(self) -> None:
        if not self.planned or not self.in_transaction:
            super().commit()
            return
        code, lands = self.planned.pop()
        if lands:
            super().commit()
        error = sqlite3.OperationalError("as the test asked")
        error.sqlite_errorcode = code
        raise error


@pytest.fixture
def sqlite_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lake, Next]]:
    connect = sqlite3.connect

    def shaky(*arguments: object, **options: object) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=ShakyConnection)  # type: ignore[call-overload, no-any-return]

    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path / "warehouse", create=True) as lake:
        monkeypatch.setattr(sqlite3, "connect", shaky)
        database = lake.catalog.store.database  # type: ignore[attr-defined]
        assert isinstance(database, SqliteDatabase)
        database.engine.dispose()  # the connections so far are plain ones
        yield lake, ShakyConnection.planned.append  # type: ignore[misc]
        assert ShakyConnection.planned == []


def happened(do: Callable[[], object]) -> bool:
    """Whether it is said to have happened; any other error than that this is unknown fails the test."""
    try:
        do()
    except CommitUnknownError:
        return False
    return True


def check_every_change(lake: Lake, then: Callable[[], None]) -> None:
    """Every kind of change, each with what `then` plans for its COMMIT."""
    lake.catalog._access.sleep = lambda _: None  # type: ignore[attr-defined]
    then()
    lake.create_namespace("db", {"owner": "us"})
    then()
    lake.update_namespace("db", {"owner": "them"})
    then()
    orders = lake.create_table("db.orders", ORDERS)
    then()
    orders.append(order_rows(1))
    then()
    orders.overwrite(order_rows(2))
    items = lake.create_table("db.items", ORDERS)
    with lake.transaction() as transaction:
        transaction.load_table("db.orders").append(order_rows(3))
        transaction.load_table("db.items").append(order_rows(4))
        then()
    then()
    lake.rename_table("db.orders", "db.moved")
    assert ids(lake.load_table("db.moved").scan().to_arrow()) == [2, 3]
    assert ids(items.refresh().scan().to_arrow()) == [4]
    then()
    lake.drop_table("db.items")
    then()
    lake.register_table("db.items", items.metadata_location)
    place = Path(lake.load_table("db.moved").location.removeprefix("file://"))
    before = {p for p in place.rglob("*") if p.is_file()}
    lake.load_table("db.moved").plan_orphans()  # where files are is kept by now, so that a purge only drops
    then()
    purged = happened(lambda: lake.purge_table("db.moved"))
    assert purged or {p for p in place.rglob("*") if p.is_file()} == before
    assert lake.list_tables("db") == ["db.items"]
    lake.drop_table("db.items")
    then()
    lake.drop_namespace("db")
    assert lake.list_namespaces() == []


@pytest.mark.parametrize(
    "said",
    ["after", "amid", *(server_error(s) for s in SQLSTATES.split()), server_error("57P01", "FATAL")],
    ids=["after", "amid", *SQLSTATES.split(), "fatal"],
)
def test_every_change_that_postgresql_made_is_done_or_unknown(postgres: str, tmp_path: Path, said: str | bytes) -> None:
    with postgres_lake(postgres, tmp_path) as (lake, plan):
        check_every_change(lake, lambda: plan(said))


@pytest.mark.parametrize(
    "code",
    [
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_INTERNAL,
        99,
    ],
)
def test_every_change_that_sqlite_made_is_done_or_unknown(sqlite_lake: tuple[Lake, Next], code: int) -> None:
    lake, plan = sqlite_lake
    check_every_change(lake, lambda: plan((code, True)))


def test_commit_that_waits_for_a_reader_for_too_long_changes_nothing_and_lets_go_of_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    with bergline.connect(f"sqlite:///{path}", warehouse=tmp_path / "warehouse", create=True) as lake:
        lake.create_namespace("db")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        with bergline.connect(
            f"sqlite:///{path}", warehouse=tmp_path / "warehouse", busy_timeout=0.1, create=True
        ) as lake:
            other.execute("BEGIN")
            other.execute("SELECT * FROM iceberg_tables").fetchall()
            with pytest.raises(UnavailableError, match="is locked"):
                lake.create_namespace("other")
            other.execute("COMMIT")
            other.execute("BEGIN IMMEDIATE")  # nobody holds the lock
            other.execute("ROLLBACK")
            assert lake.list_namespaces() == ["db"]
            lake.create_table("db.orders", ORDERS).append(order_rows(1))
            assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL])
def test_commit_that_sqlite_certainly_did_not_make_changes_nothing(sqlite_lake: tuple[Lake, Next], code: int) -> None:
    lake, plan = sqlite_lake
    lake.create_namespace("db")
    lake.create_table("db.orders", ORDERS).append(order_rows(1)).plan_orphans()
    for change in (
        lambda: lake.create_namespace("other"),
        lambda: lake.rename_table("db.orders", "db.moved"),
        lambda: lake.drop_table("db.orders"),
        lambda: lake.purge_table("db.orders"),
    ):
        plan((code, False))
        with pytest.raises(UnavailableError):
            change()
    assert lake.list_namespaces() == ["db"]
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]
