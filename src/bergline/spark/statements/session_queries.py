"""Queries of a session on the tables and views of its lakes."""

import functools
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.quoting import back_quoted_path
from bergline.spark.query_text.lake_functions import FUNCTION_PREFIX, check_no_partition_functions, with_lake_functions
from bergline.spark.query_text.metadata_columns import find_metadata_columns, metadata_columns
from bergline.spark.reads.scan import late_frame, read
from bergline.spark.runtime.sql_backend import DeferredRows, LabeledScan, RunSql
from bergline.spark.statements.queries import read_deferred, run_query
from bergline.spark.statements.session_text import session_name, session_text
from bergline.spark.statements.stream_reads import stream_rows
from bergline.spark.statements.tables import SessionTables
from bergline.spark.views.scopes import (
    ViewScope,
    check_no_time_travel,
    commented_frame,
    no_versions,
    view_columns,
    view_errors,
    view_scope,
)
from bergline.sql.analyze import Statement, analyze
from bergline.sql.names.resolve import Target, ViewTarget
from bergline.sql.names.selector import with_as_of
from bergline.sql.queries.query import OtherStatement, Query, TableUse
from bergline.sql.queries.rewritten import RewrittenQuery, rewrite_query
from bergline.sql.statements.views import spark_query
from bergline.sql.text.tokens import Edit, Name, SqlText
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table, place_of

Relation = Target | ViewTarget | DataFrame
"""What a name in a query means: a table of a lake, a view, or rows that are taken as they are."""


class TargetTable(NamedTuple):
    """The table that a statement changes: where it stands in the text, and what that means."""

    use: TableUse
    target: Target


class TargetRows(NamedTuple):
    """Rows that a statement found, and the scan of the table that it changes."""

    rows: DataFrame
    scan: TableScan


class SessionQueries(msgspec.Struct, frozen=True):
    """Finds the lake tables and views of a query, and runs it; a statement reads each table in one state.

    A view is read by running its query in the view's scope: by a copy of this with other tables.
    """

    tables: SessionTables
    run_sql: RunSql
    """The session's own `sql`, as it was before attach."""
    frames: Mapping[str, DataFrame] = {}
    """The frames that were given as arguments, by the names that they have in the text."""
    follows: bool = False
    """Whether frames have the rows that their tables will have when they are run."""
    keeps: bool = False
    """Whether the session keeps the rows, as those of a temporary view: they are computed each time."""
    view: ViewScope | None = None
    """The view whose query this runs: names mean what they mean there."""
    deferred: dict[int, LabeledScan] | None = None
    """The tables of a view whose files are not looked up yet; None where rows are wanted."""
    states: dict[Hashable, Table] = {}
    """The tables that the statement has read, in the states in which it reads them."""

    def following(self, *, keeps: bool = False) -> "SessionQueries":
        """The same for rows that outlive their statement: in frames, or in a view that the session keeps."""
        return msgspec.structs.replace(self, follows=True, keeps=keeps)

    def forget_states(self) -> None:
        """Begin another statement: tables are read as they are now."""
        self.states.clear()

    def table(self, name: str, options: Mapping[str, Any] | None = None) -> DataFrame | None:
        """A table or view by name, at the version that reader options say; None if it is not ours."""
        tables, backend = self.tables, self.tables.backend
        parts = session_name(name, backend)
        target = tables.lakes.resolve_relation(parts)
        if target is None:
            return None
        if isinstance(target, ViewTarget):
            if options:
                raise no_versions(target)
            full = (target.lake, *target.view.name.namespace, target.view.name.name)
            return backend.qualified(self._rows_of(target), full)
        selector = tables.with_read_options(target.selector, options or {})
        source = tables.source(tables.lakes.target(target.table, selector), follows=True)
        if not isinstance(source, TableScan):
            return source
        lake, own = (tables.lakes.place(parts) or (tables.lakes.default,))[0], target.table.name
        full = (tables.lakes.name_of(lake), *own.namespace, own.name)
        return late_frame(source, tables.spark, full, metadata_columns(target))

    def run_query(self, query: Query, args: Any, head: str = "") -> DataFrame:
        """Run a query, or the statement that has this head before it."""
        query = self.analyzed_again(query, with_lake_functions(query.sql, self.tables.lakes))
        query = self.parsed(query)
        ours = self.lake_tables(query, args)
        if not ours and FUNCTION_PREFIX not in query.text:
            return self.run_sql(head + query.text, args)
        return self.query_rows(query, args, ours, head=head)[0]

    def parsed(self, query: Query) -> Query:
        """A query that writes, as the backend's parser reads it."""
        if query.parsed is not None or not query.writes:
            return query
        read = self.tables.backend.sql.read_query(query.sql)
        return read if isinstance(read, Query) else query

    def read_target(
        self,
        query: Query,
        args: Any,
        target: TargetTable,
        columns: Iterable[str],
        edits: Iterable[Edit],
        *,
        explain: str = "",
    ) -> TargetRows:
        """The rows of the query that edits make of a statement, with the scan of the table that the statement changes.

        The table is read with these metadata columns beside its own, in one state wherever it stands in the statement.
        With an `EXPLAIN` the rows are those of the plan.
        """
        ours = self.lake_tables(query, args, {target.use.name: target.target})
        rows, scans = self.query_rows(query, args, ours, edits, {target.use: frozenset(columns)}, head=explain)
        return TargetRows(rows, scans[target.use])

    def query_rows(
        self,
        query: Query,
        args: Any,
        ours: Mapping[TableUse, Relation],
        edits: Iterable[Edit] = (),
        columns: Mapping[TableUse, frozenset[str]] | None = None,
        *,
        head: str = "",
    ) -> tuple[DataFrame, dict[TableUse, TableScan]]:
        """Run a query, after edits to its text, and say which scans of its tables it was planned with."""
        names = {use: f"bergline_{i}" for i, use in enumerate(ours)}
        tables = {use: target for use, target in ours.items() if isinstance(target, Target)}
        asked = find_metadata_columns(query, {use: metadata_columns(target) for use, target in tables.items()})
        edits = tuple(edits)
        if query.parsed is not None and not (asked.columns or edits or columns):
            return self._parsed_rows(query, args, ours, head)
        more = {use: asked.columns.get(use, frozenset()) | (columns or {}).get(use, frozenset()) for use in ours}
        found = run_query(
            rewrite_query(query, names, (*asked.edits, *edits)),
            args,
            {names[use]: self._source(target, more[use]) for use, target in ours.items()},
            labels={names[use]: ".".join(use.name) for use in ours},
            writes=query.writes and not edits,
            backend=self.tables.backend,
            run_sql=self.run_sql,
            head=head,
            places=None if query.parsed is None else {names[use]: self.tables.table_place(use) for use in ours},
            deferred=self.deferred,
            keeps=self.keeps,
        )
        return found.rows, {use: found.scans[name] for use, name in names.items() if name in found.scans}

    def _parsed_rows(
        self, query: Query, args: Any, ours: Mapping[TableUse, Relation], head: str
    ) -> tuple[DataFrame, dict[TableUse, TableScan]]:
        """Run a query that the backend parsed: a table that stands in it several times is one relation."""
        same: dict[Any, list[int]] = {}
        for number, use in enumerate(query.tables):
            if use in ours:
                same.setdefault((use.name, use.as_of, use.options), []).append(number)
        uses = {f"bergline_{i}": [query.tables[n] for n in numbers] for i, numbers in enumerate(same.values())}
        places = {
            name: self.tables.table_place(uses[name][0], *numbers)
            for name, numbers in zip(uses, same.values(), strict=True)
        }
        found = run_query(
            RewrittenQuery(query.sql, (), *query.within),
            args,
            {name: self._source(ours[some[0]]) for name, some in uses.items()},
            labels={name: ".".join(some[0].name) for name, some in uses.items()},
            writes=query.writes,
            backend=self.tables.backend,
            run_sql=self.run_sql,
            head=head,
            parsed=query.parsed,
            places=places,
            deferred=self.deferred,
            keeps=self.keeps,
        )
        return found.rows, {
            use: found.scans[name] for name, some in uses.items() for use in some if name in found.scans
        }

    def lake_tables(
        self, query: Query, args: Any, known: Mapping[Name, Target] | None = None
    ) -> dict[TableUse, Relation]:
        """The lake tables of a query; one that stands twice in it is looked up once: both are the same state of it."""
        check_no_partition_functions(query.sql, self.tables.lakes)
        ours: dict[TableUse, Relation] = {}
        names = {use.name for use in query.tables if use.name[0] not in self.frames}
        known = known or {}
        for changed in known.values():
            self.states[place_of(changed.table)] = changed.table
        targets = {name: known.get(name) or self._relation(name) for name in names}
        for use in query.tables:
            target = targets.get(use.name)
            if isinstance(target, ViewTarget):
                check_no_time_travel(use, target)
            if isinstance(target, ViewTarget | DataFrame):
                ours[use] = target
            elif target is not None:
                if use.is_stream:
                    ours[use] = stream_rows(self.tables, use.name, target, dict(use.options))
                    continue
                moment = functools.partial(self._as_of_ms, args=args)
                selector = target.selector
                if use.as_of is not None:
                    selector = with_as_of(selector, use.as_of, self.tables.lakes.engine.time_zone, moment)
                if use.options:
                    selector = self.tables.with_read_options(selector, dict(use.options))
                ours[use] = self.tables.lakes.target(target.table, selector)
        if not ours:
            return {}
        return ours | {use: self.frames[use.name[0]] for use in query.tables if use.name[0] in self.frames}

    def table_rows(self, query: Query, use: TableUse, args: Any = None) -> DataFrame:
        """All rows of a lake table that stands in a query."""
        return self._rows_of(self.lake_tables(msgspec.structs.replace(query, tables=(use,)), args)[use])

    def analyze(self, sql: SqlText) -> Statement:
        """What a statement means, by the parser of the session."""
        return analyze(sql, self.tables.backend.sql.read_query)

    def analyzed_again(self, query: Query, sql: SqlText) -> Query:
        """The query that an edited text is; the same one where nothing was edited."""
        if sql is query.sql:
            return query
        edited = self.analyze(sql)
        return edited if isinstance(edited, Query) else query

    def _as_of_ms(self, expression: SqlText, args: Any) -> int:
        """The time that an expression gives, in milliseconds; it may have parameters by name, and subqueries."""
        if any(token.is_symbol("?") for token in expression.tokens):
            raise UnsupportedError(
                f"expected a parameter with a name after AS OF, found `?` in `{expression.text}`",
                hints=["write `:name`, and give the arguments as a dict"],
            )
        known = args if isinstance(args, dict) else None
        text = SqlText(f"SELECT unix_millis(CAST(({expression.text}) AS TIMESTAMP_LTZ))")
        query = self.analyze(text)
        own = msgspec.structs.replace(self, deferred=None)
        rows = own.run_query(query, known) if isinstance(query, Query) else self.run_sql(text.text, known)
        moment = rows.collect()[0][0]
        if moment is None:
            raise InvalidInputError(f"expected a time after AS OF, found NULL from `{expression.text}`")
        return int(moment)

    def read_view_query(self, sql: SqlText, what: str) -> Query:
        """The query of a view; UnsupportedError, which says what it is for, if it cannot be read."""
        query = self.analyze(sql)
        if isinstance(query, Query):
            return query
        error = query.error if isinstance(query, OtherStatement) else None
        raise UnsupportedError(f"expected a query for {what}, found one that cannot be read: {error or sql.text}")

    def rows_within(
        self, scope: ViewScope, lake: str, query: Query, deferred: dict[int, LabeledScan] | None = None
    ) -> DataFrame:
        """Run a query as this session would in the scope of a view."""
        tables = msgspec.structs.replace(self.tables, lakes=scope.lakes(self.tables.lakes, lake))
        return msgspec.structs.replace(self, tables=tables, view=scope, deferred=deferred).run_query(query, None)

    def _relation(self, name: Name) -> Relation | None:
        """The table or view of a lake that a name means; in the query of a view, also a table of Spark's."""
        lakes = self.tables.lakes
        sparks = None if self.view is None else self.view.absolute(name, lakes)
        if sparks is not None:
            return self.run_sql(f"TABLE {back_quoted_path(sparks)}")
        found = lakes.resolve_relation(name)
        if found is None and self.view is not None:
            raise self.view.not_found(name)
        if not isinstance(found, Target):
            return found
        # the statement may have read the table already, by another name or in a view
        table = self.states.setdefault(place_of(found.table), found.table)
        return found if table is found.table else lakes.target(table, found.selector)

    def _source(self, relation: Relation, more_columns: Iterable[str] = ()) -> TableScan | DataFrame | DeferredRows:
        """A read of what a name means: of a view, its query in its own scope."""
        if isinstance(relation, DataFrame):
            return relation
        if isinstance(relation, ViewTarget):
            return self._view_rows(relation)
        source = self.tables.source(relation, more_columns, follows=self.follows)
        if self.view is not None and self.view.checks and isinstance(source, TableScan):
            return commented_frame(self.tables.spark, source.schema)
        return source

    def _rows_of(self, relation: Relation) -> DataFrame:
        source = self._source(relation)
        if isinstance(source, DeferredRows):
            return read_deferred(source, self.tables.backend)
        return read(source, self.tables.spark) if isinstance(source, TableScan) else source

    def _view_rows(self, target: ViewTarget) -> DataFrame | DeferredRows:
        scope = view_scope(target, self.view)
        query = self.read_view_query(session_text(spark_query(target), self.tables.backend), f"view `{target.name}`")
        deferred: dict[int, LabeledScan] = {}
        with view_errors(target, query):
            found = self.rows_within(scope, target.lake, query, deferred)
            rows = view_columns(found, target, query)
        return DeferredRows(rows, deferred) if deferred else rows
