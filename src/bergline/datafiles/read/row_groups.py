"""Pruning of row groups by the statistics in the footer."""

from collections.abc import Mapping
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from bergline.datafiles.file.footer import read_footer
from bergline.errors import FormatError
from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, columns_of
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, IcebergType, NestedField

_COMPARABLE: dict[IcebergType, tuple[pa.DataType, ...]] = {
    INT: (pa.int32(),),
    LONG: (pa.int32(), pa.int64()),
    DATE: (pa.date32(),),
    TIMESTAMP: (pa.timestamp("us"),),
    TIMESTAMPTZ: (pa.timestamp("us", tz="UTC"),),
    STRING: (pa.string(),),
}
"""Types with exact statistics; those of floats leave out NaN and the sign of zero."""

# physical types by number, and the length of their values
_LENGTHS = {1: 4, 2: 8}
_BYTE_ARRAY = 6


class _Statistics(msgspec.Struct, frozen=True):
    """The statistics of one column in one row group."""

    values: int
    nulls: int | None
    lower: bytes | None
    upper: bytes | None


def matching_groups(
    stream: BinaryIO, columns: Mapping[int, pa.Field], predicate: Predicate, schema: Schema
) -> list[int] | None:
    """The row groups to read, None for all; `columns` are the file's columns by field id."""
    asked = {schema.names[name].id for name in columns_of(predicate)} if predicate != ALWAYS_TRUE else set()
    usable = {
        columns[f.id].name: f
        for f in schema.fields
        if f.id in asked and f.id in columns and columns[f.id].type in _COMPARABLE.get(f.type, ())
    }
    if not usable:
        return None
    footer = read_footer(stream)
    try:
        groups, orders = footer.get(4, []), footer.get(7)
        # a single group was already decided by the file's metrics; without column orders min and max are undefined
        if len(groups) < 2 or orders is None:  # noqa: PLR2004
            return None
        ordered = [order == {1: {}} for order in orders]
        described = [_described(group, usable, ordered) for group in groups]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"expected row groups in a Parquet footer, found others ({error!r})") from error
    return [n for n, group in enumerate(described) if may_match(predicate, group, schema)]


def _described(group: Any, columns: Mapping[str, NestedField], ordered: list[bool]) -> DataFile:
    """A row group described like a data file."""
    found = {
        columns[name].id: _statistics(chunk[3])
        for chunk, known in zip(group[1], ordered, strict=True)
        if known and len(chunk[3][3]) == 1 and (name := chunk[3][3][0].decode(errors="replace")) in columns
    }
    return DataFile(
        file_path="",
        file_format="PARQUET",
        partition=(),
        record_count=int(group[3]),
        file_size_in_bytes=0,
        value_counts={i: s.values for i, s in found.items()},
        null_value_counts={i: s.nulls for i, s in found.items() if s.nulls is not None},
        lower_bounds={i: s.lower for i, s in found.items() if s.lower is not None},
        upper_bounds={i: s.upper for i, s in found.items() if s.upper is not None},
    )


def _statistics(chunk: Mapping[int, Any]) -> _Statistics:
    known = chunk.get(12, {})
    lower, upper = (_bound(chunk[1], known.get(field_id)) for field_id in (6, 5))
    nulls = known.get(3)
    return _Statistics(int(chunk[5]), None if nulls is None else int(nulls), lower, upper)


def _bound(physical: int, raw: bytes | None) -> bytes | None:
    """A bound in single-value encoding, which for these types is Parquet's own; None if invalid."""
    if raw is None or physical in _LENGTHS:
        return raw if raw is not None and len(raw) == _LENGTHS[physical] else None
    return raw if physical == _BYTE_ARRAY and _is_text(raw) else None


def _is_text(raw: bytes) -> bool:
    """Whether a text bound is valid UTF-8: writers may truncate within a character."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
