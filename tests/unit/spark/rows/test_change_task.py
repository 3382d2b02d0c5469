"""What a task makes of a change frame, run here as Spark runs it there."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from bergline import Table
from bergline.datafiles.write.write_spec import write_spec
from bergline.errors import InvalidInputError, StorageError
from bergline.format.deletes.position_set import position_set
from bergline.spark.rows.change_task import ADDS, DELETES, ChangeTask, ChangeTaskResult, Positions
from support.fixtures.rows import order_rows

NAMES = ["id", "amount", "region"]


def change(action: int, file: str | None = None, pos: int | None = None, row: Any = (None, None, None)) -> list[Any]:
    return [action, file, pos, *row]


def batch(*changes: list[Any]) -> pa.RecordBatch:
    types = [pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.float64(), pa.string()]
    columns = [pa.array([c[i] for c in changes], type_) for i, type_ in enumerate(types)]
    return pa.RecordBatch.from_arrays(columns, [f"_{i}" for i in range(6)])


def run(task: ChangeTask, *batches: pa.RecordBatch) -> ChangeTaskResult:
    (result,) = task.run(iter(batches))
    return pickle.loads(result.column(0)[0].as_py())  # type: ignore[no-any-return]  # noqa: S301


def test_new_rows_are_written_and_positions_gathered_by_file(orders: Table) -> None:
    task = ChangeTask(orders.io, write_spec(orders.metadata), "job-7", NAMES)
    result = run(
        task,
        batch(change(DELETES, "b", 4), change(DELETES | ADDS, "a", 1, (1, 2.0, "eu")), change(DELETES, "a", 0)),
        batch(change(ADDS, row=(2, 3.0, "us")), change(0, "b", 2), change(DELETES | 8, "b", 7)),
    )
    assert [f.record_count for f in result.files] == [2]
    assert "00000-0-job-7" in result.files[0].file_path
    assert result.deleted == {"a": position_set([0, 1]), "b": position_set([4, 7])}
    assert (result.kept, result.twice) == ({"b": position_set([2])}, None)
    assert result.counts == {DELETES: 2, DELETES | ADDS: 1, ADDS: 1, 0: 1, DELETES | 8: 1}


@pytest.mark.parametrize("apart", [True, False])
def test_a_row_that_comes_twice_is_noticed(orders: Table, *, apart: bool) -> None:
    changes = [change(DELETES, "a", 1), change(DELETES, "a", 5), change(DELETES, "a", 5)]
    batches = [batch(c) for c in changes] if apart else [batch(*changes)]
    assert run(ChangeTask(orders.io, write_spec(orders.metadata), "job-7", NAMES), *batches).twice == ("a", 5)


def test_a_row_that_comes_from_two_tasks_is_noticed() -> None:
    positions = Positions()
    positions.join({"a": position_set([1, 2]), "b": position_set([2])})
    positions.join({"a": position_set([3])})
    assert (positions.by_file()["a"], positions.twice) == (position_set([1, 2, 3]), None)
    positions.join({"a": position_set([0, 3])})
    assert (len(positions.by_file()["a"]), positions.twice) == (4, ("a", 3))


def test_rows_that_do_not_fit_are_refused_and_leave_no_file(orders: Table) -> None:
    task = ChangeTask(orders.io, write_spec(orders.metadata), "job-7", NAMES)
    before = orders.io.list(orders.location)
    rows = iter([batch(change(ADDS, row=(1, 2.0, "eu"))), batch(change(ADDS, row=(None, 2.0, "eu")))])
    (result,) = task.run(rows)
    refused: ChangeTaskResult = pickle.loads(result.column(0)[0].as_py())  # noqa: S301
    assert isinstance(refused.refusal, InvalidInputError)
    assert list(rows) == []  # Spark wants all to be taken
    assert orders.io.list(orders.location) == before


def test_any_other_error_is_left_to_spark_and_leaves_no_file(orders: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.append(order_rows(1))
    before = orders.io.list(orders.location)

    def fail(*_: object) -> None:
        raise StorageError("the network is down")

    task = ChangeTask(orders.io, write_spec(orders.metadata), "job-7", NAMES)
    monkeypatch.setattr(Positions, "add", fail)
    with pytest.raises(StorageError):
        run(task, batch(change(ADDS, row=(1, 2.0, "eu"))), batch(change(DELETES, "a", 1)))
    assert orders.io.list(orders.location) == before
