"""Rows as text."""

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa
import pytest

from bergline.reports.row_sample import RowSample, sample_rows, value_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (1.5, "1.5"),
        ("<b>", "<b>"),
        (b"\x00\xff", "0x00ff"),
        (dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02 03:00:00+00:00"),
        ({"b": [1, None], "a": dt.date(2026, 1, 2)}, '{"a":"2026-01-02","b":[1,null]}'),
        ([("key", b"\x01")], '[["key","AQ=="]]'),
    ],
)
def test_values_for_people(value: object, text: str | None) -> None:
    assert value_text(value) == text


def test_long_values_are_cut_short() -> None:
    shown = value_text("x" * 5000)
    assert shown is not None
    assert (len(shown), shown[-1]) == (200, "…")


def test_no_batch_is_read_after_the_last_row_that_is_shown() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1, 2], "b": ["x", None]})
        yield pa.record_batch({"a": [3, 4], "b": ["y", "z"]})
        raise AssertionError

    assert sample_rows(batches(), ["b", "a"], 3) == RowSample(("b", "a"), (("x", "1"), (None, "2"), ("y", "3")), False)


def test_all_rows_are_a_complete_sample() -> None:
    sample = sample_rows([pa.record_batch({"a": [1, 2]})], ["a"], 2)
    assert (sample.rows, sample.is_complete) == ((("1",), ("2",)), True)


def test_times_that_python_cannot_hold_are_shown() -> None:
    nanoseconds = pa.record_batch({"at": pa.array([1], pa.timestamp("ns"))})
    assert sample_rows([nanoseconds], ["at"], 1).rows == (("1970-01-01 00:00:00.000000001",),)
