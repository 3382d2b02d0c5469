"""What readers and writers over Spark Connect were told: they collect it in messages for the server."""

from typing import Any, cast

import msgspec
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from bergline.spark.backends.connect.classes import connect_classes
from bergline.spark.runtime.requests import (
    DEFAULT_SOURCE,
    LIMITED_SOURCES,
    TAKES_ALL,
    BatchSink,
    LoadRequest,
    SaveMode,
    SaveRequest,
    StreamRequest,
)

_SAME_MODES = dict.fromkeys(("error", "default"), "errorifexists")


class ConnectRequests(msgspec.Struct, frozen=True):
    """What those of one session were told."""

    spark: Any

    def load(self, reader: DataFrameReader) -> LoadRequest:
        theirs: Any = reader
        options = {key.lower(): value for key, value in theirs._options.items() if value is not None}  # noqa: SLF001
        return LoadRequest(theirs._format, options, bool(theirs._schema))  # noqa: SLF001

    def save(self, writer: DataFrameWriter) -> SaveRequest:
        held: Any = writer._write  # type: ignore[attr-defined]  # noqa: SLF001
        mode = (held.mode or "errorifexists").lower()
        return SaveRequest(
            (held.source or str(self.spark.conf.get(DEFAULT_SOURCE))).lower(),
            cast("SaveMode", _SAME_MODES.get(mode, mode)),
            {str(key): str(value) for key, value in held.options.items() if value is not None},
            tuple(held.partitioning_cols),
            bool(held.num_buckets > 0 or held.sort_cols or held.clustering_cols),
        )

    def written_frame(self, writer: DataFrameWriter) -> DataFrame:
        return connect_classes().frame(writer._df, self.spark)  # type: ignore[no-any-return]  # noqa: SLF001

    def stream_load(self, reader: DataStreamReader) -> LoadRequest:
        theirs: Any = reader
        options = {key.lower(): value for key, value in theirs._options.items() if value is not None}  # noqa: SLF001
        return LoadRequest(theirs._format, options, bool(theirs._schema))  # noqa: SLF001

    def stream(self, writer: DataStreamWriter) -> StreamRequest:
        held: Any = writer._write_proto  # type: ignore[attr-defined]  # noqa: SLF001
        return StreamRequest(
            (held.format or "parquet").lower(),
            (held.output_mode or "append").lower(),
            dict(held.options),
            held.query_name or None,
            tuple(held.partitioning_column_names),
            bool(held.clustering_column_names),
        )

    def streamed_frame(self, writer: DataStreamWriter) -> DataFrame:
        return connect_classes().frame(writer._write_stream._child, self.spark)  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001

    def sinking_writer(self, writer: DataStreamWriter, sink: BatchSink) -> DataStreamWriter:
        theirs: Any = writer
        sinking = type(theirs)(theirs._write_stream._child, self.spark)  # noqa: SLF001
        held = sinking._write_proto  # noqa: SLF001
        held.CopyFrom(theirs._write_proto)  # noqa: SLF001
        for name in ("format", "path", "partitioning_column_names"):
            held.ClearField(name)
        return sinking.foreachBatch(sink)  # type: ignore[no-any-return]

    def tell_sources(self, writer: DataStreamWriter) -> None:
        """By an option of the sources, which the server creates when the query starts."""
        held: Any = writer._write_proto  # type: ignore[attr-defined]  # noqa: SLF001
        takes_all = bool(held.available_now or held.once)
        pending = [writer._write_stream._child]  # type: ignore[attr-defined]  # noqa: SLF001
        while pending:
            node = pending.pop()
            pending += [child for child in vars(node).values() if isinstance(child, connect_classes().plan)]
            if str(getattr(node, "_format", None)).startswith(LIMITED_SOURCES):
                node._options = {**(node._options or {}), TAKES_ALL: str(takes_all).lower()}  # noqa: SLF001
