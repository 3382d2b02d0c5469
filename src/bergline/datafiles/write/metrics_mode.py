"""Metrics modes of columns, by Java's table properties and Java's order of columns."""

import re
from collections.abc import Iterable, Mapping

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.partition.sort_order import SortOrder
from bergline.format.partition.transforms import Identity, TimeTransform, Truncate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType, ListType, MapType, NestedField, StructType, child_fields

DEFAULT_MODE = "write.metadata.metrics.default"
COLUMN_MODE = "write.metadata.metrics.column."
MAX_INFERRED = "write.metadata.metrics.max-inferred-column-defaults"
_MAX_INFERRED_DEFAULT = 100
_TRUNCATE = re.compile(r"truncate\((\d{1,9})\)")


class MetricsMode(msgspec.Struct, frozen=True):
    """Whether values are counted, and the length of text and binary bounds: 0 for no bounds, None for full ones."""

    counted: bool
    bound_length: int | None


NONE = MetricsMode(counted=False, bound_length=0)
COUNTS = MetricsMode(counted=True, bound_length=0)
FULL = MetricsMode(counted=True, bound_length=None)
TRUNCATE_16 = MetricsMode(counted=True, bound_length=16)


class MetricsModes(msgspec.Struct, frozen=True):
    """The mode of each column."""

    default: MetricsMode = TRUNCATE_16
    columns: dict[int, MetricsMode] = {}

    def mode(self, field_id: int) -> MetricsMode:
        """The mode of one column."""
        return self.columns.get(field_id, self.default)


def metrics_modes(properties: Mapping[str, str], schema: Schema, order: SortOrder) -> MetricsModes:
    """The modes set by a table's properties; as in Java, an invalid mode is ignored."""
    columns: dict[int, MetricsMode] = {}
    default = TRUNCATE_16
    if (configured := properties.get(DEFAULT_MODE)) is not None:
        default = parse_mode(configured) or TRUNCATE_16
    elif _count_ids(StructType(schema.fields)) > (limit := _max_inferred(properties)):
        columns = dict.fromkeys(_first_ids(schema.fields, limit), TRUNCATE_16)
        default = NONE
    for field_id in _sorted_columns(order):
        columns[field_id] = TRUNCATE_16 if default in (NONE, COUNTS) else default
    for key, text in properties.items():
        if key.startswith(COLUMN_MODE) and (field := schema.names.get(key.removeprefix(COLUMN_MODE))):
            columns[field.id] = parse_mode(text) or default
    return MetricsModes(default, columns)


def parse_mode(text: str) -> MetricsMode | None:
    """`none`, `counts`, `full` or `truncate(n)`; None for anything else."""
    folded = text.lower()
    if match := _TRUNCATE.fullmatch(folded):
        return MetricsMode(counted=True, bound_length=int(match[1])) if int(match[1]) else None
    return {"none": NONE, "counts": COUNTS, "full": FULL}.get(folded)


def _max_inferred(properties: Mapping[str, str]) -> int:
    text = properties.get(MAX_INFERRED, str(_MAX_INFERRED_DEFAULT))
    try:
        limit = int(text)
    except ValueError as error:
        raise InvalidInputError(f"expected a whole number for property `{MAX_INFERRED}`, found `{text}`") from error
    return limit if limit >= 0 else _MAX_INFERRED_DEFAULT


def _sorted_columns(order: SortOrder) -> Iterable[int]:
    return (f.source_id for f in order.fields if isinstance(f.transform, Identity | Truncate | TimeTransform))


def _count_ids(type_: IcebergType) -> int:
    """How many ids Java counts in a type: structs and primitives, but not keys of maps with nested values."""
    match type_:
        case StructType(fields):
            return sum(_count_ids(f.type) + (not isinstance(f.type, ListType | MapType)) for f in fields)
        case ListType(_, element, _):
            return _count_ids(element) + (0 if child_fields(element) else 1)
        case MapType(_, key, _, value, _):
            return _count_ids(key) + _count_ids(value) + (0 if child_fields(value) else 2)
    return 0


def _first_ids(fields: tuple[NestedField, ...], limit: int) -> list[int]:
    """The first primitive columns: those of a struct before those of its nested fields."""
    found: list[int] = []
    _gather(fields, found)
    return found[:limit]


def _gather(fields: tuple[NestedField, ...], found: list[int]) -> None:
    found.extend(f.id for f in fields if not child_fields(f.type))
    for field in fields:
        _gather(child_fields(field.type), found)
