"""Write a backup of a catalog: its rows as they are at one moment, whoever commits meanwhile."""

import sqlalchemy as sa

from bergline.catalog.sql.backup.backup_file import VERSION, BackupHeader, BackupSummary, BackupTable, BackupWriter
from bergline.catalog.sql.backup.contents import TABLES_OF_A_CATALOG, BackupProgress, stored_columns
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.migrations import find_layout

_AT_ONCE = 1000


def back_up_catalog(
    database: SqlDatabase,
    catalog_name: str,
    path: str,
    *,
    made_ms: int,
    made_by: str,
    progress: BackupProgress | None = None,
) -> BackupSummary:
    """Write all rows of a catalog to a new file; the database is only read, whatever its layout is."""
    with database.reading_snapshot() as connection:
        layout = find_layout(connection).version
        writer = BackupWriter(path, BackupHeader(VERSION, catalog_name, layout, made_ms, made_by))
        with writer:
            for table in TABLES_OF_A_CATALOG:
                if sa.inspect(connection).has_table(table.name):
                    _write_table(connection, catalog_name, table, writer, progress)
    return writer.summary()


def _write_table(
    connection: sa.Connection,
    catalog_name: str,
    table: sa.Table,
    writer: BackupWriter,
    progress: BackupProgress | None,
) -> None:
    there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
    columns = [column for column in stored_columns(table) if column.name in there]
    mine = table.c.catalog_name == catalog_name
    total = 0
    if progress is not None:
        total = connection.execute(sa.select(sa.func.count()).where(mine)).scalar_one()
    writer.begin(BackupTable(str(table.name), tuple(str(column.name) for column in columns)))
    query = sa.select(*columns).where(mine).order_by(*table.primary_key)
    done = 0
    with connection.execute(query, execution_options={"yield_per": _AT_ONCE}) as found:
        for rows in found.partitions():
            writer.add([tuple(row) for row in rows])
            done += len(rows)
            if progress is not None:
                progress(table.name, done, total)
