"""SQL texts in classic sessions: Spark's own parser and optimizer, in the driver's JVM."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter

from bergline.expressions.predicate import Predicate
from bergline.spark.backends.classic.parsed import (
    analyzed,
    frame_of,
    headed,
    parse,
    read_named,
    read_parsed,
    substituted,
    with_arguments,
    with_files,
)
from bergline.spark.backends.classic.pushed_filters import placeholder, pushed_filters, used_columns
from bergline.spark.backends.classic.query_errors import note_part, send, sent_query
from bergline.spark.backends.classic.scripts import read_script, run_script
from bergline.spark.backends.classic.system_functions import with_plain_names, with_system_functions
from bergline.spark.query_text.lake_functions import FUNCTION_PREFIX
from bergline.spark.runtime.sql_backend import DeferredRows, Script, SqlFunction, TablePlace, TableQuery
from bergline.spark.runtime.types import read_schema
from bergline.sql.queries.query import OtherStatement, Query
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.scan import TableScan

_TEMPORARY, _PERSISTENT = "CreateSQLFunctionCommand", "CreateUserDefinedFunction"
_SELECT = "SELECT "


class ClassicSql(msgspec.Struct, frozen=True):
    """How a session of this process reads and runs SQL."""

    spark: SparkSession

    @property
    def has_partition_functions(self) -> bool:
        return True

    def placeholder(self, scan: TableScan) -> tuple[int, DataFrame] | None:
        return placeholder(self.spark, read_schema(scan.schema))

    def deferred_filters(self, rows: DeferredRows) -> Mapping[int, Predicate]:
        return pushed_filters(rows.rows, {n: known.scan.table_schema for n, known in rows.scans.items()})

    def with_files(self, rows: DataFrame, found: Mapping[int, DataFrame]) -> DataFrame:
        return with_files(rows, found)

    def formatter(self) -> SQLStringFormatter:
        return SQLStringFormatter(self.spark)

    def read_query(self, sql: SqlText) -> Query | OtherStatement:
        return read_parsed(sql, self.spark)

    def read_script(self, sql: SqlText) -> Script | None:
        return read_script(sql, self.spark)

    def run_script(
        self,
        script: Script,
        views: Mapping[int, Mapping[str, TablePlace]],
        change: Mapping[int, Callable[[], None]],
        args: Any,
    ) -> DataFrame:
        return run_script(script, views, change, args, self.spark)

    def read_function(self, sql: SqlText) -> SqlFunction | None:
        """Spark's own parser knows functions in SQL by two kinds of commands."""
        try:
            plan = parse(sql.text, self.spark)
        except PySparkException:
            return None
        kind = str(plan.getClass().getSimpleName())
        if kind not in {_TEMPORARY, _PERSISTENT}:
            return None
        query, expression = _text(plan.queryText()), _text(plan.exprText())
        before = "" if query is not None else _SELECT
        body = query or expression
        found = None if body is None else read_parsed(SqlText(before + body), self.spark)
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

    def query_pushdown(self, query: TableQuery) -> "ClassicPushdown":
        return ClassicPushdown(self, query)

    def parsed_once(self, query: TableQuery) -> TableQuery:
        if query.parsed is not None or not query.places:
            return query
        named = send(query.query, "", query.places, query.labels)
        parsed, numbers = read_named(named.text, named.names.values(), self.spark)
        found = {key: numbers[name] for key, name in named.names.items() if name in numbers}
        places = {key: TablePlace((number,), query.places[key].name) for key, number in found.items()}
        return query._replace(parsed=parsed, places=places)

    def run_query(self, query: TableQuery, frames: Mapping[str, DataFrame], head: str = "") -> DataFrame:
        if query.parsed is not None:
            note_part(query.query)
            rows = {name: analyzed(frame) for name, frame in frames.items()}
            plan = substituted(query.parsed, query.places, rows, self.spark)
            return self._frame(plan, query, head)
        with sent_query(query.query, head, frames, query.labels, self.spark) as sent:
            return query.run_sql(sent, query.args)

    def _frame(self, plan: Any, query: TableQuery, head: str) -> DataFrame:
        plan = with_arguments(plan, query.args, self.spark)
        if FUNCTION_PREFIX not in query.query.sql.text:
            return frame_of(headed(plan, head, self.spark), self.spark)
        plan = with_system_functions(plan, self.spark)
        if head and query.writes:  # it is only explained
            return frame_of(headed(plan, head, self.spark), self.spark)
        rows = with_plain_names(frame_of(plan, self.spark))
        return frame_of(headed(analyzed(rows), head, self.spark), self.spark) if head else rows


class ClassicPushdown:
    """What Spark's optimizer makes of a query on placeholders, at most once for filters and columns."""

    def __init__(self, backend: ClassicSql, query: TableQuery) -> None:
        self._backend = backend
        self._query = query
        self._scans = query.unread

    def filters(self) -> Mapping[str | int, Predicate]:
        query, views = self._query, self._query.views
        has_conditions = bool(views) or query.query.sql.has_word("WHERE", "ON", "HAVING")
        if not self._scans or not has_conditions:
            return {}
        if query.writes:
            return self._filters_of_views()
        try:
            probe, numbers = self._probe
            found = pushed_filters(probe, {number: self._scans[key].table_schema for number, key in numbers.items()})
        except AnalysisException:
            if query.head:  # the statement says what is wrong
                return self._filters_of_views()
            raise
        return {key: found[number] for number, key in numbers.items()}

    def _filters_of_views(self) -> dict[str | int, Predicate]:
        """What each view asks of its tables by itself."""
        found: dict[str | int, Predicate] = {}
        for view in self._query.views.values():
            found |= dict(self._backend.deferred_filters(view).items())
        return found

    def used_columns(self, name: str | int) -> frozenset[str] | None:
        return None if self._query.writes or self._query.head else self._used[name]

    @functools.cached_property
    def _used(self) -> dict[str | int, frozenset[str] | None]:
        probe, numbers = self._probe
        found = used_columns(probe, numbers)
        return {key: found[number] for number, key in numbers.items()}

    @functools.cached_property
    def _probe(self) -> tuple[DataFrame, dict[int, str | int]]:
        """The query on placeholders, and what each of these stands for."""
        query, spark = self._query, self._backend.spark
        own = {name: placeholder(spark, read_schema(scan.schema)) for name, scan in query.scans.items()}
        views = {name: view.rows for name, view in query.views.items()}
        numbers: dict[int, str | int] = {number: name for name, (number, _) in own.items()}
        numbers |= {key: key for key in self._scans if isinstance(key, int)}
        frames = {**query.frames, **views, **{name: rows for name, (_, rows) in own.items()}}
        return self._backend.run_query(query, frames), numbers


def _text(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
