"""Rows in the formats of `bergline read`, written while they are read; only the table format keeps them for layout."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bergline.cli.output.csv import csv_line
from bergline.cli.output.rows import print_table
from bergline.errors import AlreadyExistsError, InvalidInputError, StorageError


class RowFormat(Enum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def write_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch], form: RowFormat, output: Path | None) -> int:
    """Write rows to a file or to stdout, and return how many; the file appears only when it is complete."""
    if form is RowFormat.TABLE:
        if output is not None:
            raise InvalidInputError("expected --format csv, jsonl or parquet with --output, found table")
        return _print_table(schema, batches)
    if form is RowFormat.PARQUET and output is None:
        raise InvalidInputError("expected --output with --format parquet, found none")
    with _sink(output) as sink:
        if form is RowFormat.PARQUET:
            return _write_parquet(sink, schema, batches)
        if form is RowFormat.CSV:
            sink.write(f"{csv_line(schema.names)}\n".encode())
        return _write_lines(sink, batches, _csv_lines if form is RowFormat.CSV else _json_lines)


class FirstRows:
    """The first rows of many; no more batches are requested than needed."""

    def __init__(self, batches: Iterable[pa.RecordBatch], limit: int, *, look_further: bool = False) -> None:
        """`look_further` finds out whether there are more rows, which may take another batch."""
        self._batches = iter(batches)
        self._limit = limit
        self._look_further = look_further
        self.has_more = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        left = self._limit
        while left and (batch := next(self._batches, None)) is not None:
            yield batch.slice(0, left)
            self.has_more = batch.num_rows > left
            left -= min(left, batch.num_rows)
        if self._look_further and not self.has_more:
            self.has_more = any(batch.num_rows for batch in self._batches)


def texts(column: pa.Array) -> list[str | None]:
    """Values as text: bytes in hexadecimal, nested values as JSON."""
    if isinstance(column.type, pa.UuidType):
        return [None if v is None else str(v) for v in column.to_pylist()]
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_nested(kind):
        return [None if v is None else msgspec.json.encode(_plain(v)).decode() for v in column.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if v is None else v.hex() for v in column.to_pylist()]
    return pc.cast(column, pa.string()).to_pylist()  # type: ignore[no-any-return]


@contextlib.contextmanager
def _sink(output: Path | None) -> Iterator[_Sink]:
    """The stream for the bytes; a new file gets its name only when it is complete."""
    if output is None:
        yield _StdoutBytes()
        sys.stdout.flush()
        return
    if output.exists():
        raise AlreadyExistsError(f"file `{output}` exists already", kind="file", name=str(output))
    part = output.with_name(f".{output.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        _give_name(part, output)
    except FileExistsError as error:
        raise AlreadyExistsError(f"file `{output}` exists already", kind="file", name=str(output)) from error
    except OSError as error:
        raise StorageError(f"cannot write `{output}`: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def _give_name(part: Path, output: Path) -> None:
    """Give a file its name unless it has been taken meanwhile; without hard links, the file is moved there."""
    try:
        os.link(part, output)
    except FileExistsError:
        raise
    except OSError:
        part.rename(output)


class _StdoutBytes:
    """Stdout for UTF-8 bytes, even if it takes only text."""

    def write(self, data: bytes) -> int:
        return sys.stdout.write(data.decode())


def _print_table(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """A table on the screen; rows that were read before a failure are shown."""
    rows: list[list[str]] = []
    try:
        for batch in batches:
            columns = [texts(column) for column in batch.columns]
            rows += [["NULL" if v is None else v for v in row] for row in zip(*columns, strict=True)]
    finally:
        right = [i for i, field in enumerate(schema) if _is_number(field.type)]
        print_table(schema.names, rows, right)
    return len(rows)


def _write_lines(sink: _Sink, batches: Iterable[pa.RecordBatch], render: Any) -> int:
    count = 0
    for batch in batches:
        sink.write("".join(f"{line}\n" for line in render(batch)).encode())
        count += batch.num_rows
    return count


def _csv_lines(batch: pa.RecordBatch) -> Iterator[str]:
    return map(csv_line, zip(*(texts(column) for column in batch.columns), strict=True))


def _json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    columns = [_json_values(column) for column in batch.columns]
    names = batch.schema.names
    for row in zip(*columns, strict=True):
        yield msgspec.json.encode(dict(zip(names, row, strict=True))).decode()


def _json_values(column: pa.Array) -> list[Any]:
    if isinstance(column.type, pa.UuidType):
        return texts(column)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return texts(column)
    return [_plain(value) for value in column.to_pylist()]


def _plain(value: Any) -> Any:
    """A value as JSON: bytes in hexadecimal, maps as pairs."""
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return value


def _write_parquet(sink: _Sink, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    count = 0
    with pq.ParquetWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
