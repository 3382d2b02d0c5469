"""The file of an SQLite catalog, without SQLAlchemy: opened, and looked at to see whether it is ready for use."""

import contextlib
import os
import sqlite3
from urllib.parse import quote

from bergline.catalog.identifiers import MAX_NAME_LENGTH
from bergline.catalog.sql.layout_version import LAYOUT_VERSION

_TABLES = {"iceberg_tables", "iceberg_namespace_properties", "bergline_layout", "bergline_tokens"}
_NAMED = ("iceberg_tables", "iceberg_namespace_properties", "bergline_tokens")


def open_file(path: str, *, mode: str, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection whose transactions the caller manages; on a read-only disk it works without SQLite's side files."""
    still = "&immutable=1" if _is_read_only(os.path.dirname(path)) else ""
    return sqlite3.connect(
        f"file:{quote(path)}?mode={mode}{still}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,  # the pool hands a connection to one thread at a time
    )


def is_ready(path: str, catalog_name: str, *, create: bool) -> bool:
    """Whether opening the catalog would surely find it, with nothing to migrate: then that can wait for its first use.

    False in any doubt: then opening says what is wrong.
    """
    if len(catalog_name) > MAX_NAME_LENGTH or "\0" in catalog_name:
        return False
    try:
        with contextlib.closing(open_file(path, mode="rw", busy_timeout_s=0)) as connection:
            return _is_current(connection) and (create or _may_have(connection, catalog_name))
    except (sqlite3.Error, ValueError):
        return False


def _is_current(connection: sqlite3.Connection) -> bool:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables >= _TABLES:
        return False
    (version,) = connection.execute("SELECT max(version) FROM bergline_layout").fetchone()
    columns = connection.execute("SELECT name FROM pragma_table_info('iceberg_tables')")
    return version == LAYOUT_VERSION and ("iceberg_type",) in columns.fetchall()


def _may_have(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the catalog has rows, or no other catalog has."""
    of_name = [f"SELECT 1 FROM {table} WHERE catalog_name = ?" for table in _NAMED]  # noqa: S608  (names of our own)
    of_any = [f"SELECT 1 FROM {table}" for table in _NAMED]  # noqa: S608  (names of our own)
    return any(connection.execute(f"{query} LIMIT 1", (name,)).fetchone() for query in of_name) or not any(
        connection.execute(f"{query} LIMIT 1").fetchone() for query in of_any
    )


def _is_read_only(directory: str) -> bool:
    try:
        return bool(os.statvfs(directory).f_flag & os.ST_RDONLY)
    except OSError:
        return False
