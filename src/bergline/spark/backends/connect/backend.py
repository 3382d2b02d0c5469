"""The backend of sessions on a Spark Connect server."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, all_of
from bergline.expressions.sql_predicates import null_safe_equal
from bergline.format.schema.schema import Schema
from bergline.spark.backends.connect.classes import connect_classes
from bergline.spark.backends.connect.conditions import exact_part
from bergline.spark.backends.connect.late_frame import connect_late_frame
from bergline.spark.backends.connect.requests import ConnectRequests
from bergline.spark.backends.connect.sql import ConnectSql
from bergline.spark.runtime.arrow_tasks import ArrowFunction, map_in_arrow
from bergline.spark.runtime.backend import (
    LISTED_BY_DRIVER,
    LISTING_THRESHOLD,
    NO_SESSION,
    Aggregate,
    KnownFiles,
    PatchedClasses,
    Read,
)
from bergline.spark.runtime.sql_backend import RunSql
from bergline.sql.text.tokens import Name
from bergline.table.scans.scan import TableScan


class ConnectBackend(msgspec.Struct, frozen=True):
    """A session on a server: what only its optimizer or its driver could tell is not known."""

    spark: Any

    @property
    def sql(self) -> ConnectSql:
        return ConnectSql(self.spark)

    @property
    def session_id(self) -> str:
        return str(self.spark.session_id)

    @property
    def is_stopped(self) -> bool:
        return bool(self.spark.is_stopped)

    @property
    def stream_sessions(self) -> tuple[str, ...]:
        return ()  # batches of a stream are handled on the server, where no lake is attached

    @property
    def patched_classes(self) -> PatchedClasses:
        theirs = connect_classes()
        return PatchedClasses(
            theirs.session,
            theirs.frame,
            theirs.reader,
            theirs.writer,
            theirs.catalog,
            theirs.stream_reader,
            theirs.stream_writer,
        )

    @property
    def lasting_settings(self) -> Mapping[str, str]:
        return {LISTING_THRESHOLD: LISTED_BY_DRIVER}  # the server looks up files when frames run

    def settings_under(self, prefix: str) -> dict[str, str]:
        settings: Mapping[str, str] = self.spark.conf.getAll
        return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}

    def process_variable(self, kind: str, name: str) -> str | None:
        """Only the server knows: it is asked by a statement that has the variable in it."""
        written = f"${{{kind}:{name}}}"
        try:
            value = str(self.spark.range(1).selectExpr(f"r'{written}'").first()[0])
        except PySparkException:  # a value with a quote in it
            return None
        return None if value == written else value

    def user(self, run_sql: RunSql) -> str:
        return str(run_sql("SELECT current_user()").collect()[0][0])

    def has_temporary_view(self, name: str, run_sql: RunSql) -> bool:
        views = run_sql("SHOW VIEWS IN spark_catalog.default").collect()
        return any(view.isTemporary and view.viewName.casefold() == name.casefold() for view in views)

    @property
    def requests(self) -> ConnectRequests:
        return ConnectRequests(self.spark)

    @property
    def executors_key(self) -> tuple[str, str]:
        return self.session_id, ""

    @property
    def runs_in_driver(self) -> bool:
        return False

    @property
    def has_local_executors(self) -> bool:
        return False

    @property
    def task_slots(self) -> int | None:
        return None

    def ran_once(self, stage_id: int) -> bool | None:
        """Only the server knows."""
        return None

    def use_this_python(self) -> None:
        """The server has chosen already."""

    def described_jobs(self, what: str) -> AbstractContextManager[None]:
        return nullcontext()

    def with_settings(self, frame: DataFrame, settings: Mapping[str, str]) -> AbstractContextManager[DataFrame]:
        return nullcontext(frame)

    def empty_frame(self) -> DataFrame:
        return self.spark.range(0).select()  # type: ignore[no-any-return]

    def load_files(self, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
        return reader.parquet(*paths)

    def count_files(self, rows: DataFrame) -> int | None:
        return None

    @property
    def knows_files(self) -> bool:
        return False

    def known_files(
        self, schema: T.StructType, options: Mapping[str, str], files: KnownFiles, texts: Sequence[str]
    ) -> DataFrame | None:
        return None

    def is_running(self, query: str) -> bool:
        return False

    def refresh_cached(self, location: str) -> None:
        pass  # frames stay what they were made of

    def with_estimate(self, work: DataFrame, rows: int, schema: T.StructType) -> DataFrame:
        return work  # statistics are the server's own

    def s3a_refusal(self) -> str | None:
        return NO_SESSION

    def s3a_settings(self, bucket: str, names: Iterable[str]) -> dict[str, str]:
        return {}  # the server's are its own

    def late_frame(self, scan: TableScan, name: Name, hidden: frozenset[str], read: Read) -> DataFrame:
        return connect_late_frame(scan, self.spark, name, hidden, read)

    def qualified(self, rows: DataFrame, name: Name) -> DataFrame:
        return rows.alias(name[-1])

    def plan_text(self, frame: DataFrame) -> str:
        return str(frame._explain_string(extended=True))  # type: ignore[operator]  # noqa: SLF001

    def named_subqueries(self, frame: DataFrame) -> Iterator[str]:
        raise UnsupportedError(
            "cannot tell what the rows were read from: the plan is longer than spark.sql.maxPlanStringLength",
            hints=[
                "raise the setting",
                "say it by the option `validate-from-snapshot-id`, or `isolation-level` = `none`",
            ],
        )

    def with_names(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        return frame.toDF(*names)

    def select_texts(self, frame: DataFrame, texts: Sequence[str]) -> DataFrame:
        return frame.selectExpr(*texts)

    def map_in_arrow(self, frame: DataFrame, run: ArrowFunction, schema: str) -> DataFrame:
        # numbered columns: Spark takes a dot in a name for a struct
        return map_in_arrow(frame.toDF(*(f"_{i}" for i in range(len(frame.columns)))), run, schema)

    @property
    def parquet_writer(self) -> None:
        return None  # it is asked for in the JVM

    def is_at_hand(self, frame: DataFrame, most_rows: int) -> bool:
        return False  # what a frame is made of stays on the server

    def few_rows(self, frame: DataFrame, most_rows: int, most_bytes: int) -> None:
        return None

    @staticmethod
    def ansi_cast(value: Column, target: T.DataType, column: str | None = None) -> Column:  # noqa: ARG004
        tried: Any = value.try_cast(target)
        tried._expr._eval_mode = "ansi"  # noqa: SLF001  (the protocol has it; no function of PySpark does)
        return tried  # type: ignore[no-any-return]

    def exact_predicate(self, condition: Column | str, schema: Schema, alias: str | None = None) -> Predicate | None:
        """Only for what means the same whatever the settings are."""
        return exact_part(condition, schema, self.spark.client, alias)

    def equality_predicate(self, values: Mapping[str, Column], schema: Schema) -> Predicate | None:
        """Spark evaluates the values, which are then compared as they are."""
        columns = (value.alias(name) for name, value in values.items())
        (row,) = self.spark.range(1).select(*columns).toArrow().to_pylist()
        return all_of(null_safe_equal(name, row[name], is_null=row[name] is None) for name in values)

    def has_random_filter(self, rows: DataFrame) -> bool | None:
        return None  # the plan stays on the server

    def has_random_case(self, rows: DataFrame, columns: Collection[str]) -> bool | None:
        return None

    def with_fewer_partitions(self, rows: DataFrame, bytes_in_each: int) -> DataFrame:
        return rows  # only the server knows how large they are

    def with_semi_join(self, changes: DataFrame) -> DataFrame:
        return changes

    def frame_filter(self, scan: TableScan, build: Callable[[DataFrame], DataFrame]) -> Predicate:
        return ALWAYS_TRUE  # nobody tells what the optimizer makes of a frame

    @property
    def keeps_relations(self) -> bool:
        return False

    def asked_aggregates(self, rows: DataFrame, is_table: Callable[[str], bool]) -> list[Aggregate] | None:
        return None
