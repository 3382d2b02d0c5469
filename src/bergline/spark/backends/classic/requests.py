"""What readers and writers of classic sessions were told: PySpark's are handles of the JVM's own."""

from collections.abc import Iterator
from typing import Any, cast

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from bergline.spark.backends.classic.catalyst import class_of, hidden_field, scala_items
from bergline.spark.runtime.requests import (
    LIMITED_SOURCES,
    TAKES_ALL,
    BatchSink,
    LoadRequest,
    SaveMode,
    SaveRequest,
    StreamRequest,
)

_SCHEMA = "userSpecifiedSchema"
_QUERY_NAME = "queryName"
_TAKING_ALL = ("AvailableNowTrigger", "OneTimeTrigger")


class ClassicRequests:
    """Asks the JVM, and reads fields of its objects where no method gives an answer."""

    def load(self, reader: DataFrameReader) -> LoadRequest:
        java: Any = reader._jreader  # noqa: SLF001  (Spark keeps what it was given nowhere else)
        options, has_schema = java.extraOptions(), bool(java.userSpecifiedSchema().isDefined())
        found = {str(key).lower(): str(options.apply(key)) for key in _items(options.keysIterator())}
        return LoadRequest(java.source(), found, has_schema)

    def save(self, writer: DataFrameWriter) -> SaveRequest:
        java: Any = writer._jwrite  # noqa: SLF001
        options = java.extraOptions().originalMap()
        partition_by = java.partitioningColumns()
        layout = (java.numBuckets(), java.bucketColumnNames(), java.sortColumnNames(), java.clusteringColumns())
        return SaveRequest(
            str(java.source()).lower(),
            cast("SaveMode", str(java.curmode().toString()).lower()),
            {str(pair._1()): str(pair._2()) for pair in scala_items(options)},  # noqa: SLF001
            tuple(str(c) for c in scala_items(partition_by.get())) if partition_by.isDefined() else (),
            any(setting.isDefined() for setting in layout),
        )

    def written_frame(self, writer: DataFrameWriter) -> DataFrame:
        return writer._df  # noqa: SLF001

    def stream_load(self, reader: DataStreamReader) -> LoadRequest:
        java: Any = reader._jreader  # noqa: SLF001
        options = {key.lower(): value for key, value in _option_items(java)}
        return LoadRequest(hidden_field(java, "source"), options, bool(hidden_field(java, _SCHEMA).isDefined()))

    def stream(self, writer: DataStreamWriter) -> StreamRequest:
        java: Any = writer._jwrite  # noqa: SLF001
        options = dict(_option_items(java))
        partition_by = hidden_field(java, "partitioningColumns")
        return StreamRequest(
            str(hidden_field(java, "source")).lower(),
            str(hidden_field(java, "outputMode").toString()).lower(),
            {key: value for key, value in options.items() if key != _QUERY_NAME},
            options.get(_QUERY_NAME),
            tuple(str(c) for c in scala_items(partition_by.get())) if partition_by.isDefined() else (),
            bool(hidden_field(java, "clusteringColumns").isDefined()),
        )

    def streamed_frame(self, writer: DataStreamWriter) -> DataFrame:
        return writer._df  # noqa: SLF001

    def sinking_writer(self, writer: DataStreamWriter, sink: BatchSink) -> DataStreamWriter:
        java: Any = writer._jwrite  # noqa: SLF001
        sinking = writer._df.writeStream.outputMode(self.stream(writer).output_mode)  # noqa: SLF001
        sinking = sinking.options(**dict(_option_items(java)))
        sinking._jwrite = sinking._jwrite.trigger(hidden_field(java, "trigger"))  # noqa: SLF001
        return sinking.foreachBatch(sink)

    def tell_sources(self, writer: DataStreamWriter) -> None:
        """By the environment of the processes in which sources plan, which Spark starts later."""
        java: Any = writer._jwrite  # noqa: SLF001
        takes_all = str(hidden_field(java, "trigger").toString()) in _TAKING_ALL
        plan = writer._df._jdf.queryExecution().analyzed()  # noqa: SLF001
        for leaf in scala_items(plan.collectLeaves()):
            if class_of(leaf) == "StreamingRelationV2" and str(leaf.sourceName()).startswith(LIMITED_SOURCES):
                environment = leaf.source().get().source().dataSourceCls().envVars()
                environment.remove(TAKES_ALL)
                if takes_all:
                    environment.put(TAKES_ALL, "true")


def _option_items(java: Any) -> Iterator[tuple[str, str]]:
    """The options of a reader or writer of streams."""
    for pair in scala_items(hidden_field(java, "extraOptions").originalMap()):
        yield str(pair._1()), str(pair._2())  # noqa: SLF001


def _items(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()
