"""Manifests and files that a filter leaves over."""

import datetime as dt
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import FormatError
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import LONG
from bergline.scan.manifest_cache import forget_files
from bergline.scan.pruning import column_metrics, values_of

EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("region", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("score", pa.float64()),
    ]
)
PAIRS = pl.List(pl.Struct({"key": pl.Int32, "value": pl.Int64}))


def events(day: int, region: str | None, score: float | None = 1.0) -> pa.Table:
    at = dt.datetime(2026, 1, day, 12, tzinfo=dt.UTC)
    return pa.table([[day], [at], [region], [pa.scalar(day, pa.decimal128(9, 2))], [score]], schema=EVENTS)


@pytest.fixture
def table(lake: Lake) -> Table:
    """One file a day, one manifest each, partitioned by day, region, a bucket of id, and a truncated price."""
    terms = ["day(at)", "region", "bucket(8, id)", "truncate(10, price)"]
    table = lake.create_table("db.events", EVENTS, partition_by=terms)
    for day, region in ((1, "eu"), (2, "us"), (3, None), (25, "eu")):
        table.append(events(day, region))
    return table


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("at < TIMESTAMP '2026-01-02 00:00:00+00:00'", [1]),
        ("at >= TIMESTAMP '2026-01-03 00:00:00+00:00'", [3, 25]),
        ("region = 'eu'", [1, 25]),
        ("region IS NULL", [3]),
        ("region IS NOT NULL AND id > 1", [2, 25]),
        ("id = 25", [25]),
        ("id IN (1, 2)", [1, 2]),
        ("price > 15.5", [25]),
        ("price < 2", [1]),
        ("region = 'nowhere'", []),
        ("NOT (region = 'eu')", [2]),
    ],
)
def test_only_files_that_may_match_are_planned(table: Table, text: str, days: list[int]) -> None:
    found = table.scan(text).plan().files
    paths = [f.file.file_path for f in table.scan().plan().files]
    expected = {paths[{25: 0, 3: 1, 2: 2, 1: 3}[day]] for day in days}
    assert {f.file.file_path for f in found} == expected


def test_manifests_that_cannot_match_are_not_read(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_files()
    read: list[str] = []
    original = table.io.read

    def spy(location: str, most: int | None = None) -> bytes:
        read.append(location)
        return original(location, most)

    monkeypatch.setattr(table.io, "read", spy)
    assert len(table.scan("at >= TIMESTAMP '2026-01-03 00:00:00+00:00'").plan().files) == 2
    assert len(read) == 3  # the list and two manifests


def test_manifests_are_decoded_once(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    first: Any = table.scan("id > 0").plan().files
    read: list[str] = []
    original = table.io.read
    monkeypatch.setattr(table.io, "read", lambda location, *most: (read.append(location), original(location, *most))[1])
    assert table.scan("id > 0").plan().files == first
    assert [path for path in read if not path.rsplit("/", 1)[-1].startswith("snap-")] == []


def test_column_that_is_no_partition_source_is_pruned_by_its_metrics(table: Table) -> None:
    assert len(table.scan("score > 0").plan().files) == 4
    assert len(table.scan("score > 1").plan().files) == 0


def maps(*values: dict[int, int] | None) -> pl.Series:
    pairs = [None if v is None else [{"key": k, "value": n} for k, n in v.items()] for v in values]
    return pl.Series(pairs, dtype=PAIRS)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (maps({1: 10, 2: 20}, {1: 11, 2: 21}), [20, 21]),
        (maps({2: 20, 1: 10}, {1: 11, 2: 21}), [20, 21]),
        (maps(None, {}, {1: 11, 2: 21}, {1: 5}), [None, None, 21, None]),
        (maps({1: 1}, {2: 2, 1: 1}), [None, 2]),
        (maps({1: 1, 2: 2}, {2: 3}), [2, 3]),
        (maps(None, None), [None, None]),
        (maps({}, {}), [None, None]),
        (maps(), []),
    ],
)
def test_value_of_a_key_is_found_wherever_it_stands(column: pl.Series, expected: list[int | None]) -> None:
    assert values_of(column, 2).to_list() == expected


def test_first_pair_counts_where_a_key_stands_twice() -> None:
    column = pl.Series([[{"key": 1, "value": 1}], [{"key": 2, "value": 5}, {"key": 2, "value": 6}]], dtype=PAIRS)
    assert values_of(column, 2).to_list() == [None, 5]


def files(*bounds: bytes | None) -> pl.DataFrame:
    bound_type = pl.List(pl.Struct({"key": pl.Int32, "value": pl.Binary}))
    counts = maps(*({1: 3} for _ in bounds))
    return pl.DataFrame(
        {
            "file_path": [f"memory:/{n}" for n in range(len(bounds))],
            "lower_bounds": pl.Series([[{"key": 1, "value": b}] for b in bounds], dtype=bound_type),
            "upper_bounds": pl.Series([None for _ in bounds], dtype=bound_type),
            "null_value_counts": counts,
            "value_counts": counts,
            "nan_value_counts": maps(*(None for _ in bounds)),
        }
    )


def test_metrics_are_null_where_entries_say_nothing() -> None:
    found = column_metrics(files(encode_value(LONG, 5), None), 1, LONG)
    assert (found.lower.to_list(), found.upper.to_list()) == ([5, None], [None, None])
    assert (found.null_count.to_list(), found.nan_count.to_list()) == ([3, 3], [None, None])


def test_bound_that_is_no_value_is_refused_with_its_file() -> None:
    with pytest.raises(FormatError, match="`lower_bounds` of column 1 for memory:/1"):
        column_metrics(files(encode_value(LONG, 5), b"123"), 1, LONG)
