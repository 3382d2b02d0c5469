"""Damaged Parquet files: rows or our own error, never anything else."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.datafiles.read.reader import read_plan
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import FormatError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, bind
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.spec import UNPARTITIONED
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from support.fixtures.every_type import every_type_rows, every_type_schema

SCHEMA = every_type_schema()
LOCATION = "memory:/f.parquet"


def whole_file(compression: str) -> bytes:
    io = MemoryFileIO()
    with DataFileWriter(io, WriteSpec(SCHEMA, UNPARTITIONED, "memory:/data", compression, 2**30), "w") as writer:
        writer.write(every_type_rows())
        return io.read(writer.finish()[0].file_path)


FILES = {compression: whole_file(compression) for compression in ("zstd", "none")}
FOOTER = 4 * 1024
"""Most damage goes to the footer, where it does most."""


def read(data: bytes, row_filter: Predicate = ALWAYS_TRUE) -> pa.Table:
    io = MemoryFileIO()
    io.create(LOCATION, data)
    planned = PlannedFile(DataFile(LOCATION, "PARQUET", (), 4, len(data)), 1)
    return read_plan(io, ScanPlan(1, SCHEMA, SCHEMA, row_filter, (planned,)))


# on every type whose statistics are looked at
FILTER = bind(
    parse_predicate(
        "int > 0 OR long < 5 OR string > 'a' OR date IS NULL OR timestamp > TIMESTAMP '2020-01-01 00:00:00'"
        " OR timestamptz < '2020-01-01T00:00:00+00:00'"
    ),
    SCHEMA,
)


def check(data: bytes) -> None:
    for row_filter in (ALWAYS_TRUE, FILTER):
        try:
            read(data, row_filter).validate(full=True)
        except (FormatError, UnsupportedError) as error:
            if LOCATION not in str(error):
                raise


@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.integers(1, FOOTER), st.integers(0, 255)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=2),
)
def test_changed_bytes_give_rows_or_our_error(
    compression: str, in_footer: list[tuple[int, int]], anywhere: list[tuple[int, int]]
) -> None:
    data = bytearray(FILES[compression])
    for position, byte in in_footer:
        data[-position] = byte
    for position, byte in anywhere:
        data[position % len(data)] = byte
    check(bytes(data))


@given(st.sampled_from(sorted(FILES)), st.integers(0, 2**16), st.integers(0, 40), st.binary(max_size=8))
def test_lost_and_inserted_bytes_give_rows_or_our_error(compression: str, place: int, lost: int, added: bytes) -> None:
    data = FILES[compression]
    start = place % len(data)
    check(data[:start] + added + data[start + lost :])


@given(st.binary(max_size=64))
def test_any_bytes_are_no_parquet_file(data: bytes) -> None:
    with pytest.raises(FormatError, match=LOCATION):
        read(data)
