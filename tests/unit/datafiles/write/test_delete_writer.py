"""Delete files written."""

import pyarrow as pa
import pytest

from bergline.datafiles.write.delete_writer import write_equality_deletes, write_position_deletes
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, LONG, STRING, UUID, ListType, NestedField, StructType
from bergline.io.memory import MemoryFileIO

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "d", False, DOUBLE),
        NestedField(3, "s", False, StructType((NestedField(4, "x", False, LONG), NestedField(5, "y", False, STRING)))),
        NestedField(6, "u", False, UUID),
        NestedField(7, "l", False, ListType(8, LONG, False)),
    )
)


SPEC = WriteSpec(SCHEMA, UNPARTITIONED, "memory:/data", "zstd", 2**30)


def by_position(io: MemoryFileIO, positions: dict[str, list[int]], name: str = "p") -> DataFile:
    return write_position_deletes(io, SPEC, f"memory:/data/{name}.parquet", positions)


def by_key(io: MemoryFileIO, rows: pa.Table, *ids: int, name: str = "e") -> DataFile:
    return write_equality_deletes(io, SPEC, f"memory:/data/{name}.parquet", rows, ids)


def test_position_delete_file_says_what_it_is() -> None:
    io = MemoryFileIO()
    one = by_position(io, {"memory:/a": [3, 1]}, "one")
    assert (one.content, one.record_count, one.sort_order_id) == (FileContent.POSITION_DELETES, 2, None)
    assert one.referenced_data_file == "memory:/a"
    two = by_position(io, {"memory:/" + "long" * 20: [0], "memory:/a": [2**40]}, "two")
    assert two.referenced_data_file is None
    assert two.lower_bounds == {2147483546: b"memory:/a", 2147483545: bytes(8)}
    assert two.upper_bounds == {2147483546: b"memory:/" + b"long" * 20, 2147483545: (2**40).to_bytes(8, "little")}


def test_equality_delete_file_says_what_it_is() -> None:
    delete = by_key(MemoryFileIO(), pa.table({"s": [{"y": "x" * 20}]}), 5)
    assert (delete.content, delete.equality_ids, delete.record_count) == (FileContent.EQUALITY_DELETES, (5,), 1)
    assert delete.lower_bounds == {5: b"x" * 16}


@pytest.mark.parametrize("ids", [[], [3], [8], [99]])
def test_columns_that_cannot_be_compared_are_refused(ids: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="found"):
        by_key(MemoryFileIO(), pa.table({"id": [1]}), *ids)


def test_deletes_of_nothing_are_refused() -> None:
    io = MemoryFileIO()
    with pytest.raises(InvalidInputError, match="found none"):
        by_position(io, {"memory:/a": []})
    with pytest.raises(InvalidInputError, match="found -1"):
        by_position(io, {"memory:/a": [-1]})
    with pytest.raises(InvalidInputError, match="found none"):
        by_key(io, pa.table({"id": pa.array([], pa.int64())}), 1)
    assert io.list("memory:/data") == []
