"""Single rows read on a connection that stays open."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import UnavailableError

ORDERS = TableName(("db",), "orders")


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
