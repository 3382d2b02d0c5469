"""What an attached session does with a statement, a table name or a write: ours here, the rest on to Spark."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.arguments import check_text
from bergline.lake import Lake
from bergline.spark.arrow_rows import arrow_frame
from bergline.spark.assign import assign
from bergline.spark.connect import over_connect
from bergline.spark.immediate import constant, immediate_text
from bergline.spark.kept_plans import cache_rows, keeping_plans
from bergline.spark.late_frame import late_frame
from bergline.spark.patched_classes import check_running
from bergline.spark.run_query import run_query
from bergline.spark.surroundings import SparkSurroundings
from bergline.spark.types import iceberg_schema
from bergline.spark.write_goal import check_moves_no_ref, check_replaceable, wap_branch, write_goal
from bergline.spark.write_insert import run_insert
from bergline.spark.write_options import WriteOptions
from bergline.spark.write_rows import TableWrite
from bergline.sql.analyze import Statement, analyze
from bergline.sql.current_names import with_current_names
from bergline.sql.identifier_clauses import with_identifiers
from bergline.sql.insert_defaults import source_with_defaults
from bergline.sql.metadata_columns import find_metadata_columns, metadata_columns
from bergline.sql.parameters import bind_parameters
from bergline.sql.partition_functions import check_no_partition_functions
from bergline.sql.resolve import Current, Lakes, Target, name_parts, new_table_name
from bergline.sql.rewrite import escaped, rewrite_query
from bergline.sql.run import run_statement
from bergline.sql.run_tables import check_exists, place_new_table, staged
from bergline.sql.selector import Selector, with_as_of, with_options
from bergline.sql.statements import Around, Call, Insert, Name, OtherStatement, Query
from bergline.sql.table_statements import CreateTable
from bergline.sql.tokens import tokenize
from bergline.table.scan import TableScan
from bergline.table.table import Table

RunSql = Callable[..., DataFrame]

_INSTEAD = {
    "DELETE": "for now: `table.delete(filter)` in Python, or INSERT OVERWRITE with the rows that stay",
    "UPDATE": "for now: `table.overwrite(rows, filter)` in Python, or INSERT … REPLACE WHERE with the new rows",
    "MERGE": "for now: `table.overwrite(rows, filter)` in Python, or INSERT OVERWRITE with a query that joins both",
    "TRUNCATE": "for now: INSERT OVERWRITE with a query that has no rows",
}


class LakeSession:
    """A Spark session with lakes; `run_sql` is the session's own `sql`, before attach."""

    def __init__(
        self, spark: SparkSession, lakes: dict[str, Lake], default: str, current: Current, run_sql: RunSql
    ) -> None:
        self._spark = spark
        self.lakes = Lakes(lakes, default, current, SparkSurroundings(spark, run_sql))
        self._run_sql = run_sql

    def sql(self, text: str, args: Any = None, **frames: Any) -> DataFrame:
        """Run a statement."""
        check_text(text, "a statement as text")
        text, args = with_identifiers(text, args, self.lakes, functools.partial(constant, run_sql=self._run_sql))
        statement = analyze(text)
        match statement:
            case Query():
                return self._run_query(statement, args, frames)
            case Around():
                return self._around(statement, args, frames)
            case Insert():
                return self._insert(statement, args, frames)
            case CreateTable(source=str()):
                return self._create_as(statement, args, frames)
            case OtherStatement(keyword="EXECUTE"):
                immediate = immediate_text(text, args, self.lakes, self._run_sql)
                if immediate is not None:
                    return self.sql(*immediate)
            case OtherStatement():
                self._check_other(statement)
            case _:
                bound = bind_parameters(statement, args) if isinstance(statement, Call) else statement
                check_moves_no_ref(self._spark, bound)
                self._check_replaceable(bound)
                rows = run_statement(bound, self.lakes, time_zone=self._time_zone)
                if rows is not None:
                    return self._frame(rows)
        return self._run_sql(text, args, **frames)

    def table(self, name: str, options: Mapping[str, Any] | None = None) -> DataFrame | None:
        """A table by name, at the version that reader options say; None if it is not ours."""
        target = self._resolve_text(name)
        if target is None:
            return None
        selector = with_options(target.selector, options or {}, self._time_zone)
        source = self._source(Target(target.table, selector))
        if not isinstance(source, TableScan):
            return source
        return late_frame(source, self._spark, target.table.name, metadata_columns(target))

    @property
    def spark(self) -> SparkSession:
        """The session itself."""
        return self._spark

    def lake_name(self, text: str) -> Name | None:
        """The parts of a table name that belongs to a lake; None if it is not ours."""
        parts = name_parts(text)
        return parts if self.lakes.place(parts) else None

    def resolve_write(self, name: Name) -> Target:
        """The table that a DataFrame is written to, of a lake; NotFoundError if it does not exist."""
        check_running(self._spark)
        target = self.lakes.resolve(name)
        if target is None:
            raise NotFoundError(f"no table `{'.'.join(name)}`", kind="table", name=".".join(name))
        return target

    def place_new(self, name: Name) -> tuple[Lake, TableName]:
        """The lake that a new table goes to, and its name there."""
        check_running(self._spark)
        placed = self.lakes.place(name)
        if placed is None:
            raise NotFoundError(f"no namespace `{'.'.join(name[:-1])}`", kind="namespace", name=".".join(name[:-1]))
        lake, rest = placed
        return lake, new_table_name(lake, rest)

    def _around(self, statement: Around, args: Any, frames: dict[str, Any]) -> DataFrame:
        query = statement.query
        if statement.target is not None and self.lakes.place(statement.target):
            rows = analyze(statement.source or "")
            query = rows if isinstance(rows, Query) else query
        match statement.kind:
            case "CACHE TABLE" if any(self.lakes.place(use.name) for use in query.tables):
                cache_rows(self._run_query(query, args, frames), statement.head, self._run_sql)
                return self._nothing()
            case "CREATE VIEW" if any(self.lakes.place(use.name) for use in query.tables):
                with keeping_plans(self._spark):
                    return self._run_query(query, args, frames, statement.head)
        return self._run_query(query, args, frames, statement.head)

    def _run_query(self, query: Query, args: Any, frames: dict[str, Any], head: str = "") -> DataFrame:
        """Run a query, or the statement that has this head before it."""
        known = with_current_names(query.text, self.lakes)
        if known != query.text and isinstance(renamed := analyze(known), Query):
            query = renamed
        check_no_partition_functions(query.text, self.lakes)
        ours = {}
        # a table that stands twice in a statement is looked up once: both are the same state of it
        targets = {name: self.lakes.resolve(name) for name in {use.name for use in query.tables}}
        for use in query.tables:
            target = targets[use.name]
            if target is not None:
                moment = functools.partial(self._moment, args=args)
                selector = with_as_of(target.selector, use.as_of, self._time_zone, moment)
                ours[use] = Target(target.table, selector)
        if not ours:
            return self._run_sql(head + query.text, args, **frames)
        if frames:
            raise UnsupportedError("cannot mix lake tables and `{name}` arguments in one statement yet")
        names = {use: f"bergline_{i}" for i, use in enumerate(ours)}
        asked = find_metadata_columns(query, {use: metadata_columns(target) for use, target in ours.items()})
        tables = {names[use]: self._source(target, asked.columns.get(use, ())) for use, target in ours.items()}
        labels = {names[use]: ".".join(use.name) for use in ours}
        text = rewrite_query(query, names, asked.edits)
        return run_query(
            text,
            args,
            tables,
            labels=labels,
            writes=query.writes,
            spark=self._spark,
            run_sql=self._run_sql,
            head=escaped(head),
        )

    def _moment(self, expression: str, args: Any) -> int:
        """The milliseconds that an expression means now; it may have parameters by name, and subqueries."""
        if any(token.is_symbol("?") for token in tokenize(expression)):
            raise UnsupportedError(
                f"expected a parameter with a name after AS OF, found `?` in `{expression}`",
                hints=["write `:name`, and give the arguments as a dict"],
            )
        known = args if isinstance(args, dict) else None
        moment = self.sql(f"SELECT unix_millis(CAST(({expression}) AS TIMESTAMP))", known).collect()[0][0]
        if moment is None:
            raise InvalidInputError(f"expected a time after AS OF, found NULL from `{expression}`")
        return int(moment)

    def _insert(self, insert: Insert, args: Any, frames: dict[str, Any]) -> DataFrame:
        target = self.lakes.resolve(insert.table)
        if target is None:
            return self._run_query(insert.whole, args, frames)
        source = self.sql(source_with_defaults(insert, target.table.schema), args, **frames)
        run_insert(self._spark, insert, target, source)
        return self._nothing()

    def _create_as(self, statement: CreateTable, args: Any, frames: dict[str, Any]) -> DataFrame:
        """A table with the columns and rows of a query: both are there when it is, or nothing is."""
        placed = place_new_table(statement, self.lakes)
        if placed is None:
            return self._run_query(statement.whole or Query(statement.source or "", ()), args, frames)
        if check_exists(statement, *placed) and statement.if_not_exists:
            return self._nothing()
        self._check_replaceable(statement)
        rows = self.sql(statement.source or "", args, **frames)
        with staged(statement, self.lakes, placed, iceberg_schema(rows.schema)) as table:
            goal = write_goal(self._spark, Target(table, Selector()), None)
            writing = TableWrite(self._spark, table, goal, WriteOptions())
            write = writing.overwrite if statement.replaces else writing.append
            write(assign(rows, table.schema, by_name=False))
        return self._nothing()

    def _check_replaceable(self, statement: Statement) -> None:
        if isinstance(statement, CreateTable) and statement.replaces:
            placed = place_new_table(statement, self.lakes)
            if placed is not None:
                check_replaceable(self._spark, *placed)

    def _source(self, target: Target, more_columns: Iterable[str] = ()) -> TableScan | DataFrame:
        """A read of the state that a name means; metadata tables are read at once."""
        table, selector = target.table, target.selector
        if selector.metadata_table is not None and selector.after is not None:
            raise InvalidInputError(f"expected a table for an incremental read, found `{selector.metadata_table}`")
        if selector.after is not None:
            return table.scan_appends(selector.after, selector.snapshot_id).with_columns(more_columns)
        ref = selector.ref if selector.branch is None else selector.branch
        if not selector.names_a_version and not (selector.metadata_table or "").startswith("all_"):
            ref = self._wap_ref(table)
        if selector.metadata_table is not None:
            name, snapshot_id, moment = selector.metadata_table, selector.snapshot_id, selector.as_of_ms
            return self._frame(table.inspect(name, ref=ref, snapshot_id=snapshot_id, as_of_ms=moment))
        scan = table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms)
        return scan.with_columns(more_columns)

    def _wap_ref(self, table: Table) -> str | None:
        """Reads take the session's ref if the table has it, else `main`."""
        ref = wap_branch(self._spark, table)
        return ref if ref is not None and ref in table.refs else None

    def _resolve_text(self, name: str) -> Target | None:
        return self.lakes.resolve(name_parts(name))

    def _check_other(self, statement: OtherStatement) -> None:
        """Refuse statements on lake tables that we do not run, instead of letting Spark say "table not found"."""
        name = next((n for n in statement.tables if self._names_table(n)), None)
        if statement.subject is not None and self.lakes.owns(statement.subject):
            name = statement.subject
        if name is None:
            return
        if statement.error is not None:
            raise statement.error
        self.lakes.resolve(name)
        raise UnsupportedError(
            f"cannot run {statement.keyword} with `{'.'.join(name)}` yet",
            hints=[_INSTEAD.get(statement.keyword, "docs/reference/statements.md lists what runs on lake tables")],
        )

    def _names_table(self, name: Name) -> bool:
        try:
            return self.lakes.resolve(name) is not None
        except NotFoundError:
            return False

    def _frame(self, rows: pa.Table) -> DataFrame:
        return arrow_frame(self._spark, rows) if rows.num_columns else self._nothing()

    def _nothing(self) -> DataFrame:
        """No columns and no rows, without a Spark job to find that out."""
        if over_connect(self._spark):
            return self._spark.range(0).select()
        return ClassicDataFrame(self._spark._jsparkSession.emptyDataFrame(), self._spark)  # noqa: SLF001

    @property
    def _time_zone(self) -> str:
        return str(self._spark.conf.get("spark.sql.session.timeZone"))
