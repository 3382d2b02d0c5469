"""Batches of a streaming query written to a table, each in one commit, exactly once.

Spark calls the sink with the rows of a batch as a DataFrame (`foreachBatch`): they are written like any other, on the
executors. On a Spark Connect server that happens in a process of the server, to which the sink goes pickled.
"""

import json
import logging
import re
from collections.abc import Callable
from typing import Literal

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bergline.catalog.identifiers import TableName
from bergline.errors import ConflictError, StorageError
from bergline.lake.lake import Lake
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.rows import TableWrite
from bergline.spark.writes.scope import WriteScope
from bergline.spark.writes.target import WriteTarget
from bergline.table.references.stream_batches import StreamBatch
from bergline.table.table import Table

_LOG = logging.getLogger("bergline.spark")
_GLOB = re.compile(r"[{}\[\]*?\\]")

OutputMode = Literal["append", "complete"]
FindScope = Callable[[SparkSession], WriteScope | None]


class StreamTarget(msgspec.Struct, frozen=True):
    """Where the rows of a query go, determined when it starts."""

    name: TableName
    uuid: str | None
    target: WriteTarget
    mode: OutputMode
    options: WriteOptions
    checkpoint: str


class StreamSink:
    """The function that Spark calls for each batch."""

    def __init__(self, lake: Lake, stream: StreamTarget, find_scope: FindScope) -> None:
        self._lake = lake
        self._stream = stream
        self._find_scope = find_scope
        self._query_id: str | None = None
        self._starts_branch = stream.target.starts_branch

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, unless it is committed already."""
        spark, stream, table = frame.sparkSession, self._stream, self._load()
        branch = stream.target.branch
        scope = self._find_scope(spark)
        if scope is not None:
            scope.check_write(table, branch, None)
        if self._query_id is None:
            self._query_id = read_query_id(spark, stream.checkpoint)
        batch = StreamBatch(self._query_id, batch_id)
        if batch.is_committed(table.metadata, branch):
            _LOG.info("batch %s of query %s is in `%s` already", batch_id, self._query_id, stream.name)
            frame.write.format("noop").mode(
                "overwrite"
            ).save()  # Spark keeps the state of a batch when its rows are used
            return
        target = msgspec.structs.replace(stream.target, starts_branch=self._starts_branch, batch=batch)
        write = TableWrite(spark, table, target, stream.options)
        rows = assign(frame, table.schema, by_name=True)
        if stream.mode == "complete":
            write.overwrite(rows)
        else:
            write.append(rows)
        self._starts_branch = branch not in table.refs

    def _load(self) -> Table:
        table, expected = self._lake.load_table(self._stream.name), self._stream.uuid
        if expected is not None and table.metadata.table_uuid != expected:
            raise ConflictError(
                f"expected table `{self._stream.name}` with uuid {expected}, found {table.metadata.table_uuid}: "
                "it was dropped and re-created",
                hints=["start the query anew, with a new `checkpointLocation`"],
            )
        return table


def read_query_id(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query that has a checkpoint, which stays the same over restarts."""
    path = _GLOB.sub(r"\\\g<0>", f"{checkpoint.rstrip('/')}/metadata")
    text = "\n".join(row[0] for row in spark.read.text(path).collect())
    try:
        return str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"expected the id of a query in {checkpoint}/metadata, found {text[:200]!r}") from error
