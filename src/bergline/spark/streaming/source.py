"""Tables as a Python data source of Spark's; executors have little more than pyarrow, so it imports nothing that plans.

Each read registers a class of its own, which holds the planner pickled: options would show credentials in plans.
"""

import hashlib
import os
import pickle
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol, cast

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from bergline.spark.reads.arrow import ReadTask
from bergline.spark.runtime.requests import LIMITED_SOURCES, TAKES_ALL

_NAME = re.compile(r"[^a-z0-9]+")


class Planner(Protocol):
    """What the driver's process asks; see `planner.py`."""

    def initial_offset(self) -> dict[str, Any]:
        """Where a new query begins."""

    def latest_offset(self, *, takes_all: bool) -> dict[str, Any]:
        """Where the next batch ends, by the limits unless it takes all."""

    def tasks(self, start: dict[str, Any], end: dict[str, Any]) -> list[bytes]:
        """Work for tasks."""

    def close(self) -> None:
        """Close connections."""


class TableStreamSource(DataSource):
    """A streaming read of one table; subclasses, pickled by value, hold its planner."""

    pickled_planner: ClassVar[bytes] = b""

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's names)
        """The reader of one query."""
        told = os.environ.get(TAKES_ALL) or self.options.get(TAKES_ALL)
        return TableStreamReader(self.pickled_planner, schema, takes_all=told == "true")


class TableStreamReader(DataSourceStreamReader):
    """Plans in a process beside the driver, reads on executors; the planner is unpickled only where it is asked."""

    def __init__(self, pickled_planner: bytes, schema: T.StructType, *, takes_all: bool) -> None:
        self._pickled_planner = pickled_planner
        self._nullable = {field.name: field.nullable for field in schema.fields}
        self._takes_all = takes_all
        self._planner: Planner | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint begins."""
        return self._plan().initial_offset()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends."""
        return self._plan().latest_offset(takes_all=self._takes_all)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A partition for each task."""
        return [InputPartition(task) for task in self._plan().tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one partition; from Spark 4.3 on, batches must say which columns have no nulls."""
        task = cast("ReadTask", pickle.loads(partition.value))  # noqa: S301  (we pickled it)
        for batch in task.read():
            fields = [field.with_nullable(self._nullable[field.name]) for field in batch.schema]
            yield pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: what has been read is in the checkpoint."""

    def stop(self) -> None:
        """Close the connections to the catalog."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planner": None}

    def _plan(self) -> Planner:
        if self._planner is None:
            self._planner = cast("Planner", pickle.loads(self._pickled_planner))  # noqa: S301  (we pickled it)
        return self._planner


def stream_source(table: str, planner: object, *, is_limited: bool) -> type[DataSource]:
    """A data source that reads by a planner; its name is the same for the same read."""
    pickled = pickle.dumps(planner)
    prefix = LIMITED_SOURCES if is_limited else "bergline_"
    name = f"{prefix}{_NAME.sub('_', table.lower())}_{hashlib.sha256(pickled).hexdigest()[:16]}"
    members = {"name": classmethod(lambda _: name), "pickled_planner": pickled}
    return type("TableStream", (TableStreamSource,), members)
