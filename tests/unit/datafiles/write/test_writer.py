"""The writer: one file per partition, rolled at the target size, gone after an abort."""

import errno
import io
import math
import struct
import uuid
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bergline.datafiles.write.writer
from bergline.datafiles.write.fit import ArrowRows
from bergline.datafiles.write.write_spec import ParquetOptions, WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import InvalidInputError, StorageError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec, parse_partition_by
from bergline.format.partition.transforms import IDENTITY, VOID, UnknownTransform
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    NestedField,
    StructType,
)
from bergline.io.memory import MemoryFileIO, MemoryOutputFile

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "region", False, STRING),
        NestedField(3, "at", False, TIMESTAMPTZ),
        NestedField(4, "day", False, DATE),
        NestedField(5, "place", False, StructType((NestedField(6, "city", False, STRING),))),
        NestedField(7, "tags", False, ListType(8, STRING, False)),
    )
)
BIG = 2**30


class FullDisk(io.BytesIO):
    """A stream without space."""

    def write(self, _: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


class FailingFileIO(MemoryFileIO):
    """Storage whose n-th output cannot be written or closed."""

    def __init__(self, *, full_output: int = 0, failing_close: int = 0) -> None:
        super().__init__()
        self._full_output, self._failing_close, self._count = full_output, failing_close, 0

    def create_output(self, location: str) -> MemoryOutputFile:
        self._count += 1
        kind = FailingOutput if self._count == self._failing_close else MemoryOutputFile
        output = kind(self, location)
        if self._count == self._full_output:
            output._buffer = FullDisk()
        return output


class FailingOutput(MemoryOutputFile):
    """An output that becomes visible and then fails, as when a directory cannot be synced."""

    def close(self) -> int:
        super().close()
        raise StorageError("cannot write")


def spec(*terms: str, schema: Schema = SCHEMA, target: int = BIG) -> WriteSpec:
    return WriteSpec(schema, parse_partition_by(terms, schema), "memory:/data", "zstd", target)


def rows(*regions: str | None, first: int = 0) -> pa.Table:
    return pa.table({"id": list(range(first, first + len(regions))), "region": pa.array(regions, pa.string())})


def write(io: MemoryFileIO, write_spec: WriteSpec, *tables: ArrowRows) -> list[DataFile]:
    with DataFileWriter(io, write_spec, "w0") as writer:
        for table in tables:
            writer.write(table)
        return writer.finish()


def parquet(io: MemoryFileIO, file: DataFile) -> pq.ParquetFile:
    return pq.ParquetFile(io.open_input(file.file_path))


def test_file_holds_every_type_and_says_so(every_type: Schema, every_row: pa.Table) -> None:
    io = MemoryFileIO()
    (file,) = write(io, WriteSpec(every_type, UNPARTITIONED, "memory:/data", "zstd", BIG), every_row)
    stored = parquet(io, file)
    assert repr(stored.read().to_pylist()) == repr(every_row.to_pylist())  # as text, where NaN is NaN
    assert (file.record_count, file.file_size_in_bytes) == (4, len(io.read(file.file_path)))
    assert (file.file_format, file.partition, file.sort_order_id) == ("PARQUET", (), 0)
    outside, inside = {*range(1, 15), 41, 42}, {43, 44, 45, 47, 49}
    assert set(file.column_sizes or {}) == outside | inside
    assert set(file.value_counts or {}) == set(file.null_value_counts or {}) == outside
    assert file.nan_value_counts == {4: 1, 5: 1, 42: 0}


def field_ids(stored: pq.ParquetFile) -> set[int]:
    found = set()
    for line in str(stored.schema).splitlines():
        if "field_id=" in line:
            found.add(int(line.split("field_id=")[1].split()[0]))
    return found


def test_every_level_of_the_file_carries_its_field_id(every_type: Schema, every_row: pa.Table) -> None:
    io = MemoryFileIO()
    (file,) = write(io, WriteSpec(every_type, UNPARTITIONED, "memory:/data", "zstd", BIG), every_row)
    assert field_ids(parquet(io, file)) >= set(every_type.ids)


def logical_type(stored: pq.ParquetFile, position: int) -> tuple[str, str]:
    column = stored.schema.column(position)
    return column.physical_type, str(column.logical_type)


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (BOOLEAN, ("BOOLEAN", "None")),
        (INT, ("INT32", "None")),
        (LONG, ("INT64", "None")),
        (DATE, ("INT32", "Date")),
        (TIME, ("INT64", "Time(isAdjustedToUTC=false, timeUnit=microseconds)")),
        (TIMESTAMP, ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds")),
        (TIMESTAMPTZ, ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds")),
        (TIMESTAMP_NS, ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=nanoseconds")),
        (TIMESTAMPTZ_NS, ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds")),
        (STRING, ("BYTE_ARRAY", "String")),
        (BINARY, ("BYTE_ARRAY", "None")),
        (FixedType(7), ("FIXED_LEN_BYTE_ARRAY", "None")),
        (UUID, ("FIXED_LEN_BYTE_ARRAY", "UUID")),
        (DecimalType(9, 2), ("INT32", "Decimal(precision=9, scale=2)")),
        (DecimalType(10, 2), ("INT64", "Decimal(precision=10, scale=2)")),
        (DecimalType(18, 2), ("INT64", "Decimal(precision=18, scale=2)")),
        (DecimalType(19, 2), ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=19, scale=2)")),
    ],
    ids=str,
)
def test_file_stores_each_type_as_the_specification_says(type_: IcebergType, expected: tuple[str, str]) -> None:
    io, schema = MemoryFileIO(), Schema(fields=(NestedField(1, "c", False, type_),))
    (file,) = write(io, spec(schema=schema), pa.table({"c": pa.nulls(1)}))
    physical, logical = logical_type(parquet(io, file), 0)
    assert physical == expected[0]
    assert logical.startswith(expected[1])


def test_columns_of_unknown_type_are_not_stored() -> None:
    inner = StructType((NestedField(3, "u", False, UNKNOWN), NestedField(4, "x", False, LONG)))
    schema = Schema(fields=(NestedField(1, "n", False, UNKNOWN), NestedField(2, "s", False, ListType(5, inner, False))))
    io = MemoryFileIO()
    (file,) = write(io, spec(schema=schema), pa.table({"n": pa.nulls(1), "s": [[{"u": None, "x": 7}]]}))
    assert parquet(io, file).read().to_pylist() == [{"s": [{"x": 7}]}]
    assert file.value_counts == {}
    assert set(file.column_sizes or {}) == {4}


@pytest.mark.parametrize(
    "schema",
    [
        Schema(fields=(NestedField(1, "n", False, UNKNOWN),)),
        Schema(fields=(NestedField(1, "n", False, ListType(2, UNKNOWN, False)),)),
        Schema(fields=(NestedField(1, "n", False, StructType((NestedField(2, "u", False, UNKNOWN),))),)),
    ],
)
def test_nothing_but_unknown_cannot_be_written(schema: Schema) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        write(MemoryFileIO(), spec(schema=schema), pa.table({"n": pa.nulls(1)}))


def test_variants_are_annotated_and_counted_without_bounds() -> None:
    io, inside = MemoryFileIO(), StructType((NestedField(4, "v", True, VARIANT),))
    schema = Schema(fields=(NestedField(1, "v", False, VARIANT), NestedField(2, "s", False, inside)))
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
    (file,) = write(io, spec(schema=schema), pa.table({"v": [one, None, one], "s": [{"v": one}, {"v": one}, None]}))
    assert parquet(io, file).read().to_pydict() == {"v": [one, None, one], "s": [{"v": one}, {"v": one}, None]}
    assert str(parquet(io, file).schema).count("(Variant(1))") == 2
    assert (file.value_counts, file.null_value_counts) == ({1: 3, 4: 3}, {1: 1, 4: 1})
    assert (file.lower_bounds, file.upper_bounds) == ({}, {})
    footer = parquet(io, file).metadata.row_group(0)
    sizes = [footer.column(position).total_compressed_size for position in range(4)]
    assert file.column_sizes == {1: sum(sizes[:2]), 4: sum(sizes[2:])}
    assert file.file_size_in_bytes == len(io.read(file.file_path))


def point(*coordinates: float, kind: int = 1) -> bytes:
    return struct.pack(f"<BI{len(coordinates)}d", 1, kind, *coordinates)


LINE = struct.pack("<BII4d", 1, 2, 2, -1.0, 5.0, 3.0, 7.0)


@pytest.mark.parametrize(
    ("type_", "shapes", "lower", "upper"),
    [
        (GeometryType("OGC:CRS84"), [point(1, 2), None, LINE], (-1.0, 2.0), (3.0, 7.0)),
        (GeometryType("x"), [point(1, 2, 3, kind=1001), point(4, 0, 1, kind=1001)], (1.0, 0.0, 1.0), (4.0, 2.0, 3.0)),
        (GeometryType("x"), [point(1, 2, 3, kind=1001), point(4, 0)], (1.0, 0.0), (4.0, 2.0)),
        (GeometryType("x"), [point(1, 2, 3, kind=2001)], (1.0, 2.0, None, 3.0), (1.0, 2.0, None, 3.0)),
        (GeometryType("x"), [point(math.nan, math.nan), None], None, None),
        (GeographyType("OGC:CRS84", "karney"), [point(170, -80), point(-170, 80)], (-170.0, -80.0), (170.0, 80.0)),
        (GeographyType("OGC:CRS84", "karney"), [point(1, 2), LINE], None, None),
        (GeographyType("OGC:CRS84", "karney"), [point(190, 2)], None, None),
    ],
    ids=str,
)
def test_shapes_are_annotated_and_have_bounding_boxes_for_bounds(
    type_: IcebergType, shapes: list[bytes | None], lower: Any, upper: Any
) -> None:
    io, schema = MemoryFileIO(), Schema(fields=(NestedField(1, "g", False, type_), NestedField(2, "n", False, INT)))
    table = pa.table({"g": pa.array(shapes, pa.binary()), "n": pa.array([1] * len(shapes), pa.int32())})
    (file,) = write(io, spec(schema=schema), table)
    expected = {} if lower is None else {1: (lower, upper)}
    bounds = {
        i: tuple(decode_value(type_, b[i]) for b in (file.lower_bounds or {}, file.upper_bounds or {}))
        for i in set(file.lower_bounds or {}) & {1}
    }
    assert bounds == expected
    assert (file.null_value_counts or {})[1] == shapes.count(None)
    stored = parquet(io, file)
    assert stored.read().column("g").to_pylist() == shapes
    assert str(type_).split("(")[0] in str(stored.schema).lower()
    # Parquet has no order for shapes, but for other columns
    statistics = [stored.metadata.row_group(0).column(n).statistics for n in range(2)]
    assert statistics[0] is None
    assert statistics[1].has_min_max


def test_unpartitioned_rows_go_to_one_file() -> None:
    io = MemoryFileIO()
    (file,) = write(io, spec(), rows("eu", "us"), rows("eu", first=2))
    assert file.file_path == "memory:/data/w0-00001.parquet"
    assert parquet(io, file).read().column("id").to_pylist() == [0, 1, 2]
    assert io.list("memory:/data") == [file.file_path]


def test_each_partition_gets_its_file() -> None:
    io = MemoryFileIO()
    files = write(io, spec("region"), rows("eu", "us", None, "eu"), rows("a/b", "us", first=4))
    found = {f.partition: parquet(io, f).read().column("id").to_pylist() for f in files}
    assert found == {("eu",): [0, 3], ("us",): [1, 5], (None,): [2], ("a/b",): [4]}
    assert {f.file_path.rsplit("/", 1)[0] for f in files} == {
        "memory:/data/region=eu",
        "memory:/data/region=us",
        "memory:/data/region=null",
        "memory:/data/region=a%2Fb",
    }


@pytest.mark.parametrize(
    ("terms", "values", "expected"),
    [
        (
            ["day(at)"],
            {"at": [0, 86_400_000_000 - 1, 86_400_000_000, -1, None]},
            {(0,): 2, (1,): 1, (-1,): 1, (None,): 1},
        ),
        (["month(day)"], {"day": [0, 30, 31, -1, None]}, {(0,): 2, (1,): 1, (-1,): 1, (None,): 1}),
        (
            ["truncate(2, region)"],
            {"region": ["abc", "abd", "x", "", None]},
            {("ab",): 2, ("x",): 1, ("",): 1, (None,): 1},
        ),
        (["truncate(10, id)"], {}, {(0,): 5}),
        (
            ["place.city"],
            {"place": [{"city": "a"}, {"city": None}, None, {"city": "a"}, {"city": "b"}]},
            {("a",): 2, (None,): 2, ("b",): 1},
        ),
        (
            ["region", "truncate(2, id)"],
            {"region": ["a", "a", "b", "a", None]},
            {("a", 0): 2, ("b", 2): 1, ("a", 2): 1, (None, 4): 1},
        ),
    ],
)
def test_rows_are_split_by_transform(
    terms: list[str], values: dict[str, list[Any]], expected: dict[tuple[Any, ...], int]
) -> None:
    types = {"at": pa.timestamp("us", "UTC"), "day": pa.date32(), "region": pa.string()}
    columns = {k: pa.array(v, types.get(k)) for k, v in values.items()}
    files = write(MemoryFileIO(), spec(*terms), pa.table({"id": range(5), **columns}))
    assert {f.partition: f.record_count for f in files} == expected


def test_uuids_are_partitioned_and_bounded() -> None:
    schema = Schema(fields=(NestedField(1, "u", False, UUID),))
    first, last = uuid.UUID(int=1), uuid.UUID(int=2**128 - 1)
    table = pa.table({"u": pa.array([last, None, first, last], pa.uuid())})
    assert {f.partition: f.record_count for f in write(MemoryFileIO(), spec("u", schema=schema), table)} == {
        (last,): 2,
        (None,): 1,
        (first,): 1,
    }
    (file,) = write(MemoryFileIO(), spec(schema=schema), table)
    assert (file.lower_bounds, file.upper_bounds) == ({1: first.bytes}, {1: last.bytes})


def test_reader_is_taken_batch_by_batch() -> None:
    table = rows("eu", "us", "eu")
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    (file,) = write(MemoryFileIO(), spec(), reader)
    assert file.record_count == 3


def test_rows_without_any_make_no_file() -> None:
    io = MemoryFileIO()
    assert write(io, spec("region"), rows()) == []
    assert io.list("memory:/data") == []


def test_file_is_rolled_at_the_target_size() -> None:
    io = MemoryFileIO()
    table = pa.table({"id": range(20_000), "region": [f"{n * 7919 % 99991:05d}" * 4 for n in range(20_000)]})
    files = write(io, spec(target=50_000), table)
    assert len(files) > 2
    assert all(50_000 <= f.file_size_in_bytes < 150_000 for f in files[:-1])
    assert [i for f in files for i in parquet(io, f).read().column("id").to_pylist()] == list(range(20_000))
    assert len({f.file_path for f in files}) == len(files)


def test_row_groups_have_the_size_asked_for() -> None:
    io, table = MemoryFileIO(), pa.table({"id": range(10_000)})
    options = ParquetOptions(row_group_bytes=20_000)
    (file,) = write(io, msgspec.structs.replace(spec(), options=options), table)
    footer = parquet(io, file).metadata
    assert footer.num_row_groups > 3
    assert len(file.split_offsets or ()) == footer.num_row_groups
    assert sum(footer.row_group(n).num_rows for n in range(footer.num_row_groups)) == 10_000


def test_rows_of_many_partitions_do_not_wait_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bergline.datafiles.write.writer, "_MAX_WAITING_BYTES", 1000)
    with DataFileWriter(MemoryFileIO(), spec("region"), "w0") as writer:
        for first in range(5):
            writer.write(rows(*(str(n) for n in range(30)), first=first))
            assert sum(f.waiting_bytes for f in writer._open.values()) <= 1000
        assert sum(f.record_count for f in writer.finish()) == 150


def test_large_target_keeps_small_writes_in_one_file() -> None:
    files = write(MemoryFileIO(), spec(), *(rows("eu", first=n) for n in range(50)))
    assert [f.record_count for f in files] == [50]


def test_error_inside_the_context_leaves_no_file() -> None:
    io = MemoryFileIO()
    with pytest.raises(InvalidInputError, match="`id`"):
        write(io, spec("region", target=1), rows("eu", "us"), pa.table({"region": ["eu"]}))
    assert io.list("memory:/data") == []


def test_abort_after_finish_leaves_no_file() -> None:
    io = MemoryFileIO()
    writer = DataFileWriter(io, spec("region"), "w0")
    writer.write(rows("eu", "us"))
    assert len(writer.finish()) == 2
    writer.abort()
    writer.abort()
    assert io.list("memory:/data") == []


@pytest.mark.parametrize("faults", [{"full_output": 1}, {"full_output": 2}, {"failing_close": 1}, {"failing_close": 2}])
def test_failing_storage_is_a_storage_error_and_leaves_no_file(faults: dict[str, int]) -> None:
    io = FailingFileIO(**faults)
    with pytest.raises(StorageError, match="cannot write"):
        write(io, spec("region"), rows("eu", "us"))
    assert io.list("memory:/data") == []


def test_partition_column_inside_a_list_is_refused() -> None:
    inside = PartitionSpec(0, (PartitionField(8, 1000, "tag", IDENTITY),))
    with pytest.raises(InvalidInputError, match="outside lists and maps"):
        DataFileWriter(MemoryFileIO(), WriteSpec(SCHEMA, inside, "memory:/d", "zstd", BIG), "w0")


def test_removed_partition_field_is_null_everywhere() -> None:
    removed = PartitionField(99, 1000, "gone", VOID)
    both = PartitionSpec(0, (removed, PartitionField(2, 1001, "region", IDENTITY)))
    files = write(MemoryFileIO(), WriteSpec(SCHEMA, both, "memory:/d", "zstd", BIG), rows("eu", "us"))
    assert sorted(f.partition for f in files) == [(None, "eu"), (None, "us")]
    alone = WriteSpec(SCHEMA, PartitionSpec(0, (removed,)), "memory:/d", "zstd", BIG)
    assert [f.partition for f in write(MemoryFileIO(), alone, rows("eu", "us"))] == [(None,)]


def test_unknown_transform_refuses_to_write() -> None:
    unknown = PartitionSpec(0, (PartitionField(1, 1000, "z", UnknownTransform("zorder")),))
    with pytest.raises(InvalidInputError, match="found `zorder`"):
        write(MemoryFileIO(), WriteSpec(SCHEMA, unknown, "memory:/d", "zstd", BIG), rows("eu"))


def test_zeros_of_both_signs_are_in_files_of_their_own_and_nan_in_one() -> None:
    schema = Schema(fields=(NestedField(1, "d", False, DOUBLE),))
    table = pa.table({"d": [0.0, -0.0, float("nan")]})
    files = write(MemoryFileIO(), spec("d", schema=schema), table, table.slice(1))
    assert sorted((str(f.partition[0]), f.record_count) for f in files) == [("-0.0", 2), ("0.0", 1), ("nan", 2)]


def test_nan_is_a_partition_of_its_own() -> None:
    schema = Schema(fields=(NestedField(1, "d", False, DOUBLE),))
    table = pa.table({"d": [float("nan"), 1.0, float("nan"), None]})
    files = write(MemoryFileIO(), spec("d", schema=schema), table)
    assert sorted((str(f.partition[0]), f.record_count) for f in files) == [("1.0", 1), ("None", 1), ("nan", 2)]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "brotli", "lz4", "none"])
def test_codec_is_used(codec: str) -> None:
    io = MemoryFileIO()
    (file,) = write(io, msgspec.structs.replace(spec(), compression=codec), rows("eu"))
    found = parquet(io, file).metadata.row_group(0).column(0).compression
    assert found.lower() == {"none": "uncompressed"}.get(codec, codec)
