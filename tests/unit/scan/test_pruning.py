"""Manifests and files that a filter leaves over."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.scan.manifest_cache import forget_files

EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("region", pa.string()),
        ("price", pa.decimal128(9, 2)),
        ("score", pa.float64()),
    ]
)


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
