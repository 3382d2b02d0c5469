"""The line of a CSV or JSON-lines file with an error; looked up only after an error."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

_COLUMNS = re.compile(r"Expected \d+ columns, got (\d+)")
_VALUE = re.compile(r"In CSV column #(\d+): .*: invalid value '(.*)'", re.DOTALL)
_ROW = re.compile(r" in row (\d+)")
_CHUNK_BYTES = 1024 * 1024
_LONGEST_FIELD = 2**31 - 1


def line_of_error(file: Path, reason: str, rows_before: int) -> int | None:
    """The first line of the row that an error message from Arrow is about; None if that is not clear."""
    if row := _ROW.search(reason):
        return _line_of_row(file, rows_before + int(row[1]))
    if "invalid UTF8" in reason:
        with file.open("rb") as stream:
            return next((number for number, line in enumerate(stream, 1) if not _is_utf8(line)), None)
    if columns := _COLUMNS.search(reason):
        return next((line for line, row in _csv_rows(file) if row is not None and len(row) == int(columns[1])), None)
    if value := _VALUE.search(reason):
        place, text = int(value[1]), value[2]
        return next(
            (line for line, row in _csv_rows(file) if row is not None and row[place : place + 1] == [text]), None
        )
    return None


def line_of_open_quote(file: Path) -> int | None:
    """The line of a row with a quote that is never closed: Arrow takes the rest of the file for its value."""
    with file.open("rb") as stream:
        quotes = sum(chunk.count(b'"') for chunk in iter(lambda: stream.read(_CHUNK_BYTES), b""))
    if quotes % 2 == 0:
        return None
    return next((line for line, row in _csv_rows(file) if row is None), None)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _csv_rows(file: Path) -> Iterator[tuple[int, list[str] | None]]:
    """The rows with the lines on which they begin; None for one that is cut off by the end of the file."""
    csv.field_size_limit(_LONGEST_FIELD)
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
        rows = csv.reader(stream, strict=True)
        while True:
            line = rows.line_num + 1
            try:
                yield line, next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    yield line, None
                    return


def _line_of_row(file: Path, row: int) -> int | None:
    """The line of a row of JSON lines; blank lines do not count."""
    with file.open("rb") as stream:
        lines = (number for number, line in enumerate(stream, 1) if line.strip())
        return next((line for place, line in enumerate(lines) if place == row), None)
