"""Views in a session: each is read by running its query in its own scope; new ones are checked and stored."""

import copy
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import UnsupportedError
from bergline.quoting import back_quoted_path
from bergline.spark.runtime.backend import RunSql, SparkBackend
from bergline.spark.statements.queries import create_view
from bergline.spark.statements.tables import Relation, SessionTables
from bergline.spark.views.definitions import (
    check_no_variables,
    check_persistent,
    check_sparks_view,
    new_definition,
)
from bergline.spark.views.scopes import ViewScope, commented_frame, view_columns, view_errors, view_scope
from bergline.sql.analyze import analyze
from bergline.sql.names.resolve import Lakes, ViewTarget
from bergline.sql.queries.query import OtherStatement, Query
from bergline.sql.statements.views import AlterViewAs, CreateView, spark_query
from bergline.sql.text.tokens import Name, SqlText
from bergline.table.scans.scan import TableScan


class SessionViews(SessionTables):
    """A session that reads views of its lakes; in the query of a view, names mean what they mean there."""

    def __init__(self, backend: SparkBackend, lakes: Lakes, run_sql: RunSql) -> None:
        super().__init__(backend, lakes)
        self.run_sql = run_sql
        self._view: ViewScope | None = None

    @abstractmethod
    def run_query(self, query: Query, args: Any, head: str = "") -> DataFrame:
        """Run a query."""

    def define_view(self, statement: CreateView | AlterViewAs) -> bool:
        """CREATE VIEW and ALTER VIEW … AS; false if Spark must run the statement."""
        definition = new_definition(statement, self.lakes)
        if definition is None:
            return self._define_sparks_view(statement)
        if isinstance(statement, CreateView) and statement.if_not_exists and definition.exists:
            return True
        query = self._read(statement.query, f"view `{definition.scope.views[-1]}`")
        query = msgspec.structs.replace(query, within=(statement.sql.text, statement.start))
        functions = [row[0] for row in self.run_sql("SHOW USER FUNCTIONS").collect()]
        check_persistent(query, definition, self.lakes, functions)
        rows = self._query_within(definition.scope, self.lakes.name_of(definition.lake), query)
        check_no_variables(self.backend.plan_text(rows), query, definition)
        definition.store(statement, rows, self._spark.version)
        return True

    def _define_sparks_view(self, statement: CreateView | AlterViewAs) -> bool:
        """A temporary view may read lake tables, one in Spark's catalog may not; false if Spark can do it alone."""
        query, view = analyze(statement.query, self.backend.read_query), statement.view
        is_temporary = len(view) == 1 and self.lakes.engine.has_temporary_view(view[0])
        if isinstance(statement, CreateView) or not is_temporary:
            check_sparks_view(statement, query, self.lakes)
            return False
        if not isinstance(query, Query) or not any(self.lakes.place(use.name) for use in query.tables):
            return False
        head = SqlText(f"CREATE OR REPLACE TEMPORARY VIEW {back_quoted_path(view)} AS ")
        create_view(self.run_query(query, None), head, self.run_sql)
        return True

    def _relation(self, name: Name) -> Relation | None:
        """The table or view of a lake that a name means; in the query of a view, also a table of Spark's."""
        sparks = None if self._view is None else self._view.absolute(name, self.lakes)
        if sparks is not None:
            return self.run_sql(f"TABLE {back_quoted_path(sparks)}")
        found = self.lakes.resolve_relation(name)
        if found is None and self._view is not None:
            raise self._view.not_found(name)
        return found

    def _source(self, target: Relation, more_columns: Iterable[str] = ()) -> TableScan | DataFrame:
        """A read of what a name means: of a view, its query in its own scope."""
        if isinstance(target, ViewTarget):
            return self._view_rows(target)
        source = super()._source(target, more_columns)
        if self._view is not None and self._view.checks and not isinstance(source, DataFrame):
            return commented_frame(self._spark, source.schema)
        return source

    def _view_rows(self, target: ViewTarget) -> DataFrame:
        scope = view_scope(target, self._view)
        query = self._read(SqlText(spark_query(target)), f"view `{target.name}`")
        with view_errors(target, query):
            return view_columns(self._query_within(scope, target.lake, query), target, query)

    def _query_within(self, scope: ViewScope, lake: str, query: Query) -> DataFrame:
        """Run a query as this session would in the scope of a view."""
        inner = copy.copy(self)
        inner.lakes, inner._view = scope.lakes(self.lakes, lake), scope  # noqa: SLF001  (this class)
        return inner.run_query(query, None)

    def _read(self, sql: SqlText, what: str) -> Query:
        query = analyze(sql, self.backend.read_query)
        if isinstance(query, Query):
            return query
        error = query.error if isinstance(query, OtherStatement) else None
        raise UnsupportedError(f"expected a query for {what}, found one that cannot be read: {error or sql.text}")
