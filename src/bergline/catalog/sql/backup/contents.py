"""What a backup holds: all rows of a catalog, in the tables shared with others and in bergline's own."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.backup.backup_file import BackupReader, BackupSummary, BackupTable
from bergline.catalog.sql.governance_layout import GOVERNANCE
from bergline.catalog.sql.layout import SHARED
from bergline.catalog.sql.records_layout import RECORDS, TRASH_LAYOUT
from bergline.catalog.sql.security_layout import SECURITY
from bergline.errors import FormatError, InvalidInputError, UnsupportedError

TABLES_OF_A_CATALOG: tuple[sa.Table, ...] = tuple(
    table for layout in (SHARED, RECORDS, TRASH_LAYOUT, GOVERNANCE, SECURITY) for table in layout.sorted_tables
)
"""Each has a column `catalog_name`; those that others refer to come first."""
CATALOG_COLUMN = "catalog_name"
_UPGRADE = "a newer bergline made it: restore it with that one"
BackupProgress = Callable[[str, int, int], object]
"""Called with what is done now, how much of it is done, and how much there is."""


def stored_columns(table: sa.Table) -> tuple[sa.Column[Any], ...]:
    """The columns that a backup holds: all but the catalog's name."""
    return tuple(column for column in table.columns if column.name != CATALOG_COLUMN)


def known_table(path: str, found: BackupTable) -> tuple[sa.Table, tuple[sa.Column[Any], ...]]:
    """The table and columns of a backup in this version's layout; UnsupportedError if it has none like that."""
    table = next((table for table in TABLES_OF_A_CATALOG if table.name == found.name), None)
    if table is None:
        raise UnsupportedError(f"expected tables of a catalog, found `{found.name}` in `{path}`", hints=[_UPGRADE])
    by_name = {column.name: column for column in stored_columns(table)}
    for name in found.columns:
        if name not in by_name:
            raise UnsupportedError(f"expected columns of `{table.name}`, found `{name}` in `{path}`", hints=[_UPGRADE])
    return table, tuple(by_name[name] for name in found.columns)


def row_values(path: str, columns: Sequence[sa.Column[Any]], row: Sequence[object]) -> dict[str, Any]:
    """The values of a row by the keys of their columns; FormatError if one is of another type."""
    return {column.key: _value(path, column, value) for column, value in zip(columns, row, strict=True)}


def read_summary(path: str, progress: BackupProgress | None = None) -> BackupSummary:
    """Read a backup to its end; FormatError if it is damaged, UnsupportedError if this version cannot restore it."""
    found: list[BackupSummary] = []
    for _ in read_rows(path, progress, found):
        pass
    return found[0]


def read_rows(
    path: str, progress: BackupProgress | None = None, summaries: list[BackupSummary] | None = None
) -> Iterator[tuple[sa.Table, dict[str, Any]]]:
    """The rows of a backup; its summary is added to the list at its end."""
    with BackupReader(path) as reader:
        last: BackupTable | None = None
        for number, (found, row) in enumerate(reader.rows()):
            if found is not last:
                table, columns = known_table(path, found)
                last = found
            yield table, row_values(path, columns, row)
            if progress is not None and number % 1000 == 0:
                progress("read the backup", reader.position, reader.size)
        if summaries is not None:
            summaries.append(reader.summary)


def _value(path: str, column: sa.Column[Any], value: object) -> object:
    kind = column.type.python_type
    if value is None or kind is dict:
        return value
    try:
        known = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        place = f"`{column.table.name}.{column.name}` in `{path}`"
        raise FormatError(f"expected a value of type {kind.__name__}, found another for {place}") from error
    longest = getattr(column.type, "length", None)
    if longest is not None and len(known) > longest:
        place = f"`{column.table.name}.{column.name}` in `{path}`"
        raise InvalidInputError(f"expected a text of up to {longest} characters, found {len(known)} for {place}")
    return known
