"""The pointers in a backup: of tables and views, and of those in the trash."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.backup.backup_file import BackupSummary
from bergline.catalog.sql.backup.contents import read_rows
from bergline.catalog.sql.governance_layout import DROPPED_VIEWS
from bergline.catalog.sql.layout import TABLES, RowKind
from bergline.catalog.sql.records_layout import DROPPED_TABLES


class PointerOf(StrEnum):
    """What a pointer is of."""

    TABLE = "table"
    VIEW = "view"
    DROPPED_TABLE = "dropped table"
    DROPPED_VIEW = "dropped view"


_TRASH = {DROPPED_TABLES: PointerOf.DROPPED_TABLE, DROPPED_VIEWS: PointerOf.DROPPED_VIEW}


class StoredPointer(msgspec.Struct, frozen=True):
    """A name and its metadata file, as a catalog's database has them; None in a row without one."""

    kind: PointerOf
    name: TableName
    metadata_location: str | None


def count_pointers(summary: BackupSummary) -> int:
    """How many pointers a backup has."""
    return sum(summary.rows.get(table.name, 0) for table in (TABLES, *_TRASH))


def stored_pointers(path: str) -> Iterator[StoredPointer]:
    """The pointers of a backup, in its order."""
    for table, row in read_rows(path):
        if table is TABLES:
            is_view = row.get("iceberg_type") == RowKind.VIEW.value
            name = TableName(tuple(row["table_namespace"].split(".")), row["table_name"])
            yield StoredPointer(PointerOf.VIEW if is_view else PointerOf.TABLE, name, row["metadata_location"])
        elif table in _TRASH:
            name = TableName(tuple(row["namespace"].split(".")), row["name"])
            yield StoredPointer(_TRASH[table], name, row["metadata_location"])
