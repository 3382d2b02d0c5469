"""What Spark's readers and writers of frames and streams were told, which each kind of Spark keeps in its own way."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

import msgspec
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

DEFAULT_SOURCE = "spark.sql.sources.default"
LIMITED_SOURCES = "bergline_limited_"
"""What the names of our streaming sources begin with that have limits on batches."""
TAKES_ALL = "BERGLINE_STREAM_TAKES_ALL"
"""Where a streaming source finds whether its query takes all rows that are there, in spite of limits."""
BatchSink = Callable[[DataFrame, int], None]
"""Takes the rows of a batch and the batch's number."""
SaveMode = Literal["append", "overwrite", "ignore", "errorifexists"]


class LoadRequest(NamedTuple):
    """What a DataFrameReader was given; the keys of options are in lower case."""

    source: str | None
    """None for what the session has by default, where the reader does not say."""
    options: dict[str, str]
    has_schema: bool


class SaveRequest(msgspec.Struct, frozen=True):
    """What a DataFrameWriter was given."""

    source: str
    mode: SaveMode
    options: dict[str, str]
    partition_by: tuple[str, ...] = ()
    buckets: bool = False
    """Whether it was given bucketBy, sortBy or clusterBy."""


class StreamRequest(msgspec.Struct, frozen=True):
    """What a DataStreamWriter was given; the keys of options are as they were written."""

    source: str
    output_mode: str
    options: dict[str, str]
    query_name: str | None = None
    partition_by: tuple[str, ...] = ()
    clusters: bool = False
    """Whether it was given clusterBy."""


class Requests(Protocol):
    """What the readers and writers of one session were told, also before attach."""

    def load(self, reader: DataFrameReader) -> LoadRequest:
        """What a reader was given."""
        ...

    def save(self, writer: DataFrameWriter) -> SaveRequest:
        """What a writer was given."""
        ...

    def written_frame(self, writer: DataFrameWriter) -> DataFrame:
        """The frame that a writer is to write."""
        ...

    def stream_load(self, reader: DataStreamReader) -> LoadRequest:
        """What a reader of streams was given."""
        ...

    def stream(self, writer: DataStreamWriter) -> StreamRequest:
        """What a writer of streams was given."""
        ...

    def streamed_frame(self, writer: DataStreamWriter) -> DataFrame:
        """The frame that a writer of streams is to write."""
        ...

    def sinking_writer(self, writer: DataStreamWriter, sink: BatchSink) -> DataStreamWriter:
        """A writer like this one that gives its batches to a function."""
        ...

    def tell_sources(self, writer: DataStreamWriter) -> None:
        """Tell our limited sources in a writer's frame whether its trigger takes all rows that are there, in one batch.

        Spark's interface for Python does not.
        """
        ...
