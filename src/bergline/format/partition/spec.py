"""Partition specs: the transforms of columns by which a table's files are partitioned."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.encoding.integers import Int
from bergline.format.partition.paths import escape, render_partition_value
from bergline.format.partition.terms import parse_term
from bergline.format.partition.transforms import (
    Bucket,
    Identity,
    TimeTransform,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DATE, INT, STRING, UNKNOWN, IcebergType, NestedField, StructType

FIRST_PARTITION_FIELD_ID: Final = 1000
UNNUMBERED: Final = 0
"""The id of a partition field that is not assigned yet; real ids start at 1000."""
NO_SOURCE: Final = -1
"""The source id of a field whose transform takes several columns."""


class PartitionField(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A transform of one column; or of several, without a source id and with unknown values."""

    source_id: Int = NO_SOURCE
    field_id: Int = UNNUMBERED
    name: str = msgspec.field(default_factory=str)
    transform: Transform = msgspec.field(default_factory=lambda: UnknownTransform(""))
    source_ids: tuple[Int, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or self.transform == UnknownTransform(""):
            raise InvalidInputError(f"expected a name and a transform for partition field {self.field_id}, found none")
        check_sources(self, f"partition field `{self.name}`")


class PartitionSpec(msgspec.Struct, frozen=True, rename="kebab"):
    """Partition fields in order; no fields means unpartitioned."""

    spec_id: Int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether there are no fields, or only `void` ones."""
        return all(isinstance(f.transform, Void) for f in self.fields)

    @property
    def highest_field_id(self) -> int:
        """The largest partition field id, 999 for none."""
        return max((f.field_id for f in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)

    def partition_type(self, schema: Schema) -> StructType:
        """The struct type of partition values; some types are `unknown` if their source column was dropped."""
        return StructType(tuple(NestedField(f.field_id, f.name, False, result_type(f, schema)) for f in self.fields))

    def partition_path(self, schema: Schema, values: Sequence[Any]) -> str:
        """The `name=value/…` directory, for people; readers never parse it."""
        parts = []
        for field, value in zip(self.fields, values, strict=True):
            text = render_partition_value(field.transform, result_type(field, schema), value)
            parts.append(f"{escape(field.name)}={escape(text)}")
        return "/".join(parts)


UNPARTITIONED = PartitionSpec(spec_id=0, fields=())


def result_type(field: PartitionField, schema: Schema) -> IcebergType:
    """The type of a partition field's values; `unknown` if it depends on a dropped column."""
    source = schema.ids.get(field.source_id)
    if source is not None:
        return field.transform.result_type(source.type)
    match field.transform:
        case Identity() | Truncate() | Void():
            return UNKNOWN
        case TimeTransform(unit):
            return DATE if unit == "day" else INT
    return INT if isinstance(field.transform, Bucket) else STRING


def check_sources(field: Any, what: str) -> None:
    """Refuse a field without columns; a list of one column is the same as a single column."""
    if field.source_id == NO_SOURCE and len(field.source_ids) == 1:
        msgspec.structs.force_setattr(field, "source_id", field.source_ids[0])
    if field.source_id == NO_SOURCE and not field.source_ids:
        raise InvalidInputError(f"expected a source-id or source-ids for {what}, found neither")
    if field.source_id != NO_SOURCE and field.source_ids:
        msgspec.structs.force_setattr(field, "source_ids", ())


def check_transforms(transform: Transform, source: IcebergType, column: str) -> None:
    """Refuse columns whose type the transform does not accept."""
    try:
        transform.result_type(source)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} in column `{column}`") from error


def parse_partition_by(terms: Sequence[str], schema: Schema) -> PartitionSpec:
    """Parse a new table's spec, such as `["day(ts)", "bucket(16, id)", "region"]`."""
    fields: list[PartitionField] = []
    for number, term in enumerate(terms):
        transform, column = parse_term(term)
        source = schema.find(column)
        name = creation_name(schema.names_by_id[source.id], transform)
        earlier = next((n for n, f in enumerate(fields) if f.name == name), None)
        if earlier is not None:
            if fields[earlier].transform == transform:
                raise InvalidInputError(f"expected each partition field once, found `{term}` twice")
            raise InvalidInputError(
                f"expected partition fields with names of their own, "
                f"found `{terms[earlier]}` and `{term}`, which would both be named `{name}`"
            )
        if name in schema.names and not isinstance(transform, Identity):
            raise InvalidInputError(f"expected a free name for partition field `{term}`, found a column `{name}`")
        if isinstance(transform, TimeTransform) and any(
            f.source_id == source.id and isinstance(f.transform, TimeTransform) for f in fields
        ):
            raise InvalidInputError(f"expected one unit of time for each column, found `{term}` as a second one")
        check_transforms(transform, source.type, schema.names_by_id[source.id])
        if source.id not in schema.paths:
            raise InvalidInputError(f"expected a column outside lists and maps, found `{term}`")
        fields.append(PartitionField(source.id, FIRST_PARTITION_FIELD_ID + number, name, transform))
    return PartitionSpec(spec_id=0, fields=tuple(fields))


def creation_name(column: str, transform: Transform) -> str:
    """The default name of a partition field in a new table, as in Java."""
    match transform:
        case Identity():
            return column
        case Bucket():
            return f"{column}_bucket"
        case Truncate():
            return f"{column}_trunc"
    return f"{column}_{transform}"
