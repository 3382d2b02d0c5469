"""Deletes applied to the rows of one file."""

import math
import uuid
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline.datafiles.delete.deletes import KeySet
from bergline.datafiles.read.reader import read_file, read_plan
from bergline.datafiles.write.delete_writer import write_equality_deletes
from bergline.datafiles.write.write_spec import ParquetOptions
from bergline.errors import FormatError
from bergline.format.schema.reserved import DELETED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import KeyColumn, PlannedFile
from support.fixtures.delete_files import SCHEMA, SPEC, by_key, by_position, left, plan, stored, vector

NUMBERS = pa.array([1, 2, None, 4, 5, 6], pa.int64())
DOUBLES = pa.array([1.0, math.nan, None, 0.0, -0.0, 6.0])


def test_positions_of_this_file_are_deleted_and_others_stay() -> None:
    io = MemoryFileIO()
    data = stored(io)
    delete = by_position(io, {data.file_path: [5, 0, 5], "memory:/other": [1, 99]})
    assert left(io, data, delete) == [1, 2, 3, 4]


def test_delete_files_may_be_in_a_partition() -> None:
    io = MemoryFileIO()
    data = stored(io)
    deletes = [by_position(io, {data.file_path: [5]}), by_key(io, pa.table({"id": [2]}), 1)]
    assert left(io, data, *(msgspec.structs.replace(d, partition=("a",)) for d in deletes)) == [0, 1, 3, 4]


def test_positions_are_those_of_the_file_across_row_groups() -> None:
    io = MemoryFileIO()
    data = stored(io, options=ParquetOptions(row_group_bytes=1))
    assert len(data.split_offsets or ()) == 6
    assert left(io, data, by_position(io, {data.file_path: [1, 4]})) == [0, 2, 3, 5]


@pytest.mark.parametrize(
    ("position", "message"),
    [(6, "positions below 6, found 6 for"), (2**62, f"found 0 to {2**62} for")],
)
def test_positions_outside_the_file_are_an_error(position: int, message: str) -> None:
    io = MemoryFileIO()
    data = stored(io)
    with pytest.raises(FormatError, match=f"{message} {data.file_path}"):
        left(io, data, by_position(io, {data.file_path: [0, position]}))


def test_deletion_vector_deletes_its_positions() -> None:
    io = MemoryFileIO()
    data = stored(io)
    assert left(io, data, vector(io, data, [0, 2, 5])) == [1, 3, 4]


@pytest.mark.parametrize(
    ("ids", "keys", "expected"),
    [
        ((1,), {"id": [2, 7]}, [0, 1, 3, 4, 5]),
        ((2,), {"d": [math.nan]}, [0, 2, 3, 4, 5]),
        ((2,), {"d": [0.0, 6.0]}, [0, 1, 2, 4]),
        ((2,), {"d": pa.array([None], pa.float64())}, [0, 1, 3, 4, 5]),
        ((1, 2), {"id": [0, 5], "d": [1.0, 1.0]}, [1, 2, 3, 4, 5]),
        ((4,), {"s": [{"x": 2}]}, [0, 2, 3, 4, 5]),
        ((4,), {"s": [{"x": None}]}, [0, 1, 4, 5]),
        ((5, 4), {"s": [{"x": 1, "y": "a"}, {"x": 4, "y": "a"}]}, [1, 2, 3, 4, 5]),
        ((6,), {"u": pa.array([uuid.UUID(int=4)], pa.uuid())}, [0, 1, 2, 3, 5]),
    ],
    ids=lambda value: str({k: list(v) for k, v in value.items()} if isinstance(value, dict) else value),
)
def test_rows_equal_to_a_key_are_deleted(ids: tuple[int, ...], keys: dict[str, Any], expected: list[int]) -> None:
    io = MemoryFileIO()
    data = stored(io)
    assert left(io, data, by_key(io, pa.table(keys), *ids)) == expected


def test_deletes_of_all_kinds_add_up() -> None:
    io = MemoryFileIO()
    data = stored(io)
    deletes = (
        by_position(io, {data.file_path: [0]}),
        by_key(io, pa.table({"id": [1]}), 1, name="e1"),
        by_key(io, pa.table({"id": [5]}), 1, name="e2"),
        by_key(io, pa.table({"d": [0.0]}), 2, name="e3"),
    )
    assert left(io, data, *deletes) == [2, 4]


def test_column_that_the_data_file_lacks_is_compared_as_its_default() -> None:
    io = MemoryFileIO()
    wider = NestedField(9, "later", False, LONG, initial_default=7)
    data = stored(io)
    spec = msgspec.structs.replace(SPEC, schema=Schema(fields=(*SCHEMA.fields, wider)))
    for value, expected in ((7, []), (8, [0, 1, 2, 3, 4, 5])):
        delete = write_equality_deletes(io, spec, f"memory:/{value}", pa.table({"later": [value]}), [9])
        planned = msgspec.structs.replace(plan(data), files=(PlannedFile(data, 1, (delete,)),))
        scan = msgspec.structs.replace(planned, key_columns=(KeyColumn(9, ("later",), wider),))
        assert read_plan(io, scan).column("id").to_pylist() == expected


def test_equality_deletes_without_known_columns_are_an_error() -> None:
    io = MemoryFileIO()
    data = stored(io)
    delete = by_key(io, pa.table({"id": [1]}), 1)
    with pytest.raises(FormatError, match="expected columns with ids"):
        read_plan(io, msgspec.structs.replace(plan(data, delete), key_columns=()))
    with pytest.raises(FormatError, match="expected equality ids"):
        left(io, data, msgspec.structs.replace(delete, equality_ids=None))


def test_deletes_of_a_partition_are_read() -> None:
    io = MemoryFileIO()
    data = stored(io)
    delete = msgspec.structs.replace(by_position(io, {data.file_path: [0]}), partition=("eu",), spec_id=1)
    assert left(io, data, delete) == [1, 2, 3, 4, 5]


def test_deleted_rows_come_with_a_mark_if_it_is_asked_for() -> None:
    io = MemoryFileIO()
    data = stored(io)
    scan = plan(data, by_position(io, {data.file_path: [1]}))
    scan = msgspec.structs.replace(scan, schema=Schema(fields=(SCHEMA.ids[1], DELETED)))
    rows = [r for batch in read_file(io, scan.files[0], scan) for r in batch.to_pylist()]
    assert [(r["id"], r["_deleted"]) for r in rows] == [(n, n == 1) for n in range(6)]


def equal(rows: list[pa.Array], keys: list[pa.Array]) -> list[int]:
    return [n for n, found in enumerate(KeySet(keys).matches(rows).to_pylist()) if found]


@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        ([NUMBERS], [[2, None]], [1, 2]),
        ([NUMBERS], [[]], []),
        ([DOUBLES], [[math.nan]], [1]),
        ([DOUBLES], [[0.0]], [3]),
        ([DOUBLES], [[-0.0]], [4]),
        ([DOUBLES], [[None]], [2]),
        ([NUMBERS, DOUBLES], [[1, 6], [1.0, 1.0]], [0]),
        ([NUMBERS, DOUBLES], [[None, 2], [None, math.nan]], [1, 2]),
        ([NUMBERS, DOUBLES, NUMBERS], [[4, 5], [0.0, 0.0], [4, 5]], [3]),
        ([NUMBERS, DOUBLES, NUMBERS], [[], [], []], []),
    ],
)
def test_rows_equal_to_a_key_are_found(rows: list[pa.Array], keys: list[list[Any]], expected: list[int]) -> None:
    assert equal(rows, [pa.array(k, r.type) for k, r in zip(keys, rows, strict=True)]) == expected


def test_every_nan_is_the_same() -> None:
    payload = pa.array([0x7FF8000000000001, -0x8000000000000 + 5], pa.int64()).view(pa.float64())
    assert equal([payload], [pa.array([math.nan])]) == [0, 1]


@pytest.mark.parametrize(
    "rows",
    [
        pa.array(["a", None, "b", ""]),
        pa.array([b"a", None, b"b", b""]),
        pa.array([b"aa", None, b"bb", b"cc"], pa.binary(2)),
        pa.array([b"a" * 16, None, b"b" * 16, b"c" * 16], pa.uuid()),
        pa.array([True, None, False, False]),
        pa.array([Decimal("1.50"), None, Decimal("2.50"), Decimal("3.50")]),
        pa.array([1, None, 2, 3], pa.timestamp("us", "UTC")),
        pa.array([1.5, None, 2.5, -0.0], pa.float32()),
        pa.array([1, None, 2, 3], pa.date32()),
        pa.array([1, None, 2, 3], pa.time64("us")),
    ],
    ids=lambda a: str(a.type),
)
def test_keys_of_every_type_are_compared(rows: pa.Array) -> None:
    assert equal([rows], [rows.slice(0, 2)]) == [0, 1]
    assert equal([pa.chunked_array([rows, rows])], [rows.slice(1, 1)]) == [1, 5]
