"""Opening Parquet files and reading them by row group; FormatError names a malformed file."""

import contextlib
import io as python_io
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bergline.errors import BerglineError, FormatError, UnsupportedError
from bergline.io.fileio import FileIO

_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 64 * 1024 * 1024
_MAX_SCHEMA_TEXT = 64 * 1024 * 1024
# what Arrow raises on malformed files
_DAMAGE = (pa.ArrowException, OSError, UnicodeError, OverflowError, MemoryError)


@contextlib.contextmanager
def open_parquet(io: FileIO, path: str) -> Iterator[pq.ParquetFile]:
    """Open a file for the duration of the context."""
    with open_with_stream(io, path) as (file, _):
        yield file


@contextlib.contextmanager
def open_with_stream(io: FileIO, path: str) -> Iterator[tuple[pq.ParquetFile, BinaryIO]]:
    """Open a file and its stream for the duration of the context."""
    with format_errors(path), io.open_input(path) as stream, arrow_input(stream) as source, _opened(source) as file:
        _check_rows(file.metadata)
        yield file, stream


@contextlib.contextmanager
def arrow_input(stream: BinaryIO) -> Iterator[BinaryIO | pa.NativeFile]:
    """What to give to Arrow to read an open stream: it opens a local file once more by itself.

    Arrow's threads may still read when the process ends, and would abort it if they called into Python then.
    """
    opened = None
    if isinstance(stream, python_io.BufferedReader) and isinstance(stream.name, str):
        # the file may have been renamed since: only the stream still reads it
        with contextlib.suppress(OSError, UnicodeError):
            opened = pa.OSFile(stream.name)
    if opened is None:
        yield stream
        return
    with opened:
        yield opened


def row_group_batches(
    file: pq.ParquetFile, columns: Sequence[str], groups: Sequence[int] | None = None, most_rows: int | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of bounded size with the position of their first row; of some row groups, or of all.

    The size is bounded by what the footer says. Repeated values take less in the file than in memory, which
    `most_rows` is for.
    """
    footer = file.metadata
    chosen = set(range(footer.num_row_groups) if groups is None else groups)
    start = 0
    for group in range(footer.num_row_groups):
        rows = footer.row_group(group).num_rows
        if group in chosen:
            yield from _batches(file, group, columns, start, most_rows or _BATCH_ROWS)
        start += rows


def _opened(source: BinaryIO | pa.NativeFile) -> pq.ParquetFile:
    # INT96 in nanoseconds would overflow in the year 2262
    return pq.ParquetFile(
        source,
        coerce_int96_timestamp_unit="us",
        thrift_string_size_limit=_MAX_SCHEMA_TEXT,
        page_checksum_verification=True,
    )


def _batches(
    file: pq.ParquetFile, group: int, columns: Sequence[str], start: int, most_rows: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    described = file.metadata.row_group(group)
    row_bytes = max(1, described.total_byte_size // max(1, described.num_rows))
    size = max(1, min(most_rows, _BATCH_ROWS, _BATCH_BYTES // row_bytes))
    found = 0
    for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=list(columns)):
        yield start + found, batch
        found += batch.num_rows
    if found != described.num_rows:
        raise FormatError(f"expected {described.num_rows} rows in row group {group}, found {found}")


def _check_rows(footer: pq.FileMetaData) -> None:
    counts = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != footer.num_rows:
        raise FormatError(f"expected {footer.num_rows} rows, found row groups with {sum(counts)}")


@contextlib.contextmanager
def format_errors(path: str, kind: str = "a Parquet") -> Iterator[None]:
    """Name the file in errors, and raise FormatError for what Arrow raises."""
    try:
        yield
    except (FormatError, UnsupportedError) as error:
        if path in str(error):
            raise
        raise type(error)(f"{error} in {path}", hints=error.hints) from error
    except BerglineError:
        raise
    except _DAMAGE as error:
        raise FormatError(f"expected {kind} file, found {error or type(error).__name__} in {path}") from error
