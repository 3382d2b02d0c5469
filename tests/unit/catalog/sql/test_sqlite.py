"""What is special about SQLite: the shared layout, locks, several catalogs in one file."""

import contextlib
import multiprocessing
import os
import sqlite3
import time
from pathlib import Path

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.sqlite import SqliteDatabase, SqlitePointerStore
from bergline.errors import InvalidInputError, StorageError, UnavailableError
from support.fixtures.concurrency import run_at_once

ORDERS = TableName(("db",), "orders")


def rows(path: Path) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM iceberg_tables").fetchall()
    finally:
        connection.close()


def test_row_has_the_columns_that_java_and_pyiceberg_expect(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"), catalog_name="lake")
    store.create(ORDERS, "a")
    store.swap(ORDERS, "a", "b")
    assert rows(tmp_path / "c.db") == [("lake", "db", "orders", "b", "a", "TABLE")]


def test_catalogs_in_one_file_do_not_see_each_other(tmp_path: Path) -> None:
    one = SqlitePointerStore(str(tmp_path / "c.db"), catalog_name="one")
    two = SqlitePointerStore(str(tmp_path / "c.db"), catalog_name="two")
    one.create(ORDERS, "a")
    one.create_namespace(("x",), {})
    assert two.read(ORDERS) is None
    assert two.list_namespaces() == []


def test_older_layout_without_type_column_works(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "c.db")
    connection.execute(
        "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
        "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
        "PRIMARY KEY (catalog_name, table_namespace, table_name))"
    )
    connection.close()
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    assert store.create(ORDERS, "a")
    assert store.swap(ORDERS, "a", "b")
    assert store.list_names(("db",)) == [ORDERS]
    assert rows(tmp_path / "c.db") == [("lake", "db", "orders", "b", "a")]


def test_views_are_not_tables(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    connection = sqlite3.connect(tmp_path / "c.db")
    connection.execute("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'orders', 'v', NULL, 'VIEW')")
    connection.commit()
    connection.close()
    assert store.read(ORDERS) is None
    assert store.list_names(("db",)) == []
    assert not store.drop(ORDERS)
    assert not store.swap(ORDERS, "v", "w")


def test_locked_database_is_unavailable_and_nothing_changes(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"), busy_timeout_s=0.05)
    store.create(ORDERS, "a")
    writer = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(UnavailableError, match=r"is locked by another writer"):
            store.swap(ORDERS, "a", "b")
        assert store.read(ORDERS) == "a"
    finally:
        writer.close()
    assert store.swap(ORDERS, "a", "b")


def test_file_that_is_no_database_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "c.db").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(StorageError, match=r"c\.db failed: file is not a database"):
        SqlitePointerStore(str(tmp_path / "c.db"))


def test_directory_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot open catalog database"):
        SqlitePointerStore(str(tmp_path / "file" / "c.db"))


@pytest.mark.parametrize(
    ("table", "pointer"),
    [(TableName(("d" * 256,), "t"), "p"), (TableName(("d",), "t" * 256), "p"), (ORDERS, "p" * 1001)],
)
def test_what_the_layout_would_cut_off_is_refused(tmp_path: Path, table: TableName, pointer: str) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    with pytest.raises(InvalidInputError, match="characters, found"):
        store.create(table, pointer)
    assert rows(tmp_path / "c.db") == []


def test_database_put_in_place_of_another_is_the_one_that_is_used(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    store.create(ORDERS, "old")
    other = SqlitePointerStore(str(tmp_path / "other.db"))
    other.create(ORDERS, "new")
    other.close()
    for leftover in ("c.db-wal", "c.db-shm"):
        (tmp_path / leftover).unlink(missing_ok=True)
    (tmp_path / "other.db").replace(tmp_path / "c.db")
    assert store.read(ORDERS) == "new"
    assert store.swap(ORDERS, "new", "newer")
    assert rows(tmp_path / "c.db")[0][3] == "newer"


def test_removed_database_takes_no_commit(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    store.create(ORDERS, "a")
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(UnavailableError, match=r"cannot open catalog database .*c\.db"):
        store.swap(ORDERS, "a", "b")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_process_opens_its_own_connection(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    store.create(ORDERS, "a")
    child = multiprocessing.get_context("fork").Process(target=store.swap, args=(ORDERS, "a", "b"))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert store.read(ORDERS) == "b"
    assert store.swap(ORDERS, "b", "c")


def test_thread_that_waits_too_long_for_another_is_told(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"), busy_timeout_s=0.05)
    store.create(ORDERS, "a")
    told: list[BaseException] = []

    def swap() -> None:
        try:
            store.swap(ORDERS, "a", "b")
        except UnavailableError as error:
            told.append(error)

    with store.database.writing():
        run_at_once(swap)
    assert "is locked by another writer" in str(told)
    assert store.swap(ORDERS, "a", "b")


def test_new_database_gets_its_mode_though_others_write_to_it_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "c.db")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE other (a INTEGER)")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        other.close()  # which ends its transaction

    monkeypatch.setattr(time, "sleep", wait)
    database = SqliteDatabase(path, 60)
    database._create_file()
    assert len(waits) == 1
    with database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    database.close()


def test_file_that_cannot_be_opened_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.db").mkdir()
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(UnavailableError, match="cannot open catalog database"):
        SqlitePointerStore(str(tmp_path / "c.db"))
    assert waits == []


def test_every_read_sees_what_another_process_committed(tmp_path: Path) -> None:
    ours, theirs = (SqlitePointerStore(f"{tmp_path}/c.db") for _ in range(2))
    assert ours.read(ORDERS) is None
    theirs.create(ORDERS, "a")
    for number in range(20):
        assert ours.read(ORDERS) == ("a" if number == 0 else str(number - 1))
        theirs.swap(ORDERS, "a" if number == 0 else str(number - 1), str(number))
    ours.close()
    theirs.close()


def test_database_that_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    store, other = SqlitePointerStore(f"{tmp_path}/c.db"), SqlitePointerStore(f"{tmp_path}/other.db")
    store.create(ORDERS, "old")
    assert store.read(ORDERS) == "old"
    other.create(ORDERS, "new")
    other.close()
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"c.db{ending}").unlink(missing_ok=True)
    (tmp_path / "other.db").rename(tmp_path / "c.db")
    assert store.read(ORDERS) == "new"
    (tmp_path / "c.db").unlink()
    with pytest.raises(UnavailableError, match="cannot open catalog database"):
        store.read(ORDERS)
    store.close()


def test_forked_process_reads_on_a_connection_of_its_own(tmp_path: Path) -> None:
    store = SqlitePointerStore(f"{tmp_path}/c.db")
    store.create(ORDERS, "a")
    assert store.read(ORDERS) == "a"
    child = os.fork()
    if child == 0:
        os._exit(0 if store.read(ORDERS) == "a" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.read(ORDERS) == "a"
    store.close()


def test_reader_does_not_keep_the_log_from_being_emptied(tmp_path: Path) -> None:
    store = SqlitePointerStore(f"{tmp_path}/c.db")
    store.create(ORDERS, "0")
    assert store.read(ORDERS) == "0"
    store.swap(ORDERS, "0", "1")
    with contextlib.closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0
    assert store.read(ORDERS) == "1"
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_new_database_and_its_side_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqlitePointerStore(str(tmp_path / "catalog.db"))
        store.create_namespace(("db",), {})
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"catalog.db": 0o600, "catalog.db-wal": 0o600, "catalog.db-shm": 0o600}
    assert store.database.file_open_to_others() is None
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_mode_of_a_database_that_is_there_stays_and_is_told(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "catalog.db"
    SqlitePointerStore(str(file)).close()
    file.chmod(mode)
    store = SqlitePointerStore(str(file))
    assert file.stat().st_mode & 0o777 == mode
    assert store.database.file_open_to_others() == str(file)
    store.close()
