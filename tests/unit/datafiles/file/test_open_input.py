"""Parquet files opened for reading."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.file.open_input import arrow_input, open_parquet, row_group_batches
from bergline.errors import FormatError, NotFoundError, RefusedError
from bergline.io.fenced import FencedFileIO
from bergline.io.local import LocalFileIO
from bergline.io.memory import MemoryFileIO

PATH = "memory:/f.parquet"


def stored(table: pa.Table, **options: Any) -> MemoryFileIO:
    out, files = io.BytesIO(), MemoryFileIO()
    pq.write_table(table, out, **options)
    files.create(PATH, out.getvalue())
    return files


@pytest.mark.parametrize(
    ("groups", "expected"),
    [(None, [(0, [0, 1, 2]), (3, [3, 4, 5]), (6, [6])]), ([2, 0], [(0, [0, 1, 2]), (6, [6])]), ([], [])],
)
def test_batches_come_with_their_positions(groups: list[int] | None, expected: list[tuple[int, list[int]]]) -> None:
    with open_parquet(stored(pa.table({"a": range(7)}), row_group_size=3), PATH) as file:
        found = [(first, batch.column("a").to_pylist()) for first, batch in row_group_batches(file, ["a"], groups)]
    assert found == expected


def test_rows_are_counted_where_no_column_is_asked_for() -> None:
    with open_parquet(stored(pa.table({"a": range(7)}), row_group_size=3), PATH) as file:
        assert [(first, batch.num_rows) for first, batch in row_group_batches(file, [])] == [(0, 3), (3, 3), (6, 1)]


@pytest.mark.long
def test_long_rows_come_in_short_batches() -> None:
    table = pa.table({"a": [f"{n:08d}" * 2**17 for n in range(200)]})
    with open_parquet(stored(table, use_dictionary=False, compression="zstd"), PATH) as file:
        sizes = [batch.num_rows for _, batch in row_group_batches(file, ["a"])]
    assert sum(sizes) == 200
    assert max(sizes) <= 64


def test_repeated_values_come_in_batches_as_short_as_they_are_asked_for() -> None:
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 150, pa.int32()), pa.array(["a" * 1000]))
    with open_parquet(stored(pa.table({"a": repeated.cast(pa.string())})), PATH) as file:
        found = [(first, batch.num_rows) for first, batch in row_group_batches(file, ["a"], most_rows=64)]
    assert found == [(0, 64), (64, 64), (128, 22)]


def test_old_timestamps_of_any_year_are_whole() -> None:
    far = pa.array([4_000_000_000 * 10**6], pa.timestamp("us"))
    with open_parquet(stored(pa.table({"a": far}), use_deprecated_int96_timestamps=True), PATH) as file:
        ((_, batch),) = row_group_batches(file, ["a"])
    assert batch.column("a").cast(pa.int64()).to_pylist() == [4_000_000_000 * 10**6]


def test_every_error_names_the_file() -> None:
    files = MemoryFileIO()
    files.create(PATH, b"PAR1")
    with pytest.raises(FormatError, match=f"expected a Parquet file, found .* in {PATH}"), open_parquet(files, PATH):
        pass
    with pytest.raises(FormatError, match=f"^odd in {PATH}$"), open_parquet(stored(pa.table({"a": [1]})), PATH):
        raise FormatError("odd")
    with pytest.raises(NotFoundError, match="memory:/none"), open_parquet(files, "memory:/none"):
        pass


def test_damaged_page_is_found_by_its_checksum() -> None:
    files = stored(pa.table({"c": pa.array(range(1000))}), write_page_checksum=True, compression="none")
    data = bytearray(files.read(PATH))
    data[500] ^= 1
    damaged = MemoryFileIO()
    damaged.create(PATH, bytes(data))
    with pytest.raises(FormatError, match=f"CRC.* in {PATH}"), open_parquet(damaged, PATH) as file:
        for _ in row_group_batches(file, ["c"]):
            pass


def test_arrow_opens_local_files_itself(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a file.parquet")
    files = FencedFileIO(LocalFileIO(), [f"file://{tmp_path}"])
    with files.open_input(f"file://{tmp_path}/a file.parquet") as stream, arrow_input(stream) as source:
        assert isinstance(source, pa.OSFile)
        assert pq.read_table(source).num_rows == 2
    assert source.closed
    with pytest.raises(RefusedError), open_parquet(files, "file:///etc/passwd"):
        pass
    with pytest.raises(NotFoundError), open_parquet(files, f"file://{tmp_path}/none.parquet"):
        pass


def test_a_file_that_lost_its_name_is_read_by_its_stream(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    with LocalFileIO().open_input(f"file://{path}") as stream:
        path.unlink()
        with arrow_input(stream) as source:
            assert pq.read_table(source).num_rows == 2
