"""Delete files read once for the data files that they refer to."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyroaring import BitMap

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.read.reader import read_plan
from bergline.datafiles.write.delete_writer import write_equality_deletes
from bergline.errors import FormatError, UnsupportedError
from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import FileContent
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import PlannedFile
from support.fixtures.delete_files import SPEC, by_key, by_position, left, plan, stored, vector


class CountingFileIO(MemoryFileIO):
    """Storage that counts how often each file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open_input(self, location: str) -> Any:
        self.opened.append(location)
        return super().open_input(location)


def test_a_vector_of_more_positions_than_fit_in_memory_is_refused_without_listing_them() -> None:
    io = MemoryFileIO()
    data = stored(io)
    everything = PositionSet({0: BitMap(range(2**32))})
    content, entries = deletion_vector_file("memory:/d.puffin", [(data, everything)], "test")
    io.create("memory:/d.puffin", content)
    assert entries[0].record_count == 2**32
    with pytest.raises(FormatError, match="expected deletes at positions below 6, found 4294967295"):
        left(io, data, *entries)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"referenced_data_file": "memory:/other"}, "found memory:/other as the data file"),
        ({"content_offset": None}, "expected an offset and a size"),
        ({"content_offset": 10**6}, "memory:/data/d.puffin"),
        ({"content_offset": 5}, "memory:/data/d.puffin"),
        ({"content_size_in_bytes": 3}, "memory:/data/d.puffin"),
        ({"record_count": 1}, "expected 1 positions, found 3"),
    ],
    ids=str,
)
def test_deletion_vector_that_its_entry_does_not_describe_is_an_error(changes: dict[str, Any], message: str) -> None:
    io = MemoryFileIO()
    data = stored(io)
    with pytest.raises(FormatError, match=message):
        left(io, data, msgspec.structs.replace(vector(io, data, [0, 2, 5]), **changes))


def test_equality_deletes_without_their_own_key_column_are_an_error() -> None:
    io = MemoryFileIO()
    data = stored(io)
    delete = msgspec.structs.replace(by_key(io, pa.table({"id": [1]}), 1), equality_ids=(2,))
    with pytest.raises(FormatError, match=f"key column `d` of an equality delete, found none in {delete.file_path}"):
        left(io, data, delete)


def test_damaged_delete_file_is_named_alone() -> None:
    io = MemoryFileIO()
    data = stored(io)
    delete = by_position(io, {data.file_path: [0]})
    io.create("memory:/bad", io.read(delete.file_path)[:-9])
    with pytest.raises(FormatError, match=r"expected a Parquet file, found .* in memory:/bad$"):
        left(io, data, msgspec.structs.replace(delete, file_path="memory:/bad"))


def test_delete_file_of_another_format_is_not_supported() -> None:
    io = MemoryFileIO()
    data = stored(io)
    delete = by_position(io, {data.file_path: [0]})
    with pytest.raises(UnsupportedError, match="found `LANCE`"):
        left(io, data, msgspec.structs.replace(delete, file_format="LANCE"))


def test_delete_files_are_read_once_for_many_data_files() -> None:
    io = CountingFileIO()
    data = [stored(io, f"w{n}") for n in range(4)]
    deletes = by_position(io, {d.file_path: [n] for n, d in enumerate(data)}), by_key(io, pa.table({"id": [5]}), 1)
    scan = plan(data[0], *deletes)
    scan = msgspec.structs.replace(scan, files=tuple(PlannedFile(d, 1, deletes) for d in data))
    found = read_plan(io, scan).column("id").to_pylist()
    assert found == [i for n in range(4) for i in range(5) if i != n]
    assert sorted(io.opened) == sorted([*(d.file_path for d in data), *(d.file_path for d in deletes)])


def test_what_is_remembered_has_a_limit() -> None:
    io = CountingFileIO()
    data = stored(io)
    deletes = [by_position(io, {data.file_path: [n]}, f"p{n}") for n in range(3)]
    small = DeleteFiles(io, cache_bytes=1)
    for _ in range(2):
        for n, delete in enumerate(deletes):
            assert list(small.positions(delete, data.file_path)) == [n]
    assert len(small._kept) == 1
    assert len(io.opened) == 6


def test_null_position_is_an_error() -> None:
    io = MemoryFileIO()
    data = stored(io)
    keys = write_equality_deletes(
        io,
        msgspec.structs.replace(
            SPEC,
            schema=Schema(
                fields=(
                    NestedField(2147483546, "file_path", False, STRING),
                    NestedField(2147483545, "pos", False, LONG),
                )
            ),
        ),
        "memory:/null.parquet",
        pa.table({"file_path": [data.file_path], "pos": pa.array([None], pa.int64())}),
        [2147483546, 2147483545],
    )
    with pytest.raises(FormatError, match=r"found null in memory:/null\.parquet"):
        left(io, data, msgspec.structs.replace(keys, content=FileContent.POSITION_DELETES, equality_ids=None))
