"""A DataFrame as data files: the one Parquet writer, run on Spark's executors.

A task's files are known only by what it sends back, and Spark takes that from one attempt of each task: what attempts
that failed, were repeated or lost a race have written is never committed.
"""

import pickle
import time
import uuid
from collections.abc import Iterable
from typing import cast

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import BerglineError
from bergline.format.manifest import DataFile
from bergline.io.locations import normalized
from bergline.parquet.write_spec import WriteSpec, write_spec
from bergline.spark.executors import prepare_executors
from bergline.spark.write_batches import in_small_batches
from bergline.spark.write_distribution import arrange_rows
from bergline.spark.write_here import is_at_hand, write_here
from bergline.spark.write_options import WriteOptions
from bergline.spark.write_progress import described_jobs, log_written
from bergline.spark.write_task import TaskResult, WriteTask
from bergline.table.table import Table

_AFTER_A_FAILURE_S = (0.0, 0.2, 0.5, 1.0)


def write_files(frame: DataFrame, table: Table, options: WriteOptions | None = None) -> list[DataFile]:
    """Write the rows of a DataFrame whose columns fit the table; only files of successful tasks come back.

    If it fails, its files are removed as far as they can be found.
    """
    job, started, what = str(uuid.uuid4()), time.monotonic(), f"bergline: write to {table.name}"
    metadata = (options or WriteOptions()).applied_to(table.metadata)
    if is_at_hand(frame):
        with described_jobs(frame.sparkSession, what):
            here = write_here(frame, table.io, metadata, job)
        log_written(what, here, time.monotonic() - started)
        return here
    spec = write_spec(metadata)
    prepare_executors(frame.sparkSession, spec.data_location)
    arranged = arrange_rows(frame, metadata)
    spec = msgspec.structs.replace(spec, sort_order_id=arranged.sort_order_id)
    # numbered columns on the way: Spark takes a dot in a name for a struct
    numbered = arranged.frame.toDF(*(f"_{i}" for i in range(len(frame.columns))))
    task = WriteTask(table.io, spec, job, frame.columns)
    try:
        written = numbered.mapInArrow(task.run, "result binary")
        with described_jobs(frame.sparkSession, what), in_small_batches(written, frame.schema) as running:
            rows = running.collect()
    except BaseException:
        for wait_s in _AFTER_A_FAILURE_S:  # tasks that run beside the one that failed end a little later
            time.sleep(wait_s)
            _remove_files(table, spec, job, keep=())
        raise
    results = [cast("TaskResult", pickle.loads(row.result)) for row in rows]  # noqa: S301  (our own tasks wrote it)
    files = [file for result in results for file in result.files]
    if refusals := [result.refusal for result in results if result.refusal]:
        table.io.delete([f.file_path for f in files])
        raise refusals[0]
    if any(result.was_repeated for result in results):
        _remove_files(table, spec, job, keep=files)
    log_written(what, files, time.monotonic() - started)
    return files


def _remove_files(table: Table, spec: WriteSpec, job: str, *, keep: Iterable[DataFile]) -> None:
    """Remove the job's files that nobody will name, those that can be found; the rest are orphans."""
    kept = {normalized(f.file_path) for f in keep}
    try:
        found = [f for f in table.io.list(spec.data_location) if job in f and normalized(f) not in kept]
        table.io.delete(found)
    except BerglineError:
        return
