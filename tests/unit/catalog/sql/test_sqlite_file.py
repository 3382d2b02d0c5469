"""A catalog's file is ready if opening it would surely succeed and change nothing."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

import bergline
from bergline.catalog.sql.sqlite_file import is_ready
from bergline.errors import BerglineError, InvalidInputError


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = str(tmp_path / "catalog.db")
    with bergline.connect(f"sqlite:///{found}", create=True) as lake:
        lake.create_namespace("db")
    return found


def run(path: str, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(statement)


def test_catalog_with_rows_is_ready(path: str) -> None:
    assert is_ready(path, "lake", create=False)


def test_new_catalog_without_rows_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    bergline.connect(f"sqlite:///{path}", create=True).close()
    assert is_ready(str(path), "lake", create=False)


def test_another_name_than_those_that_are_there_is_not_ready_unless_it_may_be_made(path: str) -> None:
    assert not is_ready(path, "lakes", create=False)
    assert is_ready(path, "lakes", create=True)
    assert not is_ready(path, "l" * 256, create=True)
    assert not is_ready(path, "a\0b", create=True)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO bergline_layout VALUES (99)",
        "DELETE FROM bergline_layout WHERE version > 3",
        "DELETE FROM bergline_layout",
        "DROP TABLE bergline_layout",
        "DROP TABLE iceberg_namespace_properties",
        "DROP INDEX bergline_views; ALTER TABLE iceberg_tables DROP COLUMN iceberg_type",
    ],
)
def test_another_layout_is_not_ready(path: str, statement: str) -> None:
    run(path, statement)
    assert not is_ready(path, "lake", create=True)


def test_what_is_no_database_is_not_ready(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database" * 1000)
    for path in (broken, tmp_path, tmp_path / "missing.db"):
        assert not is_ready(str(path), "lake", create=True)
    assert not (tmp_path / "missing.db").exists()


def test_ready_catalog_that_is_deleted_before_its_first_use_is_not_made_again(path: str) -> None:
    lake = bergline.connect(f"sqlite:///{path}", create=True)
    Path(path).unlink()
    with pytest.raises(BerglineError):
        lake.list_namespaces()
    assert not Path(path).exists()


def test_ready_catalog_can_be_closed_unused_and_is_closed_then(path: str) -> None:
    lake = bergline.connect(f"sqlite:///{path}")
    lake.close()
    lake.close()
    with pytest.raises(InvalidInputError, match="closed"):
        lake.list_namespaces()
