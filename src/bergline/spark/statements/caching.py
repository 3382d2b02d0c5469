"""Lake tables that are cached by their names: CACHE TABLE, UNCACHE TABLE, REFRESH TABLE and `spark.catalog`."""

from pyspark import StorageLevel

from bergline.errors import InvalidInputError, NotFoundError
from bergline.spark.reads.cached import CACHED
from bergline.spark.reads.native import spark_location
from bergline.spark.reads.scan import read
from bergline.spark.statements.session_queries import SessionQueries
from bergline.spark.statements.tables import SessionTables
from bergline.sql.statements.drop_table import ForgetCached
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.scan import TableScan

_LEVEL = "storagelevel"


def cache_by_name(tables: SessionTables, sql: SqlText) -> bool:
    """CACHE TABLE without a query; false if it is not about a table of a lake."""
    cursor = Cursor(sql)
    cursor.expect("CACHE")
    is_lazy = cursor.accept("LAZY")
    cursor.expect("TABLE")
    name = cursor.expect_dotted_name("a table name")
    scan = tables.scan_by_name(name)
    if scan is None:
        return False
    level = None
    if cursor.accept("OPTIONS"):
        level = _storage_level(cursor)
    cursor.expect_end()
    cache_table(tables, scan, level, is_lazy=is_lazy)
    return True


def cache_table(tables: SessionTables, scan: TableScan, level: StorageLevel | None, *, is_lazy: bool) -> None:
    """Cache the rows of a table, unless they are cached: at once, or, if lazy, when they are first read."""
    if CACHED.find(scan, tables.backend) is None:
        uncache_table(tables, scan)
        rows = read(scan, tables.spark)
        CACHED.keep(rows.cache() if level is None else rows.persist(level), scan, tables.backend)
        if not is_lazy:
            rows.count()


def is_cached(queries: SessionQueries, scan: TableScan, name: str) -> bool:
    """Whether Spark keeps the rows of a table, by its name or by a frame of the whole table."""
    if CACHED.find(scan, queries.tables.backend) is not None:
        return True
    rows = queries.table(name)
    return rows is not None and _is_kept(rows.storageLevel)


def uncache_table(tables: SessionTables, scan: TableScan) -> None:
    """Drop the rows that are cached of a table."""
    dropped = CACHED.drop(scan, tables.backend)
    if dropped is not None:
        dropped.rows.unpersist()


def refresh_table(tables: SessionTables, scan: TableScan) -> None:
    """Have Spark fill again what it has cached of a table, as others may have changed it."""
    cached = CACHED.drop(scan, tables.backend)
    if cached is not None and _is_kept(level := cached.level):
        cached.rows.unpersist()
        CACHED.keep(read(scan, tables.spark).persist(level), scan, tables.backend)
    tables.backend.refresh_cached(spark_location(scan.metadata.location))


def forget_cached(tables: SessionTables, statement: ForgetCached) -> None:
    """UNCACHE TABLE and REFRESH TABLE of a table that is there, or of one that need not be."""
    try:
        scan = tables.scan_by_name(statement.table)
    except NotFoundError:
        return
    if scan is not None:
        (uncache_table if statement.is_for_good else refresh_table)(tables, scan)


def _is_kept(level: StorageLevel) -> bool:
    return level.useMemory or level.useDisk


def _storage_level(cursor: Cursor) -> StorageLevel | None:
    """The level that OPTIONS say; what else they say means nothing, as in Spark."""
    level = None
    cursor.expect_symbol("(")
    while True:
        key = cursor.expect_text("an option")
        cursor.accept_symbol("=")
        value = cursor.expect_text("a value")
        if key.lower() == _LEVEL:
            level = getattr(StorageLevel, value.upper(), None)
            if not isinstance(level, StorageLevel):
                raise InvalidInputError(f"expected a storage level such as `MEMORY_AND_DISK`, found `{value}`")
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return level
