"""The first rows of one state of a table, as JSON: computed from plain values, so also in another process.

A small file may hold rows that take any amount of memory, so rows that others wrote are read in a process that may be
killed. The result is bounded in rows and bytes.
"""

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterator
from typing import Any, Self

import msgspec
import pyarrow as pa

from bergline.datafiles.read.reader import read_batches
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.scans.scan import TableScan, expiry_told
from bergline.table.scans.version import ReadVersion

MOST_BYTES = 4 * 1024 * 1024
"""The most bytes in the JSON of all rows of a preview."""
_BATCH_ROWS = 64
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 1000, 100, 8
_SAFE = 2**53


class PreviewJob(msgspec.Struct, frozen=True):
    """The input of a preview."""

    io: FileIO
    metadata: TableMetadata
    """Contains only the snapshot of the preview."""
    version: ReadVersion
    row_filter: str
    """As typed by the user; empty for all rows."""
    limit: int

    def reading(self, io: FileIO) -> Self:
        """See `RowJob`."""
        return msgspec.structs.replace(self, io=io)

    def found_type(self) -> type["RowPreview"]:
        """See `RowJob`."""
        return RowPreview

    def run(self, check: Callable[[], None]) -> "RowPreview":
        """See `preview_rows`."""
        return preview_rows(self, check)


class RowPreview(msgspec.Struct, frozen=True):
    """Some rows, and whether that is all of them."""

    files: int
    """How many files may hold matching rows."""
    rows: list[list[Any]]
    more: bool
    """Whether there are more rows than requested."""
    is_cut: bool = False
    """Whether rows are missing because they would have taken too many bytes."""


def preview_job(scan: TableScan, row_filter: str, limit: int) -> PreviewJob:
    """A job with as much of the table as it needs."""
    used = msgspec.structs.replace(
        scan.metadata,
        current_snapshot_id=None,
        refs={},
        snapshots=() if scan.snapshot_id is None else (scan.metadata.snapshot(scan.snapshot_id),),
        statistics=(),
        partition_statistics=(),
        snapshot_log=(),
        metadata_log=(),
    )
    return PreviewJob(scan.io, used, scan.version, row_filter, limit)


def preview_rows(job: PreviewJob, check: Callable[[], None] = lambda: None) -> RowPreview:
    """The first rows; `check` is called between rows, and may raise.

    InvalidInputError or NotFoundError for a filter that does not fit the table, errors of ours for files that cannot
    be read.
    """
    scan = TableScan(job.io, job.metadata, job.version, job.row_filter or None, None)
    plan = scan.plan()
    is_filtered = scan.row_filter != ALWAYS_TRUE
    rows: list[list[Any]] = []
    size = 0
    with expiry_told(scan):
        # a filter may match one row in millions: then use batches as large as the file allows
        for batch in read_batches(job.io, plan, most_rows=None if is_filtered else _BATCH_ROWS):
            for row in _rows(batch):
                check()
                if len(rows) == job.limit:
                    return RowPreview(len(plan.files), rows, more=True)
                size += len(msgspec.json.encode(row))
                if size > MOST_BYTES:
                    return RowPreview(len(plan.files), rows, more=True, is_cut=True)
                rows.append(row)
    return RowPreview(len(plan.files), rows, more=False)


def _rows(batch: pa.RecordBatch) -> Iterator[list[Any]]:
    """One row after the other: a batch takes even more memory as Python values."""
    for number in range(batch.num_rows):
        yield [cell(_value(column, number)) for column in batch.columns]


def _value(column: pa.Array, number: int) -> Any:
    """A Python value, or its text if Python has no such value."""
    value = column[number]
    try:
        return value.as_py()
    except (ValueError, OverflowError, ImportError, pa.ArrowException):
        return str(value)


def cell(value: Any, depth: int = 0) -> Any:
    """A value as JSON: large numbers, and types that JSON lacks, as text; long texts are cut."""
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < _SAFE else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _cut(value)
        case bytes():
            return _cut(value[:_LONGEST_TEXT].hex())
        case decimal.Decimal():
            return str(value)
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case _ if depth >= _DEEPEST:
            return "…"
        case dict():
            return {str(k): cell(v, depth + 1) for k, v in list(value.items())[:_MOST_ITEMS]}
        case list() | tuple():
            return [cell(v, depth + 1) for v in value[:_MOST_ITEMS]] + (["…"] if len(value) > _MOST_ITEMS else [])
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"
