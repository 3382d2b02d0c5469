"""The backend of classic sessions, whose driver is in this process."""

import functools
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.column import Column as ClassicColumn
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from bergline.expressions.predicate import Predicate
from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted
from bergline.spark.backends.classic.aggregates import asked_aggregates
from bergline.spark.backends.classic.catalyst import (
    is_random_case,
    kind_of,
    scala_seq,
)
from bergline.spark.backends.classic.estimates import with_estimate
from bergline.spark.backends.classic.files import PARQUET_FORMAT, count_files, load_files, s3a_refusal, s3a_settings
from bergline.spark.backends.classic.followed_index import is_running
from bergline.spark.backends.classic.java_classes import session_facts
from bergline.spark.backends.classic.known_files import known_files
from bergline.spark.backends.classic.late_frame import classic_late_frame
from bergline.spark.backends.classic.parquet_writer import write_parquet
from bergline.spark.backends.classic.parsed import (
    analyzed,
    frame_of,
    qualified,
)
from bergline.spark.backends.classic.projections import map_in_arrow, select_texts, with_names
from bergline.spark.backends.classic.pushed_filters import (
    optimized_condition,
    placeholder,
    pushed_filters,
)
from bergline.spark.backends.classic.requests import ClassicRequests
from bergline.spark.backends.classic.semi_joins import calls_functions_of_users, with_semi_join
from bergline.spark.backends.classic.sql import ClassicSql
from bergline.spark.backends.classic.stages import ran_once
from bergline.spark.runtime.arrow_tasks import ArrowFunction
from bergline.spark.runtime.backend import (
    Aggregate,
    KnownFiles,
    ParquetFile,
    ParquetJob,
    ParquetWriter,
    PatchedClasses,
    Read,
)
from bergline.spark.runtime.sql_backend import RunSql
from bergline.spark.runtime.types import read_schema
from bergline.sql.text.tokens import Name
from bergline.table.scans.scan import TableScan

_CLASSES = PatchedClasses(
    SparkSession, ClassicDataFrame, DataFrameReader, DataFrameWriter, Catalog, DataStreamReader, DataStreamWriter
)
_LOCAL = re.compile(r"local(\[.*\])?")
_DESCRIPTION = "spark.job.description"
_ROWS = "LocalRelation"
_FEW_ROWS = 256
"""So many rows are brought to the driver, however they are computed; not those of files, which may be of any size."""
_COMPUTED = frozenset({_ROWS, "Range", "OneRowRelation"})
_JOINED = _COMPUTED | {"Project", "Filter", "SubqueryAlias", "View", "Union", "Relation"}
"""The nodes of plans of which Spark knows how much comes of them at most, and none of which asks for partitions."""
_NODE = re.compile(r"^[\s:|+-]*(\w+)", re.MULTILINE)
_TASKS_PER_CORE = 2
_MOST_JOINED = 10_000


class ClassicBackend(msgspec.Struct, frozen=True):
    """A session of this process: what is not public is asked of its JVM."""

    spark: SparkSession

    @property
    def sql(self) -> ClassicSql:
        return ClassicSql(self.spark)

    @property
    def session_id(self) -> str:
        return session_facts(self.spark).session_id

    @property
    def is_stopped(self) -> bool:
        return self.spark.sparkContext._jsc is None  # noqa: SLF001  (what `stop` leaves behind)

    @property
    def stream_sessions(self) -> tuple[str, ...]:
        queries = self._java.streams().active()
        return tuple(str(q.streamingQuery().sparkSessionForStream().sessionUUID()) for q in queries)

    @property
    def patched_classes(self) -> PatchedClasses:
        return _CLASSES

    @property
    def lasting_settings(self) -> Mapping[str, str]:
        return {}

    def settings_under(self, prefix: str) -> dict[str, str]:
        if prefix not in self.spark.conf._jconf.getAll().toString():  # noqa: SLF001
            return {}  # bringing all settings here takes as long as a small write
        settings: Mapping[str, str] = self.spark.conf.getAll
        return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}

    def process_variable(self, kind: str, name: str) -> str | None:
        system: Any = self.spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]  # noqa: SLF001
        value = system.getenv(name) if kind == "env" else system.getProperty(name)
        return None if value is None else str(value)

    def user(self, run_sql: RunSql) -> str:
        return str(self.spark.sparkContext.sparkUser())

    def has_temporary_view(self, name: str, run_sql: RunSql) -> bool:
        # nothing public tells views from tables
        return bool(self._java.sessionState().catalog().getTempView(name).isDefined())

    @property
    def requests(self) -> ClassicRequests:
        return ClassicRequests()

    @property
    def executors_key(self) -> tuple[str, str]:
        context = self.spark.sparkContext
        return context.applicationId, context.pythonExec

    @property
    def runs_in_driver(self) -> bool:
        return bool(_LOCAL.fullmatch(str(self.spark.sparkContext.master)))

    @property
    def has_local_executors(self) -> bool:
        return self.runs_in_driver and self.spark.sparkContext.pythonExec == sys.executable

    @property
    def task_slots(self) -> int | None:
        return self.spark.sparkContext.defaultParallelism

    def ran_once(self, stage_id: int) -> bool:
        return ran_once(self.spark.sparkContext, stage_id)

    def use_this_python(self) -> None:
        context = self.spark.sparkContext
        if str(context.master).startswith("local") and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable

    @contextmanager
    def described_jobs(self, what: str) -> Iterator[None]:
        context: Any = self.spark.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.setJobDescription(what)
        try:
            yield
        finally:
            context.setLocalProperty(_DESCRIPTION, before)

    @contextmanager
    def with_settings(self, frame: DataFrame, settings: Mapping[str, str]) -> Iterator[DataFrame]:
        """The frame runs in a clone of its session, where nobody else runs anything.

        Its jobs have the session's tag, so that `spark.interruptAll()` finds them.
        """
        clone = self._java.cloneSession()  # nothing public clones a session, nor runs a plan in it
        conf = clone.conf()
        for name, value in settings.items():
            conf.set(name, value)
        context: Any = self.spark.sparkContext
        tag = str(self._java.sessionJobTag())
        context.addJobTag(tag)
        try:
            yield frame_of(analyzed(frame), self.spark, clone)
        finally:
            context.removeJobTag(tag)

    def empty_frame(self) -> DataFrame:
        return ClassicDataFrame(self._java.emptyDataFrame(), self.spark)

    def load_files(self, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
        return load_files(reader, paths, self.spark)

    def count_files(self, rows: DataFrame) -> int | None:
        return count_files(rows)

    @property
    def knows_files(self) -> bool:
        return True

    def known_files(
        self, schema: T.StructType, options: Mapping[str, str], files: KnownFiles, texts: Sequence[str]
    ) -> DataFrame | None:
        return known_files(schema, options, files, texts, self.spark, file_format=PARQUET_FORMAT)

    def is_running(self, query: str) -> bool:
        return is_running(query, self.spark)

    def refresh_cached(self, location: str) -> None:
        if not self._java.sharedState().cacheManager().isEmpty():  # to open a file system takes time
            self._java.catalog().refreshByPath(location)

    def with_estimate(self, work: DataFrame, rows: int, schema: T.StructType) -> DataFrame:
        return with_estimate(work, rows, schema, self.spark)

    def s3a_refusal(self) -> str | None:
        return s3a_refusal(self.spark)

    def s3a_settings(self, bucket: str, names: Iterable[str]) -> dict[str, str]:
        return s3a_settings(self.spark, bucket, names)

    def late_frame(self, scan: TableScan, name: Name, hidden: frozenset[str], read: Read) -> DataFrame:
        return classic_late_frame(scan, self.spark, name, hidden, read)

    def qualified(self, rows: DataFrame, name: Name) -> DataFrame:
        return qualified(rows, name)

    def plan_text(self, frame: DataFrame) -> str:
        return str(analyzed(frame).toString())

    def named_subqueries(self, frame: DataFrame) -> Iterator[str]:
        plan = analyzed(frame)
        pending = [plan, *scala_seq(plan.subqueriesAll())]
        while pending:
            node = pending.pop()
            if kind_of(node) == "SubqueryAlias":
                yield f"SubqueryAlias `{node.alias()}`"
            pending += scala_seq(node.children())

    def with_names(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        return with_names(frame, names, self.spark)

    def select_texts(self, frame: DataFrame, texts: Sequence[str]) -> DataFrame:
        return select_texts(frame, texts, self.spark)

    def map_in_arrow(self, frame: DataFrame, run: ArrowFunction, schema: str) -> DataFrame:
        return map_in_arrow(frame, run, schema, self.spark)

    @property
    def parquet_writer(self) -> ParquetWriter:
        return self._write_parquet

    def _write_parquet(self, frame: DataFrame, job: ParquetJob, settings: Mapping[str, str]) -> list[ParquetFile]:
        with self.with_settings(frame, settings) as running:
            return write_parquet(running, job, self.spark)

    def is_at_hand(self, frame: DataFrame, most_rows: int) -> bool:
        plan = analyzed(frame)  # nothing public tells
        most = plan.maxRows()
        if not most.isDefined():
            return False
        leaves = [kind_of(leaf) for leaf in scala_seq(plan.collectLeaves())]
        if int(most.get()) <= min(_FEW_ROWS, most_rows) and _COMPUTED.issuperset(leaves):
            return True
        if leaves != [_ROWS]:
            return False
        plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
        return kind_of(plan) == _ROWS and int(plan.data().size()) <= most_rows

    def few_rows(self, frame: DataFrame, most_rows: int, most_bytes: int) -> list[pa.RecordBatch] | None:
        leaves = scala_seq(analyzed(frame).collectLeaves())
        if any(int(str(leaf.stats().sizeInBytes())) > most_bytes for leaf in leaves):
            return None
        # one task, so that the limit needs no shuffle; `toArrow` would cast what Spark gives
        batches: list[pa.RecordBatch] = frame.coalesce(1).limit(most_rows + 1)._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001
        return batches if sum(batch.num_rows for batch in batches) <= most_rows else None

    @staticmethod
    def ansi_cast(value: Column, target: T.DataType, column: str | None = None) -> Column:
        tried: Any = value.try_cast(target)
        jvm: Any = SparkContext._jvm  # noqa: SLF001
        sql, node = jvm.org.apache.spark.sql, tried._jc.node()  # noqa: SLF001
        mode = getattr(getattr(sql.internal, "Cast$Ansi$"), "MODULE$")
        cast = sql.Column(node.copy(node.child(), node.dataType(), jvm.scala.Some(mode), node.origin()))
        if column is not None and isinstance(target, (T.IntegralType, T.DecimalType)):
            expressions = getattr(getattr(sql.classic, "ExpressionUtils$"), "MODULE$")
            named = sql.catalyst.expressions.CheckOverflowInTableInsert(expressions.expression(cast), column)
            cast = expressions.column(named)
        return ClassicColumn(cast)

    def exact_predicate(self, condition: Column | str, schema: Schema, alias: str | None = None) -> Predicate | None:
        """Spark's names, casts and time zone count."""
        return optimized_condition(self.spark, schema, condition, alias)

    def equality_predicate(self, values: Mapping[str, Column], schema: Schema) -> Predicate | None:
        equal = [F.col(back_quoted(name)).eqNullSafe(value) for name, value in values.items()]
        return self.exact_predicate(functools.reduce(Column.__and__, equal), schema)

    def has_random_filter(self, rows: DataFrame) -> bool | None:
        plan = analyzed(rows)
        pending = [] if plan.deterministic() else [plan]
        while pending:
            node = pending.pop()
            if kind_of(node) == "Filter" and not node.condition().deterministic():
                return True
            pending += scala_seq(node.children())
        return False

    def has_random_case(self, rows: DataFrame, columns: Collection[str]) -> bool | None:
        plan = analyzed(rows)
        pending = [] if plan.deterministic() else [plan]
        while pending:
            node = pending.pop()
            listed = scala_seq(node.projectList()) if kind_of(node) == "Project" else ()
            chosen = (column.child() for column in listed if kind_of(column) == "Alias" and column.name() in columns)
            if any(is_random_case(value) for value in chosen):
                return True
            pending += scala_seq(node.children())
        return False

    def with_fewer_partitions(self, rows: DataFrame, bytes_in_each: int) -> DataFrame:
        context = self.spark.sparkContext
        if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
            return rows  # how many cores there will be is not known yet
        plan = analyzed(rows)
        if not _JOINED.issuperset(_NODE.findall(str(plan.treeString()))) or calls_functions_of_users(plan, self.spark):
            return rows
        enough = -(-int(str(plan.stats().sizeInBytes())) // bytes_in_each)  # far too many where nothing is known
        most = max(_TASKS_PER_CORE * context.defaultParallelism, enough)
        return rows.coalesce(most) if most <= _MOST_JOINED else rows

    def with_semi_join(self, changes: DataFrame) -> DataFrame:
        return with_semi_join(changes, self.spark)

    def frame_filter(self, scan: TableScan, build: Callable[[DataFrame], DataFrame]) -> Predicate:
        number, rows = placeholder(self.spark, read_schema(scan.schema))
        return pushed_filters(build(rows), {number: scan.table_schema})[number]

    @property
    def keeps_relations(self) -> bool:
        return True

    def asked_aggregates(self, rows: DataFrame, is_table: Callable[[str], bool]) -> list[Aggregate] | None:
        return asked_aggregates(rows, is_table)

    @property
    def _java(self) -> Any:
        return self.spark._jsparkSession  # noqa: SLF001
