"""What a backup holds."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.backup.backup_file import VERSION, BackupHeader, BackupTable, BackupWriter
from bergline.catalog.sql.backup.contents import TABLES_OF_A_CATALOG, read_rows, read_summary
from bergline.catalog.sql.contention_layout import CONTENTION
from bergline.catalog.sql.migrations import LAYOUT
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import BerglineError, FormatError, InvalidInputError, UnsupportedError

TOKENS = BackupTable("bergline_tokens", ("name", "hash", "created_ms", "expires_ms"))


def written(tmp_path: Path, table: BackupTable, *rows: tuple[object, ...]) -> str:
    path = str(tmp_path / "lake.backup")
    with BackupWriter(path, BackupHeader(VERSION, "lake", 6, 1, "bergline 1")) as writer:
        writer.begin(table)
        writer.add(rows)
    return path


def test_every_table_of_the_database_is_backed_up_by_its_catalog(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    with store.database.reading() as connection:
        names = set(sa.inspect(connection).get_table_names())
    store.close()
    assert names - {LAYOUT.name, *CONTENTION.tables} == {table.name for table in TABLES_OF_A_CATALOG}
    assert all("catalog_name" in table.c for table in TABLES_OF_A_CATALOG)


def test_every_column_has_a_type_that_a_backup_holds() -> None:
    kinds = {column.type.python_type for table in TABLES_OF_A_CATALOG for column in table.columns}
    assert kinds <= {str, int, bool, float, dict, bytes}


def test_nothing_refers_to_keys_that_the_database_gives() -> None:
    """A restore beside other catalogs gives new ones, in the same order."""
    for table in TABLES_OF_A_CATALOG:
        assert not table.foreign_keys
        if (given := table.autoincrement_column) is not None:
            assert (given.name, [column.name for column in table.primary_key]) == ("id", ["id"])


def test_rows_come_by_column(tmp_path: Path) -> None:
    path = written(tmp_path, TOKENS, ("ann", "abc", 1, None))
    ((table, row),) = read_rows(path)
    assert table.name == "bergline_tokens"
    assert row == {"name": "ann", "hash": "abc", "created_ms": 1, "expires_ms": None}
    assert read_summary(path).rows == {"bergline_tokens": 1}


@pytest.mark.parametrize(
    ("table", "row", "error", "message"),
    [
        (BackupTable("bergline_flags", ("a",)), (1,), UnsupportedError, "found `bergline_flags`"),
        (BackupTable("bergline_tokens", ("name", "colour")), ("a", "b"), UnsupportedError, "found `colour`"),
        (TOKENS, ("ann", "abc", "then", None), FormatError, "expected a value of type int"),
        (TOKENS, ("ann", "a" * 65, 1, None), InvalidInputError, "up to 64 characters, found 65"),
    ],
)
def test_what_the_layout_does_not_have_is_refused(
    tmp_path: Path, table: BackupTable, row: tuple[object, ...], error: type[BerglineError], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_summary(written(tmp_path, table, row))
