"""Texts and names that Spark works out when a statement is run: EXECUTE IMMEDIATE, and IDENTIFIER's expressions."""

from typing import Any

from pyspark.errors import PySparkException

from bergline.errors import SqlSyntaxError, UnsupportedError
from bergline.spark.runtime.backend import RunSql
from bergline.sql.names.resolve import Lakes
from bergline.sql.parse.analyze import analyze
from bergline.sql.parse.immediate import parse_immediate
from bergline.sql.parse.query_tables import loose_names
from bergline.sql.statements.statements import Insert, Query
from bergline.sql.statements.table_statements import CreateTable


def constant(expression: str, args: Any, run_sql: RunSql) -> Any:
    """What Spark makes of a constant expression; None if it refuses."""
    try:
        return run_sql(f"SELECT {expression}", args).collect()[0][0]
    except PySparkException:
        return None


def immediate_text(text: str, args: Any, lakes: Lakes, run_sql: RunSql) -> tuple[str, Any] | None:
    """The statement and the arguments that EXECUTE IMMEDIATE runs, if it is about lake tables; None if it is not."""
    try:
        immediate = parse_immediate(text)
    except SqlSyntaxError:
        return None
    inner = constant(immediate.statement, args, run_sql) if immediate else None
    if immediate is None or not isinstance(inner, str) or not _is_about(inner, lakes):
        return None
    if immediate.into:
        raise UnsupportedError(
            "cannot run EXECUTE IMMEDIATE … INTO on lake tables", hints=["take the value from spark.sql(text)"]
        )
    if immediate.arguments is None:
        return inner, None
    (row,) = run_sql(f"SELECT {immediate.arguments}", args).collect()
    return inner, row.asDict() if immediate.named else list(row)


def _is_about(text: str, lakes: Lakes) -> bool:
    match analyze(text):
        case Query() as query:
            names = tuple(use.name for use in query.tables)
        case Insert() as insert:
            names = (insert.table, *(use.name for use in insert.whole.tables))
        case CreateTable() as create:
            names = (create.table,)
        case _:
            names = loose_names(text)
    return any(lakes.owns(name) for name in names)
