"""The first rows of a table, in bounds that hold for whatever its files hold."""

import datetime as dt
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table, connect
from bergline.reports import row_preview
from bergline.reports.row_preview import cell, preview_job, preview_rows

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with connect(f"sqlite:///{tmp_path}/lake/catalog.db", create=True) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def table(lake: Lake) -> Table:
    """200 rows in each of two files."""
    table = lake.create_table("db.t", SCHEMA)
    for _ in range(2):
        table.append(pa.table({"id": range(200), "text": ["x" * 2000] * 200}, schema=SCHEMA))
    return table


def test_rows_are_read_no_further_than_they_are_asked_for(table: Table) -> None:
    found = preview_rows(preview_job(table.scan(), "", 3))
    assert [row[0] for row in found.rows] == [0, 1, 2]
    assert (found.files, found.more, found.is_cut) == (2, True, False)
    everything = preview_rows(preview_job(table.scan(), "", 400))
    assert (len(everything.rows), everything.more) == (400, False)
    assert [row[0] for row in preview_rows(preview_job(table.scan(), "id >= 198", 400)).rows] == [198, 199] * 2


def test_rows_end_where_they_would_take_too_many_bytes(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_preview, "MOST_BYTES", 10_500)
    found = preview_rows(preview_job(table.scan(), "", 400))
    assert (len(found.rows), found.more, found.is_cut) == (10, True, True)
    assert len(msgspec.json.encode(found.rows)) <= 10_500


def _take(left: list[int]) -> None:
    left.pop()


def test_reading_can_be_stopped_between_rows(table: Table) -> None:
    left = list(range(5))
    with pytest.raises(IndexError):
        preview_rows(preview_job(table.scan(), "", 400), lambda: _take(left))
    assert left == []


def test_job_has_one_snapshot_and_is_read_as_the_table_is(table: Table) -> None:
    first = table.metadata.snapshots[0].snapshot_id
    job = preview_job(table.scan(snapshot_id=first), "", 400)
    assert [s.snapshot_id for s in job.metadata.snapshots] == [first]
    assert len(preview_rows(job).rows) == 200


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**60, str(2**60)),
        (7, 7),
        (True, True),
        (float("nan"), "nan"),
        (b"\x01\xff", "01ff"),
        (decimal.Decimal("1.50"), "1.50"),
        (dt.date(2026, 1, 31), "2026-01-31"),
        ([1, None, {"a": 2**60}], [1, None, {"a": str(2**60)}]),
        ("x" * 2000, "x" * 1000 + "…"),
        (list(range(101))[:3], [0, 1, 2]),
    ],
)
def test_value_is_one_that_json_keeps(value: Any, shown: Any) -> None:
    assert cell(value) == shown


def test_deep_and_long_values_are_cut() -> None:
    deep: Any = 1
    for _ in range(50):
        deep = [deep]
    assert "…" in str(cell(deep))
    assert len(cell(list(range(1000)))) == 101
