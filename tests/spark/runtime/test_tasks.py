"""Work spread over tasks."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.errors import find_missing_file
from bergline.spark.runtime.tasks import missing_file, task_frame

pytestmark = pytest.mark.spark


def test_work_is_dealt_out_evenly(spark: SparkSession) -> None:
    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array([sum(batch.num_rows for batch in batches)])})

    blobs = [bytes([n]) for n in range(10)]
    frame = task_frame(backend_of(spark), blobs, "file:///data", 3)
    assert sorted(row.task for row in frame.collect()) == blobs
    assert sorted(row.n for row in frame.mapInArrow(sizes, "n long").collect()) == [3, 3, 4]


def test_there_are_no_more_tasks_than_there_is_work(spark: SparkSession) -> None:
    assert task_frame(backend_of(spark), [b"a", b"b"], "file:///data").rdd.getNumPartitions() == 2


def test_missing_file_is_known_again_by_its_text() -> None:
    error = missing_file("delete", "file:///data/x y.parquet", 7)
    found = find_missing_file(f"…\nbergline.errors.NotFoundError: {error}\n…")
    assert found is not None
    assert (str(found), found.name) == (str(error), "file:///data/x y.parquet")


@pytest.mark.parametrize(
    ("blobs", "tasks", "expected"), [(2, 2, [1, 1]), (1, 5, [1]), (7, 3, [2, 2, 3]), (9, 9, [1] * 9)]
)
def test_no_task_has_more_than_its_share(spark: SparkSession, blobs: int, tasks: int, expected: list[int]) -> None:
    work = [bytes([number]) for number in range(blobs)]
    frame = task_frame(backend_of(spark), work, "file:///anywhere", tasks)
    rows = frame.select("task", F.spark_partition_id().alias("partition")).collect()
    assert sorted(bytes(row.task) for row in rows) == work
    assert sorted(Counter(row.partition for row in rows).values()) == expected
    assert frame.columns == ["task"]


def test_there_are_a_few_tasks_for_each_core(spark: SparkSession) -> None:
    frame = task_frame(backend_of(spark), [b"x"] * 100, "file:///anywhere")
    assert frame.select(F.spark_partition_id().alias("p")).distinct().count() == 8  # two cores
