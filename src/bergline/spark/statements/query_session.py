"""A session that runs queries on the tables and views of its lakes."""

import copy
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.spark.query_text.current_names import with_current_names
from bergline.spark.query_text.metadata_columns import find_metadata_columns, metadata_columns
from bergline.spark.query_text.partition_functions import (
    FUNCTION_PREFIX,
    check_no_partition_functions,
    with_partition_functions,
)
from bergline.spark.runtime.backend import RunSql, SparkBackend, TablePlace
from bergline.spark.statements.queries import run_query
from bergline.spark.statements.stream_reads import stream_rows
from bergline.spark.statements.tables import Relation
from bergline.spark.statements.views import SessionViews
from bergline.spark.views.scopes import check_no_time_travel
from bergline.sql.analyze import Statement, analyze
from bergline.sql.names.resolve import Lakes, Target, ViewTarget
from bergline.sql.names.selector import with_as_of
from bergline.sql.queries.query import Query, TableUse
from bergline.sql.queries.rewritten import RewrittenQuery, rewrite_query
from bergline.sql.text.tokens import Edit, Name, SqlText
from bergline.table.scans.scan import TableScan


class TargetTable(NamedTuple):
    """The table that a statement changes: where it stands in the text, and what that means."""

    use: TableUse
    target: Target


class TargetRows(NamedTuple):
    """Rows that a statement found, and the scan of the table that it changes."""

    rows: DataFrame
    scan: TableScan


class QuerySession(SessionViews):
    """Finds the lake tables of a query, and runs it; `frames` are those that stand in it by names of their own."""

    def __init__(self, backend: SparkBackend, lakes: Lakes, run_sql: RunSql) -> None:
        super().__init__(backend, lakes, run_sql)
        self.frames: Mapping[str, DataFrame] = {}

    def run_query(self, query: Query, args: Any, head: str = "") -> DataFrame:
        """Run a query, or the statement that has this head before it."""
        query = self.analyzed_again(query, self.engine_text(query.sql))
        query = self.parsed(query)
        ours = self.lake_tables(query, args)
        if not ours and FUNCTION_PREFIX not in query.text:
            return self.run_sql(head + query.text, args)
        return self.query_rows(query, args, ours, head=head)[0]

    def engine_text(self, sql: SqlText) -> SqlText:
        """A text in words that the engine knows: what is in use, and functions of the lakes."""
        return with_partition_functions(with_current_names(sql, self.lakes), self.lakes)

    def parsed(self, query: Query) -> Query:
        """A query that writes, as the backend's parser reads it."""
        if query.parsed is not None or not query.writes:
            return query
        read = self.backend.read_query(query.sql)
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

        That is read with some metadata columns beside its own; wherever it stands in the statement it is in one state.
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
            backend=self.backend,
            run_sql=self.run_sql,
            head=head,
            places=None if query.parsed is None else {names[use]: self.table_place(use) for use in ours},
            deferred=self._deferred,
            keeps=self._keeps,
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
            name: self.table_place(uses[name][0], *numbers) for name, numbers in zip(uses, same.values(), strict=True)
        }
        found = run_query(
            RewrittenQuery(query.sql, (), *query.within),
            args,
            {name: self._source(ours[some[0]]) for name, some in uses.items()},
            labels={name: ".".join(some[0].name) for name, some in uses.items()},
            writes=query.writes,
            backend=self.backend,
            run_sql=self.run_sql,
            head=head,
            parsed=query.parsed,
            places=places,
            deferred=self._deferred,
            keeps=self._keeps,
        )
        return found.rows, {
            use: found.scans[name] for name, some in uses.items() for use in some if name in found.scans
        }

    def table_place(self, use: TableUse, *numbers: int) -> TablePlace:
        """Where a table stands in a parsed statement; its columns may be qualified by its full name."""
        return TablePlace(numbers, self.full_name(use.name))

    def lake_tables(
        self, query: Query, args: Any, known: Mapping[Name, Target] | None = None
    ) -> dict[TableUse, Relation]:
        """The lake tables of a query; one that stands twice in it is looked up once: both are the same state of it."""
        check_no_partition_functions(query.sql, self.lakes)
        ours: dict[TableUse, Relation] = {}
        names = {use.name for use in query.tables if use.name[0] not in self.frames}
        known = known or {}
        for changed in known.values():
            self._read_as(changed.table)
        targets = {name: known.get(name) or self._relation(name) for name in names}
        for use in query.tables:
            target = targets.get(use.name)
            if isinstance(target, ViewTarget):
                check_no_time_travel(use, target)
            if isinstance(target, ViewTarget | DataFrame):
                ours[use] = target
            elif target is not None:
                if use.is_stream:
                    ours[use] = stream_rows(self, use.name, target, dict(use.options))
                    continue
                moment = functools.partial(self._moment, args=args)
                selector = target.selector
                if use.as_of is not None:
                    selector = with_as_of(selector, use.as_of, self.lakes.engine.time_zone, moment)
                if use.options:
                    selector = self.with_read_options(selector, dict(use.options))
                ours[use] = self.lakes.target(target.table, selector)
        if not ours:
            return {}
        return ours | {use: self.frames[use.name[0]] for use in query.tables if use.name[0] in self.frames}

    def table_rows(self, query: Query, use: TableUse, args: Any = None) -> DataFrame:
        """All rows of a lake table that stands in a query."""
        return self.rows_of(self.lake_tables(msgspec.structs.replace(query, tables=(use,)), args)[use])

    def analyze(self, sql: SqlText) -> Statement:
        """What a statement means, by the parser of the session."""
        return analyze(sql, self.backend.read_query)

    def analyzed_again(self, query: Query, sql: SqlText) -> Query:
        """A query whose text was edited: the edited one as it was, where nothing was."""
        if sql is query.sql:
            return query
        edited = self.analyze(sql)
        return edited if isinstance(edited, Query) else query

    def _moment(self, expression: SqlText, args: Any) -> int:
        """The milliseconds that an expression means now; it may have parameters by name, and subqueries."""
        if any(token.is_symbol("?") for token in expression.tokens):
            raise UnsupportedError(
                f"expected a parameter with a name after AS OF, found `?` in `{expression.text}`",
                hints=["write `:name`, and give the arguments as a dict"],
            )
        known = args if isinstance(args, dict) else None
        text = SqlText(f"SELECT unix_millis(CAST(({expression.text}) AS TIMESTAMP_LTZ))")
        query = self.analyze(text)
        session = copy.copy(self)
        session._deferred = None  # noqa: SLF001  (this class)
        rows = session.run_query(query, known) if isinstance(query, Query) else self.run_sql(text.text, known)
        moment = rows.collect()[0][0]
        if moment is None:
            raise InvalidInputError(f"expected a time after AS OF, found NULL from `{expression.text}`")
        return int(moment)
