"""Delete files read once for the data files that they refer to."""

import math
import uuid
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyroaring import BitMap

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.read.reader import read_plan
from bergline.datafiles.write.delete_writer import write_equality_deletes, write_position_deletes
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import FormatError, UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.deletes.deletion_vector import deletion_vector_file
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, LONG, STRING, UUID, ListType, NestedField, StructType
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan

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


ROWS = [
    {"id": 0, "d": 1.0, "s": {"x": 1, "y": "a"}, "u": uuid.UUID(int=1)},
    {"id": 1, "d": math.nan, "s": {"x": 2, "y": None}, "u": None},
    {"id": 2, "d": None, "s": {"x": None, "y": "b"}, "u": uuid.UUID(int=2)},
    {"id": 3, "d": 0.0, "s": None, "u": uuid.UUID(int=3)},
    {"id": 4, "d": -0.0, "s": {"x": 4, "y": "c"}, "u": uuid.UUID(int=4)},
    {"id": 5, "d": 6.0, "s": {"x": 5, "y": "d"}, "u": uuid.UUID(int=5)},
]


class CountingFileIO(MemoryFileIO):
    """Storage that counts how often each file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open_input(self, location: str) -> Any:
        self.opened.append(location)
        return super().open_input(location)


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    stored = pa.Table.from_pylist([{**r, "u": r["u"] and r["u"].bytes} for r in rows])
    return stored.set_column(3, "u", stored.column("u").cast(pa.binary(16)).cast(pa.uuid()))


def stored(io: MemoryFileIO, name: str = "w", **changes: Any) -> DataFile:
    with DataFileWriter(io, msgspec.structs.replace(SPEC, **changes), name) as writer:
        writer.write(arrow(ROWS))
        return writer.finish()[0]


def key(field_id: int) -> KeyColumn:
    path = SCHEMA.paths[field_id]
    column = next(f for f in SCHEMA.fields if f.name == path[0])
    if len(path) > 1:
        column = msgspec.structs.replace(column, type=StructType((SCHEMA.ids[field_id],)))
    return KeyColumn(field_id, path, column)


def plan(data: DataFile, *deletes: DataFile, columns: tuple[str, ...] = ("id",)) -> ScanPlan:
    keys = tuple(key(i) for i in sorted({i for d in deletes for i in d.equality_ids or ()}))
    return ScanPlan(1, SCHEMA, SCHEMA.select(columns), ALWAYS_TRUE, (PlannedFile(data, 1, deletes),), key_columns=keys)


def left(io: MemoryFileIO, data: DataFile, *deletes: DataFile) -> list[int]:
    return read_plan(io, plan(data, *deletes)).column("id").to_pylist()


def by_position(io: MemoryFileIO, positions: dict[str, list[int]], name: str = "p") -> DataFile:
    return write_position_deletes(io, SPEC, f"memory:/data/{name}.parquet", positions)


def by_key(io: MemoryFileIO, rows: pa.Table, *ids: int, name: str = "e") -> DataFile:
    return write_equality_deletes(io, SPEC, f"memory:/data/{name}.parquet", rows, ids)


def vector(io: MemoryFileIO, data: DataFile, positions: list[int]) -> DataFile:
    content, entries = deletion_vector_file("memory:/data/d.puffin", [(data, position_set(positions))], "test")
    io.create("memory:/data/d.puffin", content)
    return entries[0]


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
