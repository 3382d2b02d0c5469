"""How much a writer holds, as Arrow's memory pool counts it."""

import random
from pathlib import Path

import pyarrow as pa

from bergline.datafiles.write.write_spec import ParquetOptions, WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, NestedField
from bergline.io.local import LocalFileIO

SCHEMA = Schema(fields=(NestedField(1, "part", False, INT), NestedField(2, "value", False, LONG)))
BY_PART = PartitionSpec(0, (PartitionField(1, 1000, "part", IDENTITY),))
ROW_GROUP = 128 * 1024
OPTIONS = ParquetOptions(None, ROW_GROUP, page_bytes=1024, dictionary_bytes=1024)
"""With small pages: Arrow keeps some of one column until the next row group."""


def spec(directory: Path, partitions: PartitionSpec) -> WriteSpec:
    return WriteSpec(SCHEMA, partitions, str(directory), "zstd", 2**40, OPTIONS)


def batch(parts: int, rows: int, seed: int) -> pa.Table:
    """Rows that do not compress, of all partitions in turn."""
    source = random.Random(seed)  # noqa: S311
    values = [source.getrandbits(63) for _ in range(rows)]
    return pa.table({"part": pa.array([n % parts for n in range(rows)], pa.int32()), "value": values})


def held(before: int) -> int:
    return pa.total_allocated_bytes() - before


def test_fanned_out_writer_holds_a_row_group_for_each_open_file(tmp_path: Path) -> None:
    parts, rows = 8, 10_000
    before, written, most = pa.total_allocated_bytes(), 0, 0
    with DataFileWriter(LocalFileIO(), spec(tmp_path, BY_PART), "w") as writer:
        for seed in range(40):
            some = batch(parts, rows, seed)
            written += some.nbytes
            writer.write(some)
            del some
            most = max(most, held(before))
        files = writer.finish()
    assert (len(files), sum(f.record_count for f in files)) == (parts, 40 * rows)
    assert most < 1.3 * parts * ROW_GROUP < written / 3
    assert held(before) < ROW_GROUP


def test_rest_of_a_large_batch_does_not_keep_the_batch(tmp_path: Path) -> None:
    before = pa.total_allocated_bytes()
    with DataFileWriter(LocalFileIO(), spec(tmp_path, PartitionSpec(0, ())), "w") as writer:
        some = batch(1, 100_000, 1)
        size = some.nbytes
        writer.write(some)
        del some
        assert held(before) < 1.3 * ROW_GROUP < size / 6
        (file,) = writer.finish()
    assert file.record_count == 100_000
