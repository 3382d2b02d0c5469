"""ANALYZE TABLE: rows and bytes are in Iceberg's metadata already; FOR COLUMNS counts distinct values."""

import pyarrow as pa

from bergline.errors import UnsupportedError
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.show_names import parse_namespace, shown_namespace
from bergline.sql.statements.statement import NO_ROWS, LakeStatement, StatementKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name


class AnalyzeTable(LakeStatement, frozen=True):
    """ANALYZE TABLE: `columns` are those to count the distinct values of, None for no column, () for all."""

    table: Name
    columns: tuple[str, ...] | None = None


class AnalyzeTables(LakeStatement, frozen=True):
    """ANALYZE TABLES, of a namespace or of the current one."""

    namespace: Name | None = None


def parse_analyze_table(cursor: Cursor) -> AnalyzeTable:
    """Parse what follows ANALYZE TABLE."""
    table = cursor.expect_subject("a table name")
    if cursor.token.is_word("PARTITION"):
        raise UnsupportedError(
            "cannot analyze one partition of a lake table",
            hints=["CALL system.compute_partition_stats(table => …) counts rows and files of all of them"],
        )
    cursor.expect("COMPUTE", "STATISTICS")
    columns: tuple[str, ...] | None = None
    if cursor.accept("FOR", "ALL", "COLUMNS"):
        columns = ()
    elif cursor.accept("FOR", "COLUMNS"):
        columns = _columns(cursor)
    else:
        cursor.accept("NOSCAN")
    cursor.expect_end(*(() if columns is not None else ("`NOSCAN`", "`FOR COLUMNS`", "`FOR ALL COLUMNS`")))
    return AnalyzeTable(table, columns)


def parse_analyze_tables(cursor: Cursor) -> AnalyzeTables:
    """Parse what follows ANALYZE TABLES."""
    namespace = parse_namespace(cursor)
    cursor.expect("COMPUTE", "STATISTICS")
    cursor.accept("NOSCAN")
    cursor.expect_end()
    return AnalyzeTables(namespace)


def _columns(cursor: Cursor) -> tuple[str, ...]:
    names = []
    while True:
        names.append(".".join(cursor.expect_dotted_name("a column's name")))
        if not cursor.accept_symbol(","):
            return tuple(names)


def analyze_table(statement: AnalyzeTable, lakes: Lakes) -> pa.Table | None:
    """Count the distinct values of columns, as `CALL system.compute_table_stats` does."""
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    if statement.columns is not None:
        known = {name.casefold(): name for name in table.schema.names}
        columns = [known.get(name.casefold(), name) for name in statement.columns]
        for name in columns:
            table.schema.find(name)
        table.compute_statistics(columns or None, engine=lakes.engine.row_engine())
    return NO_ROWS


def analyze_tables(statement: AnalyzeTables, lakes: Lakes) -> pa.Table | None:
    """Nothing is left to count; the namespace must exist."""
    placed = shown_namespace(statement.namespace, lakes)
    if placed is None:
        return None
    lake, namespace = placed
    if namespace:
        lake.namespace_properties(namespace)
    return NO_ROWS


ANALYZE_TABLE = StatementKind((AnalyzeTable,), {"ANALYZE TABLE": parse_analyze_table}, analyze_table)
ANALYZE_TABLES = StatementKind((AnalyzeTables,), {"ANALYZE TABLES": parse_analyze_tables}, analyze_tables)
