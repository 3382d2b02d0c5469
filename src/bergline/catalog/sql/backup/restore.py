"""Load a backup into a catalog: all of its rows in one transaction, or none."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.backup.backup_file import BackupSummary
from bergline.catalog.sql.backup.contents import CATALOG_COLUMN, TABLES_OF_A_CATALOG, BackupProgress, read_rows
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import DROPPED_VIEWS
from bergline.catalog.sql.layout import TABLES, RowKind
from bergline.catalog.sql.migrations import find_layout
from bergline.catalog.sql.records import AuditEntry, Records
from bergline.catalog.sql.records_layout import DROPPED_TABLES, TOKENS
from bergline.catalog.sql.tokens.tokens import closing_token
from bergline.errors import FormatError, NotEmptyError, RefusedError, UnsupportedError

RESTORED = "restore_catalog"
"""The operation of the row in the audit log."""
_AT_ONCE = 1000
_LEAST_KEPT_MS = 7 * 24 * 60 * 60 * 1000

_TRASH = (DROPPED_TABLES, DROPPED_VIEWS)
PointerKey = tuple[str, str]
"""The namespace, as stored, and the name of a table or view."""


class CatalogRestore(msgspec.Struct, frozen=True):
    """A backup that was read to its end, and where its rows go."""

    path: str
    summary: BackupSummary
    catalog_name: str
    replaces: bool = False
    """Whether the rows that the catalog has go away, in the same transaction."""
    newer_pointers: Mapping[PointerKey, str] = {}
    """Metadata files that take the place of those in the backup."""

    def keep_until_ms(self, known_ms: int, now_ms: int) -> int:
        """Until when something stays in the trash: the time since the backup does not count.

        It may have come back since, and be in use: nothing is purged before somebody could look.
        """
        return max(known_ms + now_ms - self.summary.header.made_ms, now_ms + _LEAST_KEPT_MS)


def count_rows(database: SqlDatabase, catalog_name: str) -> dict[str, int]:
    """How many rows a catalog has, by table; tables without any are left out."""
    with database.reading_snapshot() as connection:
        return _counts(connection, catalog_name)


def restore_catalog(
    database: SqlDatabase, restore: CatalogRestore, entry: AuditEntry, progress: BackupProgress | None = None
) -> None:
    """Load a backup and note it in the audit log, in one transaction.

    NotEmptyError if the catalog has rows that are not to be replaced, FormatError if the file is not the one that was
    read before, RefusedError if another catalog of the database is in the way. After every error but StorageError
    nothing is changed.
    """
    try:
        with database.loading(TABLES_OF_A_CATALOG) as connection:
            _make_room(connection, restore)
            _load(connection, restore, entry.at_ms, progress)
            database.continue_keys(connection, TABLES_OF_A_CATALOG)
            Records(database, restore.catalog_name).add_audit(connection, entry)
    except sa.exc.IntegrityError as error:
        raise RefusedError(
            f"cannot restore catalog `{restore.catalog_name}` into {database.name}: another catalog in it has a row of "
            "the same key",
            hints=["nothing was changed; restore it into a database of its own"],
        ) from error


def check_empty(found: Mapping[str, int], catalog_name: str, database: str) -> None:
    """NotEmptyError if a catalog has rows."""
    if found:
        rows = ", ".join(f"{count:,} in `{table}`" for table, count in found.items())
        raise NotEmptyError(
            f"expected an empty catalog to restore into, found rows of `{catalog_name}` in {database}: {rows}",
            hints=["--replace removes them first; or restore under another --name, or into another database"],
        )


def _make_room(connection: sa.Connection, restore: CatalogRestore) -> None:
    if not restore.replaces:
        check_empty(_counts(connection, restore.catalog_name), restore.catalog_name, "the database")
        return
    for table in reversed(TABLES_OF_A_CATALOG):
        connection.execute(sa.delete(table).where(table.c.catalog_name == restore.catalog_name))


def _counts(connection: sa.Connection, catalog_name: str) -> dict[str, int]:
    found = {}
    for table in TABLES_OF_A_CATALOG:
        if sa.inspect(connection).has_table(table.name):
            query = sa.select(sa.func.count()).where(table.c.catalog_name == catalog_name)
            found[table.name] = connection.execute(query).scalar_one()
    return {name: count for name, count in found.items() if count}


def _load(connection: sa.Connection, restore: CatalogRestore, now_ms: int, progress: BackupProgress | None) -> None:
    summaries: list[BackupSummary] = []
    typed = find_layout(connection).typed
    rows = read_rows(restore.path, progress, summaries)
    for table, found in itertools.groupby(rows, key=lambda pair: pair[0]):
        given = table.autoincrement_column
        if given is not None and not _has_rows(connection, table):
            given = None
        changed = (_changed(restore, table, values, typed=typed, given=given) for _, values in found)
        if table in _TRASH:
            changed = (row | {"keep_until_ms": restore.keep_until_ms(row["keep_until_ms"], now_ms)} for row in changed)
        for some in _batches(changed):
            connection.execute(sa.insert(table), some)
    if summaries[0].sha256 != restore.summary.sha256:
        raise FormatError(f"the backup at `{restore.path}` was changed while it was restored")


def _changed(
    restore: CatalogRestore,
    table: sa.Table,
    values: dict[str, Any],
    *,
    typed: bool,
    given: sa.Column[Any] | None,
) -> dict[str, Any]:
    """A row for the catalog that it goes to; the database gives it a key of its own where others have rows.

    Keys that the database gives are only the order of rows: nothing refers to them.
    """
    values[CATALOG_COLUMN] = restore.catalog_name
    if given is not None:
        del values[given.key]
    if table is TOKENS:
        return values | closing_token(restore.catalog_name) if values["name"] == "" else values
    if table is not TABLES:
        return values
    newer = restore.newer_pointers.get((values["table_namespace"], values["table_name"]))
    if newer is not None:
        values |= {"previous_metadata_location": values["metadata_location"], "metadata_location": newer}
    if not typed and values.pop("iceberg_type", None) == RowKind.VIEW.value:
        raise UnsupportedError(
            f"cannot restore the view `{values['table_name']}`: the tables of this database hold no views",
            hints=["nothing was changed; restore it into a database that bergline creates"],
        )
    return values


def _has_rows(connection: sa.Connection, table: sa.Table) -> bool:
    return connection.execute(sa.select(table.c.catalog_name).limit(1)).first() is not None


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    left = iter(rows)
    while some := list(itertools.islice(left, _AT_ONCE)):
        yield some
