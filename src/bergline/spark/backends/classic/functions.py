"""CREATE FUNCTION … RETURN …, as Spark's own parser reads it."""

from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bergline.spark.backends.classic.parsed import parse, read_parsed
from bergline.spark.runtime.backend import SqlFunction
from bergline.sql.queries.query import Query
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import SqlText

_TEMPORARY, _PERSISTENT = "CreateSQLFunctionCommand", "CreateUserDefinedFunction"
_SELECT = "SELECT "


def read_function(sql: SqlText, spark: SparkSession) -> SqlFunction | None:
    """The function that a statement creates, with the tables that it reads; None if it creates none in SQL."""
    try:
        plan = parse(sql.text, spark)
    except PySparkException:
        return None
    kind = str(plan.getClass().getSimpleName())
    if kind not in {_TEMPORARY, _PERSISTENT}:
        return None
    query, expression = _text(plan.queryText()), _text(plan.exprText())
    before = "" if query is not None else _SELECT
    body = query or expression
    found = None if body is None else read_parsed(SqlText(before + body), spark)
    if body is None or not isinstance(found, Query):
        return None
    start = sql.text.rindex(body)
    moved = start - len(before)
    uses = tuple(msgspec.structs.replace(u, start=u.start + moved, end=u.end + moved) for u in found.tables)
    is_temporary = kind == _TEMPORARY and bool(plan.isTemp())
    name = str(plan.name().unquotedString()) if kind == _TEMPORARY else ""
    return SqlFunction(
        parse_name(name, "a function's name")[-1] if is_temporary else name,
        Query(sql, uses),
        sql.part(start, start + len(body)),
        is_temporary,
    )


def _text(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
