"""What an attached session does with a statement, a table name or a write: ours here, the rest on to Spark."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.errors import InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from bergline.format.refs import MAIN
from bergline.lake import Lake
from bergline.spark.arrow_rows import arrow_frame
from bergline.spark.assign import assign_by_name, assign_by_position
from bergline.spark.read import read
from bergline.spark.surroundings import SparkSurroundings
from bergline.spark.types import iceberg_schema
from bergline.spark.write import write_files
from bergline.sql.analyze import analyze
from bergline.sql.cursor import Cursor
from bergline.sql.resolve import Current, Lakes, Target, with_as_of, with_options
from bergline.sql.rewrite import rewrite_query
from bergline.sql.run import run_statement
from bergline.sql.run_tables import check_exists, place_new_table, staged
from bergline.sql.statements import Insert, Name, OtherStatement, Query
from bergline.sql.table_statements import CreateTable
from bergline.table.table import Table

WAP_BRANCH = "spark.wap.branch"
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"

RunSql = Callable[..., DataFrame]


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
        statement = analyze(text)
        match statement:
            case Query():
                return self._run_query(statement, args, frames)
            case Insert():
                return self._insert(statement, args, frames)
            case CreateTable(source=str()):
                return self._create_as(statement, args, frames)
            case OtherStatement():
                self._check_other(statement)
            case _:
                rows = run_statement(statement, self.lakes, time_zone=self._time_zone)
                if rows is not None:
                    return self._frame(rows)
        return self._run_sql(text, args, **frames)

    def table(self, name: str, options: Mapping[str, Any] | None = None) -> DataFrame | None:
        """A table by name, at the version that reader options say; None if it is not ours."""
        target = self._resolve_text(name)
        if target is None:
            return None
        selector = with_options(target.selector, options or {}, self._time_zone)
        return self._read(Target(target.table, selector))

    def resolve_write(self, name: str) -> Target | None:
        """The table that a DataFrame write names; None if it is not ours."""
        return self._resolve_text(name)

    def check_not_ours(self, name: str, method: str) -> None:
        """Refuse a way of writing that would make a table of Spark's beside the lake's namespace."""
        cursor = Cursor(name)
        parts = cursor.expect_dotted_name("a table name")
        if self.lakes.place(parts):
            raise UnsupportedError(
                f"cannot run {method} on `{name}` yet", hints=[f'use df.writeTo("{name}").append(), or INSERT']
            )

    def append(self, frame: DataFrame, target: Target, branch: str | None) -> None:
        """Add a DataFrame's rows by column name."""
        goal = self._write_branch(target, branch)
        files = write_files(assign_by_name(frame, target.table.schema), target.table)
        target.table.append_files(files, branch=goal, summary=self._summary(), discard_on_failure=True)

    def overwrite_partitions(self, frame: DataFrame, target: Target, branch: str | None) -> None:
        """Replace the partitions that a DataFrame has rows in."""
        goal = self._write_branch(target, branch)
        files = write_files(assign_by_name(frame, target.table.schema), target.table)
        target.table.replace_partitions(files, branch=goal, summary=self._summary(), discard_on_failure=True)

    def _run_query(self, query: Query, args: Any, frames: dict[str, Any]) -> DataFrame:
        ours = {}
        # a table that stands twice in a statement is looked up once: both are the same state of it
        targets = {name: self.lakes.resolve(name) for name in {use.name for use in query.tables}}
        for use in query.tables:
            target = targets[use.name]
            if target is not None:
                selector = with_as_of(target.selector, use.as_of, self._time_zone)
                ours[use] = Target(target.table, selector)
        if not ours:
            return self._run_sql(query.text, args, **frames)
        if frames:
            raise UnsupportedError("cannot mix lake tables and `{name}` arguments in one statement yet")
        names = {use: f"bergline_{i}" for i, use in enumerate(ours)}
        text = rewrite_query(query, names)
        return self._run_sql(text, args, **{names[use]: self._read(target) for use, target in ours.items()})

    def _insert(self, insert: Insert, args: Any, frames: dict[str, Any]) -> DataFrame:
        target = self.lakes.resolve(insert.table)
        if target is None:
            return self._run_query(insert.whole, args, frames)
        branch = self._write_branch(target, None)
        source = self.sql(insert.source, args, **frames)
        rows = assign_by_position(source, target.table.schema, insert.columns)
        files = write_files(rows, target.table)
        summary = self._summary()
        if not insert.overwrite:
            target.table.append_files(files, branch=branch, summary=summary, discard_on_failure=True)
        elif str(self._spark.conf.get(_OVERWRITE_MODE)).upper() == "DYNAMIC":
            target.table.replace_partitions(files, branch=branch, summary=summary, discard_on_failure=True)
        else:
            target.table.overwrite_files(files, branch=branch, summary=summary, discard_on_failure=True)
        return self._nothing()

    def _create_as(self, statement: CreateTable, args: Any, frames: dict[str, Any]) -> DataFrame:
        """A table with the columns and rows of a query: both are there when it is, or nothing is."""
        placed = place_new_table(statement, self.lakes)
        if placed is None:
            return self._run_query(statement.whole or Query(statement.source or "", ()), args, frames)
        if check_exists(statement, *placed) and statement.if_not_exists:
            return self._nothing()
        rows = self.sql(statement.source or "", args, **frames)
        with staged(statement, self.lakes, placed, iceberg_schema(rows.schema)) as table:
            files = write_files(assign_by_position(rows, table.schema, None), table)
            table.append_files(files, summary=self._summary(), discard_on_failure=True)
        return self._nothing()

    def _read(self, target: Target) -> DataFrame:
        table, selector = target.table, target.selector
        if selector.metadata_table is not None:
            return self._frame(
                table.inspect(
                    selector.metadata_table,
                    ref=selector.ref,
                    snapshot_id=selector.snapshot_id,
                    as_of_ms=selector.as_of_ms,
                )
            )
        ref = selector.ref
        if selector.branch is not None:
            ref = selector.branch
        elif not selector.names_a_version:
            ref = self._wap_ref(table)
        scan = table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms)
        return read(scan, self._spark)

    def _wap_branch(self, table: Table) -> str | None:
        """The branch that `spark.wap.branch` names, unless the table opted out."""
        if table.properties.get("write.wap.enabled", "true").lower() == "false":
            return None
        return self._spark.conf.get(WAP_BRANCH, None) or None

    def _wap_ref(self, table: Table) -> str | None:
        """Reads take the session's ref if the table has it, else `main`."""
        ref = self._wap_branch(table)
        return ref if ref is not None and ref in table.refs else None

    def _write_branch(self, target: Target, option: str | None) -> str:
        """The branch that a write goes to; tags, snapshots, moments and metadata tables refuse writes."""
        table, selector = target.table, target.selector
        if selector.ref is not None and selector.ref in table.refs:
            table.check_branch(selector.ref)
        if selector.metadata_table or selector.ref or selector.snapshot_id or selector.as_of_ms:
            raise RefusedError(f"cannot write to `{table.name}` with time travel or to its metadata tables")
        if option is not None and selector.branch and option != selector.branch:
            raise InvalidInputError(f"expected one branch, found `{selector.branch}` and the option `{option}`")
        if selector.branch and selector.branch != MAIN and selector.branch not in table.refs:
            raise NotFoundError(
                f"no branch `{selector.branch}` of `{table.name}`",
                kind="ref",
                name=selector.branch,
                known=table.refs,
            )
        branch = selector.branch or self._wap_branch(table) or MAIN if option is None else option
        table.check_branch(branch)
        return branch

    def _resolve_text(self, name: str) -> Target | None:
        cursor = Cursor(name)
        parts = cursor.expect_dotted_name("a table name")
        cursor.expect_end()
        return self.lakes.resolve(parts)

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
            hints=["docs/reference/statements.md lists what runs on lake tables"],
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
        return ClassicDataFrame(self._spark._jsparkSession.emptyDataFrame(), self._spark)  # noqa: SLF001

    @property
    def _time_zone(self) -> str:
        return str(self._spark.conf.get("spark.sql.session.timeZone"))

    def _summary(self) -> dict[str, str]:
        return {
            "engine-name": "spark",
            "engine-version": self._spark.version,
            "spark.app.id": self._spark.sparkContext.applicationId,
        }
