"""Rows in the formats of `bergline read`."""

import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bergline.cli.output.row_writer import FirstRows, RowFormat, texts, write_rows
from bergline.errors import StorageError

BATCHES = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3]})]


def watched(asked: list[int]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(BATCHES):
        asked.append(number)
        yield batch


@pytest.mark.parametrize(
    ("limit", "rows", "batches", "has_more"),
    [(0, [], 0, False), (1, [1], 1, True), (2, [1, 2], 1, False), (3, [1, 2, 3], 2, False), (9, [1, 2, 3], 2, False)],
)
def test_no_more_batches_are_read_than_the_first_rows_take(
    limit: int, rows: list[int], batches: int, has_more: bool
) -> None:
    asked: list[int] = []
    first = FirstRows(watched(asked), limit)
    assert [value for batch in first for value in batch["a"].to_pylist()] == rows
    assert (len(asked), first.has_more) == (batches, has_more)


def test_looking_further_finds_out_whether_there_are_more() -> None:
    for limit, has_more in ((2, True), (3, False)):
        first = FirstRows(iter(BATCHES), limit, look_further=True)
        assert sum(batch.num_rows for batch in first) == limit
        assert first.has_more is has_more


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (pa.array([uuid.UUID(int=7).bytes, None], pa.uuid()), ["00000000-0000-0000-0000-000000000007", None]),
        (pa.array([b"\x01\xff"], pa.binary(2)), ["01ff"]),
        (pa.array([1_000_000_001], pa.timestamp("ns")), ["1970-01-01 00:00:01.000000001"]),
        (pa.array([dt.date(2026, 1, 31)]), ["2026-01-31"]),
        (pa.array([[("k", b"\x01")]], pa.map_(pa.string(), pa.binary())), ['[["k","01"]]']),
        (pa.array([{"a": None, "b": dt.date(2026, 1, 31)}]), ['{"a":null,"b":"2026-01-31"}']),
    ],
)
def test_values_are_texts(column: pa.Array, shown: list[str | None]) -> None:
    assert texts(column) == shown


@pytest.mark.parametrize("form", [RowFormat.CSV, RowFormat.JSONL, RowFormat.PARQUET])
def test_file_is_there_only_when_it_is_whole(tmp_path: Path, form: RowFormat) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield BATCHES[0]
        raise StorageError("gone")

    schema = BATCHES[0].schema
    with pytest.raises(StorageError, match="gone"):
        write_rows(schema, failing(), form, tmp_path / "rows")
    assert list(tmp_path.iterdir()) == []
    assert write_rows(schema, BATCHES, form, tmp_path / "rows") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
