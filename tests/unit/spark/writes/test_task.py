import pyarrow as pa
import pytest

from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import STRING, ListType, NestedField
from bergline.io.memory import MemoryFileIO
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


def test_lists_without_offsets_are_measured_and_written() -> None:
    """Arrow in Java sends no offsets for lists inside of lists that are all null; pyarrow's `nbytes` reads them."""
    inner = pa.Array.from_buffers(pa.list_(pa.string()), 0, [None, None], children=[pa.array([], pa.string())])
    nothing = [pa.py_buffer(b"\0"), pa.py_buffer(bytes(8))]
    outer = pa.Array.from_buffers(pa.list_(inner.type), 1, nothing, null_count=1, children=[inner])
    (found,) = gathered([pa.record_batch([outer], names=["a"])], 1000)
    assert found.nbytes > 0
    schema = Schema(fields=(NestedField(1, "a", False, ListType(2, ListType(3, STRING, False), False)),))
    with DataFileWriter(MemoryFileIO(), WriteSpec(schema, UNPARTITIONED, "memory:/d", "zstd", 2**30), "w") as writer:
        writer.write(found)
        (file,) = writer.finish()
    assert file.record_count == 1
