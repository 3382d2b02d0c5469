import pyarrow as pa
import pytest

from bergline.spark.writes.task import gathered


def batches(count: int, rows: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"id": pa.array(range(n * rows, (n + 1) * rows), pa.int64())}) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "rows", "most_bytes", "expected"),
    [
        (0, 1, 1000, []),
        (3, 2000, 1_000_000, [6000]),
        (30, 2000, 1_000_000, [50_000, 10_000]),
        (5, 100, 1600, [200, 200, 100]),
        (2, 100, 1, [100, 100]),
    ],
)
def test_batches_come_together_up_to_a_number_of_rows_and_bytes(
    count: int, rows: int, most_bytes: int, expected: list[int]
) -> None:
    found = list(gathered(batches(count, rows), most_bytes))
    assert [table.num_rows for table in found] == expected
    assert [i for table in found for i in table.column("id").to_pylist()] == list(range(count * rows))


def test_batches_are_taken_one_by_one() -> None:
    taken = []
    given = (taken.append(n) or batch for n, batch in enumerate(batches(10, 100)))  # type: ignore[func-returns-value]
    next(gathered(given, 1600))
    assert taken == [0, 1]
