"""What an attached session does with a statement: those on lake tables are run here, the rest goes on to Spark."""

import functools
from typing import Any

from pyspark.sql import DataFrame

from bergline.arguments import check_text
from bergline.errors import UnsupportedError
from bergline.lake.lake import Lake
from bergline.spark.merge.statement import merge_rows
from bergline.spark.rows.statements import truncate
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.sql_backend import RunSql
from bergline.spark.statements.caching import cache_by_name, forget_cached
from bergline.spark.statements.engine_context import SparkEngineContext
from bergline.spark.statements.frame_arguments import run_with_frames, with_named_frames
from bergline.spark.statements.functions import SessionFunctions
from bergline.spark.statements.immediate import ImmediateStatement, constant, immediate_statement, with_identifiers
from bergline.spark.statements.inserts import check_replaces, create_as, insert_rows, insert_several
from bergline.spark.statements.queries import cache_rows, create_view, no_result, result_frame
from bergline.spark.statements.row_changes import change_rows
from bergline.spark.statements.scripts import run_script
from bergline.spark.statements.session_queries import SessionQueries
from bergline.spark.statements.session_text import VARIABLE, session_text
from bergline.spark.statements.tables import SessionTables
from bergline.spark.statements.views import define_view
from bergline.spark.writes.target import check_moves_no_ref, resolve_write_target
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import Insert, MultiInsert, OtherStatement, Query, QueryWrapper, RowLevel, TruncateTable
from bergline.sql.queries.wrappers import ExplainedChange
from bergline.sql.statements.call import CallProcedure, bind_parameters
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.statements.drop_table import ForgetCached
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.statements.registry import run_statement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.statements.views import AlterViewAs, CreateView
from bergline.sql.text.tokens import SqlText

_QUERIES = {"SELECT", "WITH", "VALUES", "FROM", "TABLE"}
_LONGEST_START = 100
_INTO = "bergline_frame_into"
_IDENTIFIER = "identifier"
"""A clause whose argument may be a name that stands elsewhere."""


class LakeSession:
    """A Spark session with lakes; `run_sql` is the session's own `sql`, as it was before attach."""

    def __init__(
        self,
        backend: SparkBackend,
        lakes: dict[str, Lake],
        default: str,
        current: Current,
        *,
        functions: SessionFunctions,
        run_sql: RunSql,
    ) -> None:
        self.backend = backend
        self.lakes = Lakes(lakes, default, current, SparkEngineContext(backend, run_sql))
        self.tables = SessionTables(backend, self.lakes)
        self.queries = SessionQueries(self.tables, run_sql)
        self.functions = functions

    def sql(self, text: str, args: Any = None, **frames: Any) -> DataFrame:
        """Run a statement."""
        has_known_args = args is None or isinstance(args, list | dict)
        if not has_known_args or self._is_plainly_sparks(check_text(text, "a statement as text")):
            return self.queries.run_sql(text, args, **frames)
        if frames:
            text, named = with_named_frames(text, frames, self.backend)
            run_sql = run_with_frames(self.queries.run_sql, named)
            self.queries = SessionQueries(self.tables, run_sql, named)
        return self._run(session_text(text, self.backend), args)

    def _is_plainly_sparks(self, text: str) -> bool:
        """Whether a text is a query that can name no table of a lake: without USE these have names of several parts."""
        words = text[:_LONGEST_START].split(maxsplit=1)
        is_query = bool(words) and words[0].upper() in _QUERIES and self.lakes.current == Current()
        may_name = "." in text or VARIABLE in text or _IDENTIFIER in text.lower()
        return is_query and not self.functions and not may_name

    def _run(self, sql: SqlText, args: Any) -> DataFrame:
        self.queries.forget_states()
        if not self.functions:
            return self._run_analyzed(sql, args)
        with self.functions.as_of_now(self.queries, sql):
            rows = self._run_analyzed(sql, args)
        self.functions.note_dropped(self.queries, sql)
        return rows

    def _run_analyzed(self, sql: SqlText, args: Any) -> DataFrame:
        queries, tables = self.queries, self.tables
        sql, args = with_identifiers(sql, args, self.lakes, functools.partial(constant, run_sql=queries.run_sql))
        statement = queries.analyze(sql)
        match statement:
            case Query():
                return queries.following().run_query(statement, args)
            case QueryWrapper():
                return self._run_wrapper(statement, args)
            case Insert():
                return insert_rows(queries, statement, args)
            case MultiInsert():
                return insert_several(queries, statement, args)
            case RowLevel():
                return change_rows(queries, statement, args)
            case ExplainedChange(head, RowLevel() as change):
                return change_rows(queries, change, args, explain=head.text)
            case ExplainedChange(head, MergeInto() as change):
                plan = merge_rows(queries, change, args, explain=head.text)
                if plan is not None:
                    return plan
            case MergeInto():
                merged = merge_rows(queries, statement, args)
                if merged is not None:
                    return merged
            case TruncateTable():
                target = self.lakes.resolve(statement.table)
                if target is not None:
                    truncate(tables, target.table, resolve_write_target(tables, target, None), statement.partition)
                    return no_result(self.backend.spark)
            case CreateTable(query=Query() as query):
                return create_as(queries, statement, query, args)
            case OtherStatement(keyword="BEGIN"):
                rows = run_script(queries, sql, args, functools.partial(self._run_in_script, script=sql, args=args))
                if rows is not None:
                    return rows
            case OtherStatement(keyword="EXECUTE"):
                read_text = functools.partial(session_text, backend=self.backend)
                immediate = immediate_statement(
                    sql, args, self.lakes, queries.run_sql, read_text=read_text, analyze=queries.analyze
                )
                if immediate is not None:
                    return self._run_immediate(immediate)
            case OtherStatement(keyword="CREATE" | "CREATE FUNCTION") if self.functions.create(queries, sql):
                return no_result(self.backend.spark)
            case OtherStatement(keyword="CACHE") if cache_by_name(tables, sql):
                return no_result(self.backend.spark)
            case OtherStatement():
                self._check_not_of_lakes(statement, sql)
            case ForgetCached():
                rows = self._run_on_lakes(statement, args)
                if rows is not None:
                    forget_cached(tables, statement)
                    return rows
            case CreateView() | AlterViewAs():
                if define_view(queries, statement):
                    return no_result(self.backend.spark)
            case LakeStatement():
                rows = self._run_on_lakes(statement, args)
                if rows is not None:
                    return rows
        return queries.run_sql(sql.text, args)

    def _check_not_of_lakes(self, statement: OtherStatement, sql: SqlText) -> None:
        """Refuse a statement on lake tables that we do not run, unless Spark itself says what is wrong with it."""
        try:
            check_not_of_lakes(statement, self.lakes)
        except UnsupportedError:
            found = None if statement.error else self.backend.sql.read_query(sql)
            if not isinstance(found, OtherStatement) or not found.leave_to_engine:
                raise

    def _run_in_script(self, text: SqlText, script: SqlText, args: Any) -> None:
        """Run a statement of a script, whose functions then read what it has changed."""
        self._run(text, args)
        self.queries.forget_states()
        self.functions.refresh(self.queries, script)

    def _run_immediate(self, immediate: ImmediateStatement) -> DataFrame:
        rows = self._run(immediate.statement, immediate.args)
        if immediate.variables is None:
            return rows
        run_sql = run_with_frames(self.queries.run_sql, {_INTO: rows})
        return run_sql(f"SET VARIABLE ({immediate.variables}) = (SELECT * FROM {_INTO})")  # noqa: S608  (it is meant to be)

    def _run_on_lakes(self, statement: LakeStatement, args: Any) -> DataFrame | None:
        """The rows of a statement that needs no engine; None if it is about something that is not a lake's."""
        bound = bind_parameters(statement, args) if isinstance(statement, CallProcedure) else statement
        check_moves_no_ref(self.tables, bound)
        if isinstance(bound, CreateTable):
            check_replaces(self.tables, bound)
        rows = run_statement(bound, self.lakes)
        return None if rows is None else result_frame(self.backend.spark, rows)

    def _run_wrapper(self, statement: QueryWrapper, args: Any) -> DataFrame:
        query, run_sql, keeping = statement.query, self.queries.run_sql, self.queries.following(keeps=True)
        if statement.target is not None and self.lakes.place(statement.target):
            query = statement.source or query
        match statement.kind:
            case "CACHE TABLE" if any(self.lakes.place(use.name) for use in query.tables):
                cache_rows(keeping.run_query(query, args), statement.head, run_sql)
                return no_result(self.backend.spark)
            case "CREATE VIEW" if any(self.lakes.place(use.name) for use in query.tables):
                create_view(keeping.run_query(query, args), statement.head, run_sql)
                return no_result(self.backend.spark)
        return self.queries.following().run_query(query, args, statement.head.text)
