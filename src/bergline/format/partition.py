"""Partition specs: which transforms of which columns split a table's files."""

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_plus

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.integers import Int
from bergline.format.iso import civil_date
from bergline.format.schema import Schema
from bergline.format.transforms import Bucket, Identity, TimeTransform, Transform, Truncate, parse_transform
from bergline.format.types import DATE, TIMESTAMP, TIMESTAMPTZ, IcebergType, NestedField, StructType

FIRST_PARTITION_FIELD_ID = 1000
_TERM = re.compile(r"\s*(?:(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^(),]+?)\s*(?:,\s*(\d+)\s*)?\)|([^(),]+?))\s*")


class PartitionField(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One transform of one column."""

    source_id: Int
    field_id: Int
    name: str
    transform: Transform


class PartitionSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """Partition fields in order; no fields means unpartitioned."""

    spec_id: Int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether files carry no partition values."""
        return not self.fields

    @property
    def highest_field_id(self) -> int:
        """The largest partition field id, 999 for none."""
        return max((f.field_id for f in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)

    def partition_type(self, schema: Schema) -> StructType:
        """The struct of this spec's partition values; a dropped source column leaves its values unreadable as text."""
        return StructType(tuple(NestedField(f.field_id, f.name, False, result_type(f, schema)) for f in self.fields))

    def partition_path(self, schema: Schema, values: Sequence[Any]) -> str:
        """The `name=value/…` directory that people see; readers never parse it."""
        parts = []
        for field, value in zip(self.fields, values, strict=True):
            text = render_partition_value(field.transform, result_type(field, schema), value)
            parts.append(f"{quote_plus(field.name)}={quote_plus(text)}")
        return "/".join(parts)


UNPARTITIONED = PartitionSpec(spec_id=0, fields=())


def result_type(field: PartitionField, schema: Schema) -> IcebergType:
    """The type of one partition field's values."""
    source = schema.ids.get(field.source_id)
    if source is None:
        raise InvalidInputError(
            f"expected a column with id {field.source_id} for partition field `{field.name}`, found none"
        )
    return field.transform.result_type(source.type)


def parse_partition_by(terms: Sequence[str], schema: Schema) -> PartitionSpec:
    """A new table's spec from `["day(ts)", "bucket(16, id)", "region"]`."""
    fields: list[PartitionField] = []
    for number, term in enumerate(terms):
        transform, column = _parse_term(term)
        source = schema.find(column)
        name = _default_name(schema.names_by_id[source.id], transform)
        if any(f.name == name for f in fields):
            raise InvalidInputError(f"expected each partition field once, found `{term}` twice")
        if name in schema.names and not isinstance(transform, Identity):
            raise InvalidInputError(f"expected a free name for partition field `{term}`, found a column `{name}`")
        transform.result_type(source.type)
        fields.append(PartitionField(source.id, FIRST_PARTITION_FIELD_ID + number, name, transform))
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def render_partition_value(transform: Transform, type_: IcebergType, value: Any) -> str:
    """A partition value as people read it."""
    if value is None:
        return "null"
    match transform:
        case TimeTransform("year"):
            return str(1970 + value)
        case TimeTransform("month"):
            return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
        case TimeTransform("hour"):
            return f"{_render_date(value // 24)}-{value % 24:02d}"
    if type_ == DATE:
        return _render_date(value)
    if type_ in (TIMESTAMP, TIMESTAMPTZ):
        days, micros = divmod(value, 86_400_000_000)
        time = (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros)).time().isoformat()
        return f"{_render_date(days)}T{time}{'+00:00' if type_ == TIMESTAMPTZ else ''}"
    if isinstance(value, bool):
        return str(value).lower()
    return value.hex() if isinstance(value, bytes) else str(value)


def _render_date(days: int) -> str:
    year, month, day = civil_date(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _parse_term(term: str) -> tuple[Transform, str]:
    match = _TERM.fullmatch(term)
    if match is None:
        raise InvalidInputError(
            f"expected a partition term like `day(ts)`, `bucket(16, id)` or `region`, found `{term}`"
        )
    function, before, column, after, bare = match.groups()
    if bare:
        return parse_transform("identity"), bare.strip("`")
    name = function.lower()
    if name in {"years", "months", "days", "hours"}:
        name = name[:-1]
    number = before or after
    transform = parse_transform(f"{name}[{number}]" if number else name)
    if not isinstance(transform, Identity | TimeTransform | Bucket | Truncate):
        raise InvalidInputError(
            f"expected year, month, day, hour, bucket(n, …), truncate(n, …) or a column, found `{term}`"
        )
    return transform, column.strip("`")


def _default_name(column: str, transform: Transform) -> str:
    match transform:
        case Identity():
            return column
        case Bucket():
            return f"{column}_bucket"
        case Truncate():
            return f"{column}_trunc"
    return f"{column}_{transform}"
