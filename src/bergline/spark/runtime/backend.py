"""`SparkBackend`: what classic sessions and Spark Connect do differently, behind one protocol.

`backends/choose.py` finds the implementation for a session. Modules whose functions run on executors import this one,
so it imports nothing that plans.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError
from bergline.expressions.predicate import Predicate
from bergline.format.schema.schema import Schema
from bergline.spark.runtime.arrow_tasks import ArrowFunction
from bergline.spark.runtime.requests import Requests
from bergline.spark.runtime.sql_backend import RunSql, SqlBackend

if TYPE_CHECKING:
    from bergline.sql.text.tokens import Name
    from bergline.table.scans.scan import TableScan

LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
LISTED_BY_DRIVER = "1000000"
"""A job that lists local files takes much longer than listing them; on object stores the driver alone would be slow."""
Read = Callable[["TableScan", SparkSession], DataFrame]
"""Looks up the files of a scan and reads them; late frames are given it."""
NO_SESSION = "no session says whether Spark can read files on S3"
"""Why Spark's own reader gets no files on S3 where there is no session, or one that does not tell."""


class PatchedClasses(NamedTuple):
    """The classes of one kind of Spark whose methods attach replaces."""

    session: type[Any]
    frame: type[Any]
    reader: type[Any]
    writer: type[Any]
    catalog: type[Any]
    stream_reader: type[Any]
    stream_writer: type[Any]


ROW_INDEX = "_tmp_metadata_row_index"
"""The column in which Spark's Parquet reader numbers the rows of a file, if it is asked for a column of this name.

`_metadata.row_index` is made of it, in a struct that Spark would make anew for each row.
"""


class KnownFiles(NamedTuple):
    """Data files, and what a plan knows of them, for Spark's own reader."""

    paths: Sequence[str]
    sizes: Sequence[int]
    constants: Mapping[str, tuple[str, Sequence[Any]]]
    """What is the same in all rows of a file: columns with the names of their types, and the values for each file."""
    deleted: Sequence[bytes] | None = None
    """For each file, which of its rows are deleted: a bit for each, the lowest one first; none after the last."""
    number: str = ""
    """The constant that is the place of a file among these, if rows are deleted."""
    later: str = ""
    """The constant that has such bits itself, of files that were found when a frame was run; none for these."""
    followed: "FollowedFiles | None" = None
    """Says which files there are when a frame is run; these are what there is now."""

    @property
    def constants_ddl(self) -> str:
        """The constants as Spark's text of a schema."""
        return ", ".join(f"`{name}` {type_}" for name, (type_, _) in self.constants.items())


class FollowedFiles(Protocol):
    """Files of a table that is looked up again whenever a frame is run."""

    @property
    def key(self) -> Hashable:
        """Equal for those that find the same files whenever they are asked; the text of others differs."""
        ...

    @property
    def location(self) -> str:
        """Where Spark finds the table."""
        ...

    def files(self, query: str | None, condition: "Callable[[Schema], Predicate]") -> KnownFiles | None:
        """The files that the rows of a query may be in; None if they are those that the frame was made with.

        One query sees one state of a table, however often it asks. `condition` is what it needs of columns of files.
        """
        ...

    def growth(self, query: str | None) -> int:
        """How many bytes the table of a query has more than when the frame was made; 0 if it has less."""
        ...


class ParquetJob(NamedTuple):
    """What Spark's own Parquet writer is to write, and how."""

    columns: str
    """The columns of the files with their field ids, in JSON, as Spark has them."""
    directory: str
    options: Mapping[str, str]


class ParquetFile(NamedTuple):
    """A file that Spark's own writer has written."""

    path: str
    """Where it is below the directory of the job."""
    size: int


ParquetWriter = Callable[[DataFrame, ParquetJob, Mapping[str, str]], list[ParquetFile]]
"""Writes rows, with settings that no other frame has.

Gives the files of those attempts of tasks that count, in the order of the tasks; others may have left files there.
"""
AggregateFunction = Literal["count", "min", "max"]


class Aggregate(NamedTuple):
    """An aggregate that a query asks for; `count` of no column counts rows."""

    function: AggregateFunction
    column: str | None
    name: str
    """What its column is called."""


class SparkBackend(Protocol):
    """A session, and what its kind of Spark does in its own way."""

    @property
    def spark(self) -> SparkSession:
        """The session itself."""
        ...

    @property
    def sql(self) -> SqlBackend:
        """How it reads and runs SQL."""
        ...

    @property
    def session_id(self) -> str:
        """What tells sessions apart: several Python objects may stand for one."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        ...

    @property
    def stream_sessions(self) -> tuple[str, ...]:
        """The ids of the sessions in which this one's streams run; none where batches are handled elsewhere."""
        ...

    @property
    def patched_classes(self) -> PatchedClasses:
        """The classes of this kind of Spark."""
        ...

    @property
    def lasting_settings(self) -> Mapping[str, str]:
        """The settings that the session needs for as long as it is attached."""
        ...

    def settings_under(self, prefix: str) -> dict[str, str]:
        """The session's settings whose names begin with a prefix, without it."""
        ...

    def process_variable(self, kind: str, name: str) -> str | None:
        """A variable of the driver's environment (`env`) or of its JVM (`system`); None if it is not set."""
        ...

    def user(self, run_sql: RunSql) -> str:
        """Who runs the session."""
        ...

    def has_temporary_view(self, name: str, run_sql: RunSql) -> bool:
        """Whether the session has a temporary view of this name."""
        ...

    @property
    def requests(self) -> Requests:
        """What the session's readers and writers were told."""
        ...

    @property
    def executors_key(self) -> tuple[str, str]:
        """Equal for sessions whose tasks run in the same Python processes."""
        ...

    @property
    def has_local_executors(self) -> bool:
        """Whether tasks are known to run on this machine, by the Python that this process runs."""
        ...

    @property
    def task_slots(self) -> int | None:
        """How many tasks run at a time; None if only the executors can tell."""
        ...

    def ran_once(self, stage_id: int) -> bool | None:
        """Whether a stage that has succeeded ran once, and each of its tasks; None if nobody can tell.

        It is False too if that does not show soon. If there were other attempts, waits a little for them to end.
        """
        ...

    def use_this_python(self) -> None:
        """Let local executors run the Python that this process runs, unless the user chose another."""
        ...

    def described_jobs(self, what: str) -> AbstractContextManager[None]:
        """Name the jobs of the block on Spark's pages, where this process can."""
        ...

    def with_settings(self, frame: DataFrame, settings: Mapping[str, str]) -> AbstractContextManager[DataFrame]:
        """The frame, to be run in the block with settings that no other frame has; unchanged if that cannot be."""
        ...

    def empty_frame(self) -> DataFrame:
        """No columns and no rows, without a Spark job to find that out."""
        ...

    def load_files(self, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
        """The rows of Parquet files, each of which Spark looks up; paths are without line breaks."""
        ...

    def count_files(self, rows: DataFrame) -> int | None:
        """How many files Spark found for what `load_files` gave; None if it looks when the frame is run."""
        ...

    @property
    def knows_files(self) -> bool:
        """Whether `known_files` may give something."""
        ...

    def known_files(
        self, schema: T.StructType, options: Mapping[str, str], files: KnownFiles, texts: Sequence[str]
    ) -> DataFrame | None:
        """What texts make of the rows of Parquet files that are not deleted; None if it cannot.

        Columns are those of the schema, the constants of files, and `ROW_INDEX`. No file is looked at before it is
        read.
        """
        ...

    def is_running(self, query: str) -> bool:
        """Whether a query that asked for files of a relation has not ended yet."""
        ...

    def refresh_cached(self, location: str) -> None:
        """Fill again what is cached of frames that read files below a place, when it is read next."""
        ...

    def with_estimate(self, work: DataFrame, rows: int, schema: T.StructType) -> DataFrame:
        """Work for tasks; Spark's optimizer is told what rows they will give, and how many, where somebody can."""
        ...

    def s3a_refusal(self) -> str | None:
        """Why Spark's own reader cannot open files on S3; None if it can."""
        ...

    def s3a_settings(self, bucket: str, names: Iterable[str]) -> dict[str, str]:
        """What Hadoop's settings of these names are for a bucket, those that are set: S3A has some for each bucket."""
        ...

    def late_frame(self, scan: "TableScan", name: "Name", hidden: frozenset[str], read: Read) -> DataFrame:
        """A frame whose files are looked up, by `read`, after filters have been put on it.

        Columns may be qualified by the table's name, and hidden ones can be selected.
        """
        ...

    def qualified(self, rows: DataFrame, name: "Name") -> DataFrame:
        """A frame whose columns may be qualified by a name, or where that cannot be, by the last part of it."""
        ...

    def plan_text(self, frame: DataFrame) -> str:
        """The analyzed plan of a frame as text, which Spark may have cut short."""
        ...

    def named_subqueries(self, frame: DataFrame) -> Iterator[str]:
        """The subqueries in that plan, as its text has them; UnsupportedError if only the text can tell."""
        ...

    def with_names(self, frame: DataFrame, names: Sequence[str]) -> DataFrame:
        """A frame with other names for its columns; many columns take no more calls than few."""
        ...

    def select_texts(self, frame: DataFrame, texts: Sequence[str]) -> DataFrame:
        """What SQL texts make of a frame's columns; many texts take no more calls than few.

        Spark reads them under the settings of the session: they must mean the same under all.
        """
        ...

    def map_in_arrow(self, frame: DataFrame, run: ArrowFunction, schema: str) -> DataFrame:
        """`DataFrame.mapInArrow`; many columns take no more calls than few.

        The names of columns in the batches mean nothing.
        """
        ...

    @property
    def parquet_writer(self) -> "ParquetWriter | None":
        """Spark's own writer; None if only tasks of our own can write."""
        ...

    @property
    def runs_in_driver(self) -> bool:
        """Whether tasks run in the driver itself, whose disks are then theirs."""
        ...

    def is_at_hand(self, frame: DataFrame, most_rows: int) -> bool:
        """Whether a frame is known to be a list of few rows, computed already: Spark needs no task to give them."""
        ...

    def few_rows(self, frame: DataFrame, most_rows: int, most_bytes: int) -> "list[pa.RecordBatch] | None":
        """The rows of a frame, if each table that it is computed from is that small, and they are that few."""
        ...

    @staticmethod
    def ansi_cast(value: Column, target: T.DataType, column: str | None = None) -> Column:
        """A cast that fails where a value does not fit, whatever `spark.sql.ansi.enabled` says.

        The error names the column that the value is for, where Spark lets us say it.
        """
        ...

    def exact_predicate(self, condition: Column | str, schema: Schema, alias: str | None = None) -> Predicate | None:
        """What holds for exactly the rows that a condition keeps; None if we cannot tell.

        Its columns may be qualified by the alias.
        """
        ...

    def equality_predicate(self, values: Mapping[str, Column], schema: Schema) -> Predicate | None:
        """What holds for exactly the rows whose columns have these constant values; None if we cannot tell."""
        ...

    def has_random_filter(self, rows: DataFrame) -> bool | None:
        """Whether a frame keeps rows by a condition that is not deterministic; None if only Spark can tell."""
        ...

    def has_random_case(self, rows: DataFrame, columns: Collection[str]) -> bool | None:
        """Whether columns of these names are chosen by a CASE with such a condition; None if only Spark can tell."""
        ...

    def with_fewer_partitions(self, rows: DataFrame, bytes_in_each: int) -> DataFrame:
        """The rows in no more partitions than are worth a task, where nobody said how many there should be."""
        ...

    def with_semi_join(self, changes: DataFrame) -> DataFrame:
        """The changes of a MERGE, for which a large target is not shuffled where the source is small."""
        ...

    def frame_filter(self, scan: "TableScan", build: Callable[[DataFrame], DataFrame]) -> Predicate:
        """What holds for all rows of a scan that a frame uses, which `build` makes of the scan's rows."""
        ...

    @property
    def keeps_relations(self) -> bool:
        """Whether the frame of a table can be used again and again, for as long as the table does not change."""
        ...

    def asked_aggregates(self, rows: DataFrame, is_table: Callable[[str], bool]) -> list[Aggregate] | None:
        """The aggregates of a query that has nothing but them, on one table; None for others, or if nobody tells.

        `is_table` knows the rows of a table by their alias.
        """
        ...


def check_running(backend: SparkBackend) -> None:
    """InvalidInputError for a session that was stopped."""
    if backend.is_stopped:
        raise InvalidInputError("expected a running Spark session, found one that was stopped")
