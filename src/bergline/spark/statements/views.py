"""Views in a session: each is read by running its query in its own scope; new ones are checked and stored."""

import copy
from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import UnsupportedError
from bergline.quoting import back_quoted_path
from bergline.spark.runtime.backend import DeferredRows, LabeledScan, RunSql, SparkBackend
from bergline.spark.statements.queries import create_view
from bergline.spark.statements.session_text import session_text
from bergline.spark.statements.tables import Relation, SessionTables
from bergline.spark.views.definitions import (
    check_no_variables,
    check_persistent,
    check_sparks_view,
    new_definition,
)
from bergline.spark.views.scopes import ViewScope, commented_frame, view_columns, view_errors, view_scope
from bergline.sql.analyze import analyze
from bergline.sql.names.resolve import Lakes, Target, ViewTarget
from bergline.sql.queries.query import OtherStatement, Query
from bergline.sql.statements.views import AlterViewAs, CreateView, spark_query
from bergline.sql.text.tokens import Name, SqlText
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table


class SessionViews(SessionTables):
    """A session that reads views of its lakes; in the query of a view, names mean what they mean there."""

    def __init__(self, backend: SparkBackend, lakes: Lakes, run_sql: RunSql) -> None:
        super().__init__(backend, lakes)
        self.run_sql = run_sql
        self._view: ViewScope | None = None
        self._deferred: dict[int, LabeledScan] | None = None
        """The tables of a view whose files are not looked up yet; None where rows are wanted."""
        self._states: dict[Hashable, Table] = {}

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
        query = self._read_query(statement.query, f"view `{definition.scope.views[-1]}`")
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
        create_view(self.following(keeps=True).run_query(query, None), head, self.run_sql)
        return True

    def _relation(self, name: Name) -> Relation | None:
        """The table or view of a lake that a name means; in the query of a view, also a table of Spark's."""
        sparks = None if self._view is None else self._view.absolute(name, self.lakes)
        if sparks is not None:
            return self.run_sql(f"TABLE {back_quoted_path(sparks)}")
        found = self.lakes.resolve_relation(name)
        if found is None and self._view is not None:
            raise self._view.not_found(name)
        return self._in_one_state(found) if isinstance(found, Target) else found

    def _in_one_state(self, target: Target) -> Target:
        """The table as the statement has read it already, by another name or in a view."""
        table = self._states.setdefault(_identity(target.table), target.table)
        return target if table is target.table else self.lakes.target(table, target.selector)

    def _read_as(self, table: Table) -> None:
        """Read a table in this state from here on."""
        self._states[_identity(table)] = table

    def forget_states(self) -> None:
        """Begin another statement: tables are read as they are now."""
        self._states.clear()

    def _source(self, target: Relation, more_columns: Iterable[str] = ()) -> TableScan | DataFrame | DeferredRows:
        """A read of what a name means: of a view, its query in its own scope."""
        if isinstance(target, ViewTarget):
            return self._view_rows(target)
        source = super()._source(target, more_columns)
        if self._view is not None and self._view.checks and isinstance(source, TableScan):
            return commented_frame(self._spark, source.schema)
        return source

    def _view_rows(self, target: ViewTarget) -> DataFrame | DeferredRows:
        scope = view_scope(target, self._view)
        query = self._read_query(session_text(spark_query(target), self.backend), f"view `{target.name}`")
        deferred: dict[int, LabeledScan] = {}
        with view_errors(target, query):
            found = self._query_within(scope, target.lake, query, deferred)
            rows = view_columns(found, target, query)
        return DeferredRows(rows, deferred) if deferred else rows

    def _query_within(
        self, scope: ViewScope, lake: str, query: Query, deferred: dict[int, LabeledScan] | None = None
    ) -> DataFrame:
        """Run a query as this session would in the scope of a view."""
        inner = copy.copy(self)
        inner.lakes, inner._view, inner._deferred = scope.lakes(self.lakes, lake), scope, deferred  # noqa: SLF001  (this class)
        return inner.run_query(query, None)

    def _read_query(self, sql: SqlText, what: str) -> Query:
        query = analyze(sql, self.backend.read_query)
        if isinstance(query, Query):
            return query
        error = query.error if isinstance(query, OtherStatement) else None
        raise UnsupportedError(f"expected a query for {what}, found one that cannot be read: {error or sql.text}")


def _identity(table: Table) -> Hashable:
    """What a table is in the session: the same name in another lake has other files."""
    return id(table.io), table.name
