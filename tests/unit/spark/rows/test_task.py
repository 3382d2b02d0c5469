"""What a task of the row engine sends back, run here as Spark runs it there."""

import functools
import pickle
from typing import Any

import pyarrow as pa
import pytest

from bergline import Table
from bergline.errors import NotFoundError, StorageError
from bergline.spark.rows.task import RowTask, RowTaskResult
from bergline.table.engine.plans import plan_position_deletes
from bergline.table.engine.position_deletes import delete_matching
from bergline.table.engine.row_engine import FileChanges
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.long


def run(task: RowTask, *parts: Any) -> list[RowTaskResult]:
    blobs = pa.array([pickle.dumps(part) for part in enumerate(parts)], pa.binary())
    found = task.run([pa.RecordBatch.from_pydict({"task": blobs})])
    return [pickle.loads(batch.column(0)[0].as_py()) for batch in found]  # noqa: S301


def test_each_part_is_a_row_with_files_of_its_own(orders: Table) -> None:
    orders.append(order_rows(1, 2)).append(order_rows(3, 4))
    plan = plan_position_deletes(orders.metadata, orders.scan("id IN (2, 3)").plan())
    task = RowTask(orders.io, functools.partial(delete_matching, orders.io, plan), "job-7")
    results = run(task, *((planned,) for planned in plan.files))
    assert [result.error for result in results] == [None, None]
    paths = [path for result in results for path in result.changes.paths]
    assert len(set(paths)) == 2
    assert all("00000-0-job-7-0000" in path for path in paths)


def test_an_error_that_another_attempt_would_meet_is_sent_back(orders: Table) -> None:
    orders.append(order_rows(1, 2)).append(order_rows(3, 4))
    plan = plan_position_deletes(orders.metadata, orders.scan("id IN (2, 3)").plan())
    gone = plan.files[0].file.file_path
    orders.io.delete([gone])
    task = RowTask(orders.io, functools.partial(delete_matching, orders.io, plan), "job-7")
    missing, other = run(task, plan.files[:1], plan.files[1:])
    assert isinstance(missing.error, NotFoundError)
    assert (missing.error.name, missing.changes) == (gone, FileChanges())
    assert other.changes.deleted_rows == 1


def test_any_other_error_is_left_to_spark(orders: Table) -> None:
    def fail(*_: object) -> FileChanges:
        raise StorageError("the network is down")

    with pytest.raises(StorageError):
        run(RowTask(orders.io, fail, "job-7"), ())
