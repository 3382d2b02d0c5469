"""A few rows as text, as pages and notebooks show them."""

import base64
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

_LONGEST = 200


class RowSample(msgspec.Struct, frozen=True):
    """The first rows; None is null, and long values are cut."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    is_complete: bool
    """Whether there are no more rows than these."""


def sample_rows(batches: Iterable[pa.RecordBatch], columns: Sequence[str], limit: int) -> RowSample:
    """The first rows; no more batches are read than needed."""
    rows: list[tuple[str | None, ...]] = []
    for batch in batches:
        shown = batch.slice(0, limit - len(rows))
        values = [_texts(shown.column(name)) for name in columns]
        rows += zip(*values, strict=True)
        if batch.num_rows > shown.num_rows:
            return RowSample(tuple(columns), tuple(rows), False)
    return RowSample(tuple(columns), tuple(rows), True)


def value_text(value: Any) -> str | None:
    """A value for people; None for null."""
    if value is None:
        return None
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _texts(column: pa.Array) -> list[str | None]:
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):  # points in time that Python cannot represent
        values = column.cast(pa.string()).to_pylist()
    return [value_text(value) for value in values]


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case bytes():
            return f"0x{value[:_LONGEST].hex()}"
        case dt.datetime():
            return value.isoformat(sep=" ")
        case dict() | list() | tuple():
            return msgspec.json.encode(value, enc_hook=_inside, order="deterministic").decode()
    return str(value)


def _inside(value: Any) -> str:
    return base64.b16encode(value).decode() if isinstance(value, bytes) else str(value)
