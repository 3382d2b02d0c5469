"""Work spread over tasks."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.errors import find_missing_file
from bergline.spark.runtime.tasks import missing_file, task_frame

pytestmark = pytest.mark.spark


def test_work_is_dealt_out_evenly(spark_session: SparkSession) -> None:
    def sizes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array([sum(batch.num_rows for batch in batches)])})

    blobs = [bytes([n]) for n in range(10)]
    frame = task_frame(backend_of(spark_session), blobs, "file:///data", 3)
    assert sorted(row.task for row in frame.collect()) == blobs
    assert sorted(row.n for row in frame.mapInArrow(sizes, "n long").collect()) == [3, 3, 4]


def test_there_are_no_more_tasks_than_there_is_work(spark_session: SparkSession) -> None:
    assert task_frame(backend_of(spark_session), [b"a", b"b"], "file:///data").rdd.getNumPartitions() == 2


def test_missing_file_is_known_again_by_its_text() -> None:
    error = missing_file("delete", "file:///data/x y.parquet", 7)
    found = find_missing_file(f"…\nbergline.errors.NotFoundError: {error}\n…")
    assert found is not None
    assert (str(found), found.name) == (str(error), "file:///data/x y.parquet")
