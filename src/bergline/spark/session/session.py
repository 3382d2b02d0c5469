"""What an attached session does with a statement: those on lake tables are run here, the rest goes on to Spark."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import DataFrame

from bergline.arguments import check_text
from bergline.errors import InvalidInputError, NotFoundError, SqlSyntaxError, UnsupportedError
from bergline.lake.lake import Lake
from bergline.spark.pushdown.provenance import branch_reads
from bergline.spark.reads.scan import read
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.rows.statements import (
    check_condition,
    delete_found_rows,
    delete_matching_rows,
    exact_delete,
    place_columns,
    truncate,
    update_found_rows,
)
from bergline.spark.runtime.backend import RunSql, SparkBackend, TablePlace
from bergline.spark.runtime.types import iceberg_schema
from bergline.spark.session.frame_arguments import run_with_frames, with_named_frames
from bergline.spark.session.immediate import ImmediateStatement, constant, immediate_statement, is_about
from bergline.spark.session.merging import explain_merge, run_merge
from bergline.spark.session.queries import cache_rows, create_view, no_result, result_frame, run_query
from bergline.spark.session.scripts import run_script
from bergline.spark.session.streams import stream_rows
from bergline.spark.session.tables import Relation, SparkEngineContext
from bergline.spark.session.views import SessionViews
from bergline.spark.views.scopes import check_no_time_travel
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.insert import run_insert
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.rows import TableWrite
from bergline.spark.writes.target import check_moves_no_ref, check_replaceable, resolve_write_target
from bergline.sql.analyze import Statement, analyze
from bergline.sql.names.resolve import Current, Lakes, Target, ViewTarget
from bergline.sql.names.selector import VersionSelector, with_as_of, with_options
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import (
    Insert,
    MultiInsert,
    OtherStatement,
    Query,
    QueryWrapper,
    RowLevel,
    TableUse,
    TruncateTable,
)
from bergline.sql.queries.wrappers import ExplainedChange
from bergline.sql.rewrite.current_names import with_current_names
from bergline.sql.rewrite.identifier_clauses import with_identifiers
from bergline.sql.rewrite.insert_defaults import source_with_defaults
from bergline.sql.rewrite.metadata_columns import find_metadata_columns, metadata_columns
from bergline.sql.rewrite.partition_functions import check_no_partition_functions
from bergline.sql.rewrite.tables import RewrittenQuery, rewrite_query
from bergline.sql.rewrite.target_rows import set_fields, target_rows
from bergline.sql.statements.call import CallProcedure, bind_parameters
from bergline.sql.statements.create_table import CreateTable, check_exists, place_new_table, staged
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.statements.registry import run_statement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.statements.views import AlterViewAs, CreateView
from bergline.sql.text.composed import ComposedText, parameter_order
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import Edit, Name, SqlText
from bergline.table.commits.isolation import NO_ISOLATION
from bergline.table.scans.scan import TableScan

_QUERIES = {"SELECT", "WITH", "VALUES", "FROM", "TABLE"}
_LONGEST_START = 100
_INTO = "bergline_frame_into"
_IDENTIFIER = "identifier"
"""A clause whose argument may be a name that stands elsewhere."""


class TargetTable(NamedTuple):
    """The table that a statement changes: where it stands in the text, and what that means."""

    use: TableUse
    target: Target


class TargetRows(NamedTuple):
    """Rows that a statement found, and the scan of the table that it changes."""

    rows: DataFrame
    scan: TableScan


class LakeSession(SessionViews):
    """A Spark session with lakes; `run_sql` is the session's own `sql`, before attach."""

    def __init__(
        self, backend: SparkBackend, lakes: dict[str, Lake], default: str, current: Current, run_sql: RunSql
    ) -> None:
        super().__init__(backend, Lakes(lakes, default, current, SparkEngineContext(backend, run_sql)), run_sql)
        self._frames: Mapping[str, DataFrame] = {}

    def sql(self, text: str, args: Any = None, **frames: Any) -> DataFrame:
        """Run a statement."""
        has_known_args = args is None or isinstance(args, list | dict)
        if not has_known_args or self._is_plainly_sparks(check_text(text, "a statement as text")):
            return self._run_sql(text, args, **frames)
        if frames:
            text, self._frames = with_named_frames(text, frames, self.backend)
            self._run_sql = run_with_frames(self._run_sql, self._frames)
        return self._run(SqlText(text), args)

    def _is_plainly_sparks(self, text: str) -> bool:
        """Whether a text is a query that can name no table of a lake: without USE these have names of several parts."""
        words = text[:_LONGEST_START].split(maxsplit=1)
        is_query = bool(words) and words[0].upper() in _QUERIES and self.lakes.current == Current()
        return is_query and "." not in text and _IDENTIFIER not in text.lower()

    def _run(self, sql: SqlText, args: Any) -> DataFrame:
        sql, args = with_identifiers(sql, args, self.lakes, functools.partial(constant, run_sql=self._run_sql))
        statement = self._analyze(sql)
        match statement:
            case Query():
                return self._run_query(statement, args)
            case QueryWrapper():
                return self._run_wrapper(statement, args)
            case Insert():
                return self._insert(statement, args)
            case MultiInsert():
                return self._insert_several(statement, args)
            case RowLevel():
                return self._change_rows(statement, args)
            case ExplainedChange(head, RowLevel() as change):
                return self._change_rows(change, args, explain=head.text)
            case ExplainedChange(head, MergeInto() as change):
                plan = self._merge(change, args, explain=head.text)
                if plan is not None:
                    return plan
            case MergeInto():
                merged = self._merge(statement, args)
                if merged is not None:
                    return merged
            case TruncateTable():
                target = self.lakes.resolve(statement.table)
                if target is not None:
                    truncate(self, target.table, resolve_write_target(self, target, None))
                    return no_result(self._spark)
            case CreateTable(query=Query() as query):
                return self._create_as(statement, query, args)
            case OtherStatement(keyword="BEGIN"):
                rows = self._run_script(sql, args)
                if rows is not None:
                    return rows
            case OtherStatement(keyword="EXECUTE"):
                immediate = immediate_statement(sql, args, self.lakes, self._run_sql, self._analyze)
                if immediate is not None:
                    return self._run_immediate(immediate)
            case OtherStatement():
                check_not_of_lakes(statement, self.lakes)
            case CreateView() | AlterViewAs():
                if self.define_view(statement):
                    return no_result(self._spark)
            case LakeStatement():
                rows = self._run_on_lakes(statement, args)
                if rows is not None:
                    return rows
        return self._run_sql(sql.text, args)

    def _run_script(self, sql: SqlText, args: Any) -> DataFrame | None:
        """Run BEGIN … END; None if it names no table of a lake."""
        script = self.backend.read_script(sql)
        if script is None:
            found = self.backend.read_query(sql)
            if not (isinstance(found, OtherStatement) and found.leave_to_engine):
                check_not_of_lakes(OtherStatement("BEGIN … END", dotted_names(sql)), self.lakes)
            return None

        def changes(text: SqlText) -> bool:
            statement = self._analyze(text)
            return not isinstance(statement, Query) and is_about(statement, text, self.lakes)

        def rows(query: Query) -> dict[TableUse, DataFrame | None]:
            ours = [use for use in query.tables if self.lakes.place(use.name) is not None]
            return {use: self._script_rows(query, use, args) for use in ours}

        def run(text: SqlText) -> DataFrame:
            return self._run(text, args)

        return run_script(script, args, self.backend, changes=changes, run=run, rows=rows, place=self._place)

    def _script_rows(self, query: Query, use: TableUse, args: Any) -> DataFrame | None:
        """The rows of a table in a script; None for one that does not exist, which the script may create."""
        try:
            found = self._lake_tables(msgspec.structs.replace(query, tables=(use,)), args)
        except NotFoundError:
            return None
        source = self._source(found[use])
        return read(source, self._spark) if isinstance(source, TableScan) else source

    def _run_immediate(self, immediate: ImmediateStatement) -> DataFrame:
        rows = self._run(immediate.statement, immediate.args)
        if immediate.variables is None:
            return rows
        run_sql = run_with_frames(self._run_sql, {_INTO: rows})
        return run_sql(f"SET VARIABLE ({immediate.variables}) = (SELECT * FROM {_INTO})")  # noqa: S608  (it is meant to be)

    def _run_on_lakes(self, statement: LakeStatement, args: Any) -> DataFrame | None:
        """The rows of a statement that needs no engine; None if it is about something that is not a lake's."""
        bound = bind_parameters(statement, args) if isinstance(statement, CallProcedure) else statement
        check_moves_no_ref(self, bound)
        if isinstance(bound, CreateTable):
            self._check_replaceable(bound)
        rows = run_statement(bound, self.lakes)
        return None if rows is None else result_frame(self._spark, rows)

    def _run_wrapper(self, statement: QueryWrapper, args: Any) -> DataFrame:
        query = statement.query
        if statement.target is not None and self.lakes.place(statement.target):
            query = statement.source or query
        match statement.kind:
            case "CACHE TABLE" if any(self.lakes.place(use.name) for use in query.tables):
                cache_rows(self._run_query(query, args), statement.head, self._run_sql)
                return no_result(self._spark)
            case "CREATE VIEW" if any(self.lakes.place(use.name) for use in query.tables):
                create_view(self._run_query(query, args), statement.head, self._run_sql)
                return no_result(self._spark)
        return self._run_query(query, args, statement.head.text)

    def _run_query(self, query: Query, args: Any, head: str = "") -> DataFrame:
        """Run a query, or the statement that has this head before it."""
        query = self._analyzed_again(query, with_current_names(query.sql, self.lakes))
        query = self._parsed(query)
        ours = self._lake_tables(query, args)
        if not ours:
            return self._run_sql(head + query.text, args)
        return self._query_rows(query, args, ours, head=head)[0]

    def _parsed(self, query: Query) -> Query:
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
        ours = self._lake_tables(query, args, {target.use.name: target.target})
        rows, scans = self._query_rows(query, args, ours, edits, {target.use: frozenset(columns)}, head=explain)
        return TargetRows(rows, scans[target.use])

    def _query_rows(
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
            run_sql=self._run_sql,
            head=head,
            places=None if query.parsed is None else {names[use]: self._place(use) for use in ours},
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
        places = {name: self._place(uses[name][0], *numbers) for name, numbers in zip(uses, same.values(), strict=True)}
        found = run_query(
            RewrittenQuery(query.sql, (), *query.within),
            args,
            {name: self._source(ours[some[0]]) for name, some in uses.items()},
            labels={name: ".".join(some[0].name) for name, some in uses.items()},
            writes=query.writes,
            backend=self.backend,
            run_sql=self._run_sql,
            head=head,
            parsed=query.parsed,
            places=places,
        )
        return found.rows, {
            use: found.scans[name] for name, some in uses.items() for use in some if name in found.scans
        }

    def _place(self, use: TableUse, *numbers: int) -> TablePlace:
        """Where a table stands in a parsed statement; its columns may be qualified by its full name."""
        lake, name = self.lakes.place(use.name) or (self.lakes.default, use.name)
        return TablePlace(numbers, (self.lakes.name_of(lake), *name))

    def _lake_tables(
        self, query: Query, args: Any, known: Mapping[Name, Target] | None = None
    ) -> dict[TableUse, Relation]:
        """The lake tables of a query; one that stands twice in it is looked up once: both are the same state of it."""
        check_no_partition_functions(query.sql, self.lakes)
        ours: dict[TableUse, Relation] = {}
        names = {use.name for use in query.tables if use.name[0] not in self._frames}
        targets = {name: (known or {}).get(name) or self._relation(name) for name in names}
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
                    selector = with_options(selector, dict(use.options), self.lakes.engine.time_zone)
                ours[use] = self.lakes.target(target.table, selector)
        if not ours:
            return {}
        return ours | {use: self._frames[use.name[0]] for use in query.tables if use.name[0] in self._frames}

    def _analyze(self, sql: SqlText) -> Statement:
        """What a statement means, by the parser of the session."""
        return analyze(sql, self.backend.read_query)

    def _analyzed_again(self, query: Query, sql: SqlText) -> Query:
        """A query whose text was edited: the edited one as it was, where nothing was."""
        if sql is query.sql:
            return query
        edited = self._analyze(sql)
        return edited if isinstance(edited, Query) else query

    def _moment(self, expression: SqlText, args: Any) -> int:
        """The milliseconds that an expression means now; it may have parameters by name, and subqueries."""
        if any(token.is_symbol("?") for token in expression.tokens):
            raise UnsupportedError(
                f"expected a parameter with a name after AS OF, found `?` in `{expression.text}`",
                hints=["write `:name`, and give the arguments as a dict"],
            )
        known = args if isinstance(args, dict) else None
        moment = self.sql(f"SELECT unix_millis(CAST(({expression.text}) AS TIMESTAMP))", known).collect()[0][0]
        if moment is None:
            raise InvalidInputError(f"expected a time after AS OF, found NULL from `{expression.text}`")
        return int(moment)

    def _insert(self, insert: Insert, args: Any) -> DataFrame:
        target = self.lakes.resolve(insert.table)
        if target is None:
            return self._run_query(insert.whole, args)
        rows = self._inserted_rows(insert, target, args)
        run_insert(self, insert, target, rows, engine=SparkRowEngine(self._spark))
        return no_result(self._spark)

    def _insert_several(self, statement: MultiInsert, args: Any) -> DataFrame:
        """Run several inserts from one source, each a commit of its own; all read what was there before the first."""
        targets = [self.lakes.resolve(insert.table) for insert in statement.inserts]
        if not any(targets):
            return self._run_query(statement.whole, args)
        runs = [
            self._sparks_insert(insert, args) if target is None else self._lakes_insert(insert, target, args)
            for insert, target in zip(statement.inserts, targets, strict=True)
        ]
        for run in runs:
            run()
        return no_result(self._spark)

    def _lakes_insert(self, insert: Insert, target: Target, args: Any) -> Callable[[], object]:
        rows = self._inserted_rows(insert, target, args)
        return lambda: run_insert(self, insert, target, rows, engine=SparkRowEngine(self._spark))

    def _sparks_insert(self, insert: Insert, args: Any) -> Callable[[], object]:
        query = self._parsed(insert.whole)
        ours = self._lake_tables(query, args)
        return lambda: self._query_rows(query, args, ours) if ours else self._run_sql(query.text, args)

    def _inserted_rows(self, insert: Insert, target: Target, args: Any) -> DataFrame:
        query = self._analyzed_again(insert.source, source_with_defaults(insert, target.table.schema))
        return self._run_query(query, args)

    def _change_rows(self, statement: RowLevel, args: Any, *, explain: str = "") -> DataFrame:
        """Run a DELETE or UPDATE; with an `EXPLAIN`, the plan of the query that finds its rows."""
        target = self.lakes.resolve(statement.table)
        if target is None:
            return self._run_query(statement.whole, args, explain)
        sql = with_current_names(statement.whole.sql, self.lakes)
        edited = statement if sql is statement.whole.sql else self._analyze(sql)
        statement = edited if isinstance(edited, RowLevel) else statement
        table, write_target = target.table, resolve_write_target(self, target, None)
        fields = set_fields(statement, table.schema)
        is_delete = statement.keyword == "DELETE" and not explain
        if is_delete and (row_filter := exact_delete(self, statement, table)) is not None:
            delete_matching_rows(self, table, write_target, row_filter)
            return no_result(self._spark)
        places = place_columns(table.metadata)
        columns = [f.name for f in table.schema.fields] if fields else []
        edits = target_rows(statement, [*places, *columns], fields)
        found = TargetTable(statement.target, target)
        read = self.read_target(statement.whole, args, found, places, edits, explain=explain)
        if explain:
            return read.rows
        check_condition(statement, read.rows)
        if fields:
            update_found_rows(read.rows, fields, table, read.scan, write_target)
        else:
            delete_found_rows(read.rows, table, read.scan, write_target)
        return no_result(self._spark)

    def _merge(self, merge: MergeInto, args: Any, *, explain: str = "") -> DataFrame | None:
        """Run a MERGE, or with an `EXPLAIN` plan the join of target and source; None if its target is not a lake's."""
        target = self.lakes.resolve(merge.table)
        if target is None:
            check_not_of_lakes(OtherStatement("MERGE", dotted_names(merge.sql), subject=merge.table), self.lakes)
            return None
        sql = with_current_names(merge.sql, self.lakes)
        edited = merge if sql is merge.sql else self._analyze(sql)
        merge = edited if isinstance(edited, MergeInto) else merge

        def given(query: Query) -> Any:
            if not isinstance(args, list | tuple):
                return args
            return [args[i] for i in parameter_order(query.sql, query.parts, merge.sql)] or None

        def read_target(composed: ComposedText, start: int, target: Target) -> TargetRows:
            query = self._composed(merge, composed)
            use = next(use for use in query.tables if use.start == start)
            return self.read_target(query, given(query), TargetTable(use, target), (), (), explain=explain)

        def read_rows(composed: ComposedText) -> DataFrame:
            query = self._composed(merge, composed)
            return self._run_query(query, given(query))

        if explain:
            return explain_merge(self, merge, target, read_target, read_rows)
        run_merge(self, merge, target, read_target, read_rows)
        return no_result(self._spark)

    def _composed(self, merge: MergeInto, composed: ComposedText) -> Query:
        """A query that was composed of parts of a MERGE."""
        found = self.backend.read_query(SqlText(composed.text))
        if isinstance(found, Query):
            return msgspec.structs.replace(found, within=(merge.sql.text, 0), parts=composed.parts)
        if found.leave_to_engine:  # Spark says what is wrong with it
            self._run_sql(merge.sql.text)
        raise found.error or SqlSyntaxError("cannot read the statement", line=1, column=1)

    def _create_as(self, statement: CreateTable, query: Query, args: Any) -> DataFrame:
        """A table with the columns and rows of a query: both are there when it is, or nothing is."""
        placed = place_new_table(statement, self.lakes)
        if placed is None:
            return self._run_query(statement.whole or query, args)
        if check_exists(statement, *placed) and statement.if_not_exists:
            return no_result(self._spark)
        self._check_replaceable(statement)
        rows = self._run_query(query, args)
        reads = branch_reads(rows) if statement.replaces else ()
        with staged(statement, self.lakes, placed, iceberg_schema(rows.schema), reads) as table:
            write_target = resolve_write_target(self, Target(table, VersionSelector()), None)
            # what was read of the old table is validated where it is replaced
            writing = TableWrite(self._spark, table, write_target, WriteOptions(isolation=NO_ISOLATION))
            write = writing.overwrite if statement.replaces else writing.append
            write(assign(rows, table.schema, by_name=False))
        return no_result(self._spark)

    def _check_replaceable(self, statement: CreateTable) -> None:
        placed = place_new_table(statement, self.lakes) if statement.replaces else None
        if placed is not None:
            check_replaceable(self, *placed)
