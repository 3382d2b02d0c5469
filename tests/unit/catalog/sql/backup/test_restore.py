"""A restored catalog is the one that was backed up; where that cannot be, nothing is changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.backup.back_up import back_up_catalog
from bergline.catalog.sql.backup.contents import TABLES_OF_A_CATALOG, read_summary
from bergline.catalog.sql.backup.restore import CatalogRestore, count_rows, restore_catalog
from bergline.catalog.sql.governance_layout import DROPPED_VIEWS
from bergline.catalog.sql.records import AuditEntry, Records
from bergline.catalog.sql.records_layout import AUDIT, DROPPED_TABLES
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import FormatError, NotEmptyError, RefusedError

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.server)]
ENTRY = AuditEntry(9, "ann", "restore_catalog", "catalog/lake")
T = TableName(("db",), "t1")


def fill(store: SqlPointerStore, rows: int = 3) -> None:
    """Put rows into every table of the catalog."""
    with store.database.changing() as connection:
        for table in TABLES_OF_A_CATALOG:
            keys = {column.name for column in table.primary_key}
            for number in range(1, rows + 1 if keys != {"catalog_name"} else 2):
                values = {column.key: _value(column, number) for column in table.columns}
                values |= {"catalog_name": store.catalog_name}
                if table.name == "iceberg_tables":
                    values |= {"table_namespace": "db", "table_name": f"t{number}", "iceberg_type": "TABLE"}
                connection.execute(sa.insert(table).values(values))


def _value(column: sa.Column[Any], number: int) -> object:
    made: dict[type, object] = {bool: number % 2 == 0, int: number, float: 0.5, bytes: b"\x00\xff", dict: {"a": number}}
    return made.get(column.type.python_type, f"ü{number}")


def contents(store: SqlPointerStore) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the catalog, but those that say that it was restored, and until when things stay in the trash."""
    found = {}
    with store.database.reading() as connection:
        for table in TABLES_OF_A_CATALOG:
            columns = [
                column
                for column in table.columns
                if table not in (DROPPED_TABLES, DROPPED_VIEWS) or column.name != "keep_until_ms"
            ]
            query = sa.select(*columns).where(table.c.catalog_name == store.catalog_name).order_by(*table.primary_key)
            if table is AUDIT:
                query = query.where(table.c.operation != ENTRY.operation)
            found[table.name] = [tuple(row) for row in connection.execute(query)]
    return found


def back_up(store: SqlPointerStore, path: Path) -> str:
    back_up_catalog(store.database, store.catalog_name, str(path), made_ms=7, made_by="bergline 1")
    return str(path)


def restore(store: SqlPointerStore, path: str, **options: Any) -> None:
    restore_catalog(store.database, CatalogRestore(path, read_summary(path), store.catalog_name, **options), ENTRY)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("sqlite", "sqlite"),
        pytest.param("sqlite", "postgres", marks=pytest.mark.server),
        pytest.param("postgres", "sqlite", marks=pytest.mark.server),
    ],
)
def test_catalog_moves_to_another_database_whole(
    source: str, target: str, new_store: Callable[..., SqlPointerStore], tmp_path: Path
) -> None:
    one, other = new_store(source), new_store(target)
    fill(one)
    restore(other, back_up(one, tmp_path / "f"))
    assert contents(other) == contents(one)
    records = Records(other.database, "lake")
    assert records.newest_audit(1) == [ENTRY]
    with other.database.changing() as connection:  # keys of the database come after those that were restored
        records.add_audit(connection, msgspec.structs.replace(ENTRY, at_ms=10))
    assert other.swap(T, "ü1", "next")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_there_are_replaced_only_on_demand(
    kind: str, new_store: Callable[..., SqlPointerStore], tmp_path: Path
) -> None:
    store = new_store(kind)
    fill(store)
    before, path = contents(store), back_up(store, tmp_path / "f")
    store.create(TableName(("db",), "later"), "p")
    now = contents(store)
    with pytest.raises(NotEmptyError, match="expected an empty catalog to restore into, found rows of `lake`"):
        restore(store, path)
    assert contents(store) == now
    restore(store, path, replaces=True)
    assert contents(store) == before


def test_damaged_file_changes_nothing(new_store: Callable[..., SqlPointerStore], tmp_path: Path) -> None:
    store = new_store("sqlite")
    fill(store)
    path = back_up(store, tmp_path / "f")
    before, plan = contents(store), CatalogRestore(path, read_summary(path), "lake", replaces=True)
    whole = (tmp_path / "f").read_bytes()
    (tmp_path / "f").write_bytes(whole[:-20])
    with pytest.raises(FormatError, match="damaged"):
        restore_catalog(store.database, plan, ENTRY)
    assert contents(store) == before
    (tmp_path / "f").unlink()
    store.create(TableName(("db",), "later"), "p")
    before = contents(store)
    back_up(store, tmp_path / "f")
    with pytest.raises(FormatError, match="was changed while it was restored"):
        restore_catalog(store.database, plan, ENTRY)
    assert contents(store) == before


def test_catalog_beside_others_keeps_clear_of_them(tmp_path: Path) -> None:
    """Keys of the audit log and the trash are given anew; a token of another catalog is refused."""
    one = SqlitePointerStore(str(tmp_path / "one.db"))
    Records(one.database, "lake").tokens.create("ann", "secret", 1, None)
    with one.database.changing() as connection:
        Records(one.database, "lake").add_audit(connection, ENTRY)
    one.create(T, "p")
    path = back_up(one, tmp_path / "f")
    two = SqlitePointerStore(str(tmp_path / "two.db"), catalog_name="copy")
    with two.database.changing() as connection:
        Records(two.database, "other").add_audit(connection, ENTRY)
    restore(two, path)
    records = Records(two.database, "copy")
    assert two.read(T) == "p"
    assert (len(records.audit()), records.tokens.is_closed, [token.name for token in records.tokens.all()]) == (
        2,
        True,
        ["ann"],
    )
    third = SqlitePointerStore(str(tmp_path / "two.db"), catalog_name="third")
    with pytest.raises(RefusedError, match="another catalog in it has a row of the same key"):
        restore(third, path)
    assert count_rows(third.database, "third") == {}
    Records(two.database, "lake").tokens.create("bob", "other", 1, None)
    Records(two.database, "lake").tokens.revoke("bob")
    assert Records(two.database, "lake").tokens.is_closed
    for store in (one, two, third):
        store.close()


def test_time_since_the_backup_does_not_count_for_the_trash(
    new_store: Callable[..., SqlPointerStore], tmp_path: Path
) -> None:
    """What came back after the backup may be in use: it is not purged at once."""
    day = 86_400_000
    one, other = new_store("sqlite"), new_store("sqlite")
    with one.database.changing() as connection:
        for keep_until in (1, 30 * day):
            one.table_trash.add(connection, DroppedTable(T, "p", 0, keep_until, "ann", purges_files=True))
        one.view_trash.add(connection, DroppedView(T, "q", 0, 1, "ann"))
    path = back_up(one, tmp_path / "f")
    entry = msgspec.structs.replace(ENTRY, at_ms=100 * day)
    restore_catalog(other.database, CatalogRestore(path, read_summary(path), "lake"), entry)
    assert [kept.keep_until_ms for kept in other.dropped_tables()] == [130 * day - 7, 107 * day]
    assert [kept.keep_until_ms for kept in other.dropped_views()] == [107 * day]
    assert other.table_trash.claim(101 * day, 1) is None


def test_newer_pointers_take_the_place_of_those_in_the_backup(
    new_store: Callable[..., SqlPointerStore], tmp_path: Path
) -> None:
    one, other = new_store("sqlite"), new_store("sqlite")
    one.create(T, "p")
    restore(other, back_up(one, tmp_path / "f"), newer_pointers={("db", "t1"): "q"})
    assert other.read(T) == "q"
