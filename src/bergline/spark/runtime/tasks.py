"""Work for executors: rows of bytes, spread over as many tasks as there is use for, and what tasks raise."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from bergline.errors import NotFoundError
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.executors import prepare_executors

_TASKS_PER_CORE = 4


def task_frame(backend: SparkBackend, blobs: Sequence[bytes], location: str, tasks: int | None = None) -> DataFrame:
    """A frame with a column of bytes, dealt out one by one, for tasks that use files at a location."""
    cores = prepare_executors(backend, location)
    count = max(1, min(len(blobs), _TASKS_PER_CORE * cores if tasks is None else tasks))
    frame = backend.spark.createDataFrame(pa.table({"task": pa.array(blobs, pa.binary())}), "task binary")
    # from one partition rows are dealt out one by one
    return frame.coalesce(1).repartition(count)


def missing_file(kind: str, path: str, snapshot_id: int | str | None) -> NotFoundError:
    """The error of a file that a snapshot needs and that is gone: `kind` is data or delete.

    `reads/errors.py` knows it again by its text.
    """
    return NotFoundError(f"no {kind} file {path}, which snapshot {snapshot_id} needs", kind="file", name=path)
