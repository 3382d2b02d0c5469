"""One Parquet file being written."""

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.file.footer import read_footer
from bergline.datafiles.write.open_file import _HAS_BLOOM_FILTERS, OpenFile, stored_schema
from bergline.datafiles.write.write_spec import BloomFilter, ParquetOptions, WriteSpec, write_spec
from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, UNKNOWN, ListType, NestedField, StructType
from bergline.io.memory import MemoryFileIO

LOCATION = "memory:/data/one.parquet"
_ROW_GROUPS, _COLUMNS, _METADATA, _BLOOM_FILTER = 4, 1, 3, 14  # fields of Parquet's footer


@pytest.fixture
def spec(metadata: TableMetadata) -> WriteSpec:
    return write_spec(metadata)


def rows(spec: WriteSpec, count: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": n, "region": "eu"} for n in range(count)], arrow_schema(spec.schema))


def test_file_is_described_when_it_is_finished(spec: WriteSpec) -> None:
    io = MemoryFileIO()
    file = OpenFile(io, spec, ("eu",), LOCATION)
    file.write(rows(spec, 3))
    assert file.waiting_bytes > 0
    found = file.finish()
    data = io.read(LOCATION)
    assert (found.file_path, found.partition, found.record_count) == (LOCATION, ("eu",), 3)
    assert (found.file_size_in_bytes, found.spec_id) == (len(data), spec.spec.spec_id)
    assert found.split_offsets == (4,)
    assert pq.read_table(pa.BufferReader(data)).num_rows == 3


def test_flush_ends_a_row_group(spec: WriteSpec) -> None:
    io = MemoryFileIO()
    file = OpenFile(io, spec, ("eu",), LOCATION)
    for _ in range(2):
        file.write(rows(spec, 2))
        file.flush()
        assert file.waiting_bytes == 0
    file.flush()
    assert len(file.finish().split_offsets or ()) == 2


def test_columns_have_the_bloom_filters_that_are_asked_for(spec: WriteSpec) -> None:
    io = MemoryFileIO()
    options = ParquetOptions(bloom_filters=(BloomFilter(("id",), 0.01),), bloom_filter_bytes=4096)
    file = OpenFile(io, msgspec.structs.replace(spec, options=options), ("eu",), LOCATION)
    file.write(rows(spec, 3))
    file.finish()
    footer = read_footer(io.open_input(LOCATION))
    has_filter = [_BLOOM_FILTER in column[_METADATA] for column in footer[_ROW_GROUPS][0][_COLUMNS]]
    assert has_filter[:2] == [_HAS_BLOOM_FILTERS, False]
    assert len(io.read(LOCATION)) < 4096 + 2000


def test_aborted_file_is_gone(spec: WriteSpec) -> None:
    io = MemoryFileIO()
    file = OpenFile(io, spec, ("eu",), LOCATION)
    file.write(rows(spec, 2))
    file.abort()
    assert not io.exists(LOCATION)


def test_columns_of_unknown_type_are_not_stored() -> None:
    inner = StructType((NestedField(3, "x", False, LONG), NestedField(4, "y", False, UNKNOWN)))
    schema = Schema(fields=(NestedField(1, "a", False, UNKNOWN), NestedField(2, "s", False, inner)))
    assert list(stored_schema(schema).names) == ["s", "s.x"]
    plain = Schema(fields=(NestedField(1, "a", False, STRING),))
    assert stored_schema(plain) is plain


@pytest.mark.parametrize(
    "type_", [UNKNOWN, ListType(2, UNKNOWN, False), StructType((NestedField(3, "x", False, UNKNOWN),))]
)
def test_schema_with_nothing_to_store_is_refused(type_: object) -> None:
    field = msgspec.structs.replace(NestedField(1, "a", False, LONG), type=type_)
    with pytest.raises(InvalidInputError):
        stored_schema(Schema(fields=(field,)))
