"""What footers say of the files that Spark's own writer wrote."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.write.metrics_mode import NONE, MetricsModes
from bergline.datafiles.write.write_spec import WriteSpec, write_spec
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, NestedField
from bergline.io.local import LocalFileIO
from bergline.io.memory import MemoryFileIO
from bergline.spark.writes.footers import stored_files


@pytest.fixture
def spec(metadata: TableMetadata) -> WriteSpec:
    """Of a table with a required `id` and a `region`."""
    fields = (NestedField(1, "id", True, LONG), NestedField(2, "region", False, STRING))
    return msgspec.structs.replace(write_spec(metadata), schema=Schema(fields=fields))


def rows(*ids: int | None) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "region": ["eu"] * len(ids)})


def test_files_are_described_in_order_wherever_they_are(spec: WriteSpec, tmp_path: Path) -> None:
    io, places = MemoryFileIO(), []
    for ids in ((1, 2, 3), (), (7,)):
        local = tmp_path / f"{len(places)}.parquet"
        pq.write_table(rows(*ids), local)
        io.create(f"memory:/data/{local.name}", local.read_bytes())
        places.append((local, local.stat().st_size))
    objects = stored_files(io, spec, [(f"memory:/data/{path.name}", size) for path, size in places])
    local_files = stored_files(LocalFileIO(), spec, [(f"file://{path}", size) for path, size in places])
    assert [each.file.record_count for each in objects] == [3, 0, 1]
    assert [each.file.file_size_in_bytes for each in objects] == [size for _, size in places]
    assert [(each.file.lower_bounds or {}).get(1) for each in objects][::2] == [
        (number).to_bytes(8, "little") for number in (1, 7)
    ]
    for ours, other in zip(objects, local_files, strict=True):
        assert msgspec.structs.replace(ours.file, file_path=other.file.file_path) == other.file


def test_nulls_of_required_columns_are_counted_without_metrics_too(spec: WriteSpec, tmp_path: Path) -> None:
    path = tmp_path / "nulls.parquet"
    pq.write_table(rows(1, None, None), path)
    silent = msgspec.structs.replace(spec, metrics=MetricsModes(NONE))
    for each in (spec, silent):
        (stored,) = stored_files(LocalFileIO(), each, [(f"file://{path}", path.stat().st_size)])
        assert stored.nulls == {"id": 2}
    assert not stored.file.null_value_counts
