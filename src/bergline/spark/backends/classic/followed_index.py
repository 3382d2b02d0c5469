"""A list of files that Spark's planner asks for each time: Spark calls this process, which looks the table up again.

Calls come in any thread of Spark's planner, and have the local properties of the query's own thread: the number of the
query is one of them. Executors get files, nothing of this.
"""

import hashlib
import logging
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, all_of
from bergline.format.schema.schema import Schema
from bergline.spark.backends.classic.catalyst import known_part, scala_items
from bergline.spark.backends.classic.java_classes import client_of, java_class, java_member, scala_list, scala_object
from bergline.spark.runtime.backend import FollowedFiles, KnownFiles
from bergline.spark.runtime.callbacks import CallbackError, is_not_ours

_QUERY = "spark.sql.execution.root.id"
_EXECUTION = "org.apache.spark.sql.execution.SQLExecution"


class FollowedIndex:
    """Spark's `FileIndex`, around one of Spark's own for the files that a frame was made with.

    The names of its methods are Spark's. It is equal to others that were made with the same files, and find the same.
    """

    def __init__(
        self,
        index: Any,
        followed: FollowedFiles,
        make: Callable[[KnownFiles], Any],
        spark: SparkSession,
        *,
        partitions: Any,
        size: int,
        scale: float,
    ) -> None:
        """`partitions` has the types of the files' constants, `size` is how many bytes the files of the index have."""
        client = client_of(spark)
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # as `foreachBatch` does
        _hush_py4j()
        self._index = index
        self._followed = followed
        self._make = make
        self._spark = spark
        path = java_class(client, "org.apache.hadoop.fs.Path")(followed.location)
        self._roots = scala_list(client, path)
        self._partitions = partitions
        self._never = scala_object(spark, "scala.None")
        self._size = size
        self._scale = scale

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(repr(self._followed.key).encode()).hexdigest()

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: N802
        """The files for a plan, as directories with constants of their own."""

        def condition(schema: Schema) -> Predicate:
            return all_of([known_part(found, schema) for found in scala_items(data_filters)] or [ALWAYS_TRUE])

        try:
            query = self._spark.sparkContext.getLocalProperty(_QUERY)
            found = self._followed.files(query, condition)
            index = self._index if found is None else self._make(found)
            return index.listFiles(partition_filters, data_filters)
        except Exception as error:
            raise CallbackError(error) from error

    def rootPaths(self) -> Any:  # noqa: N802
        """Where the table is, by which Spark finds what it has cached of it."""
        return self._roots

    def inputFiles(self) -> Any:  # noqa: N802
        """The files as they were."""
        return self._index.inputFiles()

    def refresh(self) -> None:
        """Nothing: files are looked up each time."""

    def sizeInBytes(self) -> int:  # noqa: N802
        """How much there is to read: a join must not broadcast what was small when the frame was made."""
        try:
            size = self._size + self._followed.growth(self._spark.sparkContext.getLocalProperty(_QUERY))
            return int(size * self._scale)
        except Exception as error:
            raise CallbackError(error) from error

    def partitionSchema(self) -> Any:  # noqa: N802
        """The constants of files."""
        return self._partitions

    def metadataOpsTimeNs(self) -> Any:  # noqa: N802
        """Not known."""
        return self._never

    def equals(self, other: Any) -> bool:
        """Whether it would give the same files, whenever it is asked: Java hands over an object that stands for it."""
        return str(other.toString()) == self.toString()

    def hashCode(self) -> int:  # noqa: N802
        """A number that equal ones share."""
        return int(self._digest[:7], 16)

    def toString(self) -> str:  # noqa: N802
        """What plans show, and tells those apart that find other files."""
        return f"bergline {self._followed.location} {self._digest[:16]}"

    class Java:
        """What Py4J implements."""

        implements: ClassVar = ["org.apache.spark.sql.execution.datasources.FileIndex"]


def is_running(query: str, spark: SparkSession) -> bool:
    """Whether a query has not ended yet."""
    return java_member(client_of(spark), _EXECUTION, "getQueryExecution")(int(query)) is not None


def _hush_py4j() -> None:
    """Let Py4J not print errors that are raised later."""
    for name in ("py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).addFilter(is_not_ours)  # one that is there already is not added again
