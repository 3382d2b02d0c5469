"""Work for executors: rows of bytes, spread over as many tasks as there is use for, and what tasks raise."""

import functools
import itertools
from collections.abc import Sequence
from typing import Final

import mmh3
import pyarrow as pa
from pyspark.sql import DataFrame

from bergline.errors import NotFoundError
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.executors import prepare_executors

_TASKS_PER_CORE = 4
_HASH_SEED: Final = 42
"""Spark's seed for hash partitioning, which is Murmur3."""


def task_frame(backend: SparkBackend, blobs: Sequence[bytes], location: str, tasks: int | None = None) -> DataFrame:
    """A frame with a column of bytes, dealt out one by one, for tasks that use files at a location."""
    cores = prepare_executors(backend, location)
    count = max(1, min(len(blobs), _TASKS_PER_CORE * cores if tasks is None else tasks))
    dealt = itertools.islice(itertools.cycle(partition_keys(count)), len(blobs))
    work = pa.table({"task": pa.array(blobs, pa.binary()), "key": pa.array(dealt, pa.int32())})
    # without a key Spark deals out the rows of each source partition from a random start: some tasks would get none
    return backend.spark.createDataFrame(work, "task binary, key int").repartition(count, "key").select("task")


@functools.lru_cache(maxsize=16)
def partition_keys(count: int) -> tuple[int, ...]:
    """For each of so many partitions, a number that Spark's hash partitioning puts there."""
    found: dict[int, int] = {}
    for number in itertools.count():
        found.setdefault(mmh3.hash(number.to_bytes(4, "little"), _HASH_SEED) % count, number)
        if len(found) == count:
            break
    return tuple(found[partition] for partition in range(count))


def missing_file(kind: str, path: str, snapshot_id: int | str | None) -> NotFoundError:
    """The error of a file that a snapshot needs and that is gone: `kind` is data or delete.

    `reads/errors.py` knows it again by its text.
    """
    return NotFoundError(f"no {kind} file {path}, which snapshot {snapshot_id} needs", kind="file", name=path)
