"""Rows in Parquet, CSV and JSON-lines files, as streams."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from bergline.cli.line_numbers import line_of_error, line_of_open_quote
from bergline.errors import InvalidInputError, NotFoundError


class FileFormat(Enum):
    """A format of files with rows."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


_SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
}

_ROW = re.compile(r" in row \d+$")  # the number of a block of the file, from 0
_BLOCK_BYTES = 8 * 1024 * 1024
"""How much is read at once, and from how much types are inferred."""


def file_format(file: Path, given: FileFormat | None = None) -> FileFormat:
    """The given format of a file, or the one of its suffix."""
    found = given or _SUFFIXES.get(file.suffix.lower())
    if found is None:
        raise InvalidInputError(
            f"expected a file with one of {', '.join(_SUFFIXES)}, found `{file}`", hints=["--format says what it is"]
        )
    return found


def schema_of_files(files: Sequence[Path], given: FileFormat | None) -> pa.Schema:
    """The columns of files, each from the first file that has it; CSV and JSON by their first megabytes."""
    schemas = []
    for file in files:
        with _open(file, file_format(file, given), None) as reader:
            schemas.append(reader.schema.remove_metadata())
    try:
        found = pa.unify_schemas(schemas)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInputError(f"cannot create one table of these files: {_reason(error)}") from error
    empty = [field.name for field in found if pa.types.is_null(field.type)]
    # a column without values may be anything: text fits everything
    fields = [pa.field(f.name, pa.string()) if f.name in empty else f for f in found]
    return pa.schema([field.with_metadata(None) for field in fields])


def rows_of_files(files: Sequence[Path], given: FileFormat | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of files, one after the other; texts are read as the types of a schema."""
    for file in files:
        form = file_format(file, given)
        with _open(file, form, schema) as reader:
            rows = 0
            while (batch := _next_batch(reader, file, form, rows)) is not None:
                rows += batch.num_rows
                yield batch


def _open(file: Path, form: FileFormat, schema: pa.Schema | None) -> Any:
    if file.exists() and not file.is_file():
        kind = "a directory" if file.is_dir() else "a pipe or device, which cannot be read twice"
        raise InvalidInputError(f"expected a file, found {kind} at `{file}`")
    if not file.is_file():
        near = [str(other) for other in file.parent.glob("*")] if file.parent.is_dir() else []
        raise NotFoundError(f"no file `{file}`", kind="file", name=str(file), known=near)
    try:
        match form:
            case FileFormat.PARQUET:
                return _ParquetRows(file)
            case FileFormat.CSV:
                _check_quotes(file)
                return pa_csv.open_csv(
                    file,
                    read_options=pa_csv.ReadOptions(block_size=_BLOCK_BYTES),
                    parse_options=pa_csv.ParseOptions(newlines_in_values=True),
                    convert_options=_csv_options(schema),
                )
            case FileFormat.JSONL:
                return pa_json.open_json(
                    file,
                    read_options=pa_json.ReadOptions(block_size=_BLOCK_BYTES),
                    parse_options=_json_options(schema),
                )
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, form, error) from error


class _ParquetRows:
    """A Parquet file with the methods of Arrow's other readers."""

    def __init__(self, file: Path) -> None:
        self._file = pq.ParquetFile(file)
        self._batches = self._file.iter_batches()
        self.schema = self._file.schema_arrow

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def read_next_batch(self) -> pa.RecordBatch:
        return next(self._batches)


def _next_batch(reader: Any, file: Path, form: FileFormat, rows_before: int) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, form, error, rows_before) from error


def _check_quotes(file: Path) -> None:
    line = line_of_open_quote(file)
    if line is not None:
        raise InvalidInputError(
            f"cannot read `{file}` as csv: expected a closing quote, found the end of the file at line {line}",
            hints=["a quote in a value is written twice, in quotes"],
        )


def _csv_options(schema: pa.Schema | None) -> pa_csv.ConvertOptions:
    options = pa_csv.ConvertOptions(
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
        true_values=["true", "TRUE", "True"],
        false_values=["false", "FALSE", "False"],
    )
    if schema is not None:
        options.column_types = {f.name: f.type for f in schema if _is_csv_type(f.type)}
    return options


def _is_csv_type(kind: pa.DataType) -> bool:
    return not (
        pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or pa.types.is_fixed_size_binary(kind)
    )


def _json_options(schema: pa.Schema | None) -> pa_json.ParseOptions:
    if schema is None:
        return pa_json.ParseOptions()
    # columns that the table lacks are kept, so that the write refuses them
    return pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")


def _unreadable(file: Path, form: FileFormat, error: Exception, rows_before: int = 0) -> InvalidInputError:
    line = line_of_error(file, str(error), rows_before) if isinstance(error, pa.ArrowInvalid) else None
    reason = _ROW.sub("", _reason(error)).rstrip(".") if line else _reason(error)
    return InvalidInputError(f"cannot read `{file}` as {form.value}: {reason}{f' at line {line}' if line else ''}")


def _reason(error: Exception) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split())
