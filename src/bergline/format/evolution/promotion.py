"""Type promotion: which wider types a column may be promoted to, and its values in them."""

from collections.abc import Iterable
from typing import Any

from bergline.errors import InvalidInputError
from bergline.format.partition.spec import PartitionSpec
from bergline.format.partition.transforms import TimeTransform, Void
from bergline.format.types.defaults import decode_default, encode_default
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NS,
    UNKNOWN,
    DecimalType,
    IcebergType,
    child_fields,
)

_V3 = 3
_UNITS_PER_DAY: dict[IcebergType, int] = {TIMESTAMP: 86_400 * 10**6, TIMESTAMP_NS: 86_400 * 10**9}


def can_widen(old: IcebergType, new: IcebergType, format_version: int = 2) -> bool:
    """Whether the format version allows this promotion."""
    if old == new:
        return True
    match old, new:
        case DecimalType(precision, scale), DecimalType(wider, same):
            return wider >= precision and same == scale
    if format_version >= _V3 and old == UNKNOWN:
        return not child_fields(new)
    if format_version >= _V3 and old == DATE:
        return new in _UNITS_PER_DAY
    return (old, new) in {(INT, LONG), (FLOAT, DOUBLE)}


def promotions(format_version: int) -> str:
    """The promotions that `can_widen` allows, for messages."""
    known = "int to long, float to double, decimal(P, S) to more digits before the point"
    more = ", date to timestamp or timestamp_ns, unknown to any type that holds no others"
    return f"a column may change from {known}{more if format_version >= _V3 else ''}"


def widen_value(old: IcebergType, new: IcebergType, value: Any) -> Any:
    """A plain value converted to the type that its column was promoted to."""
    return value * _UNITS_PER_DAY[new] if value is not None and old == DATE and new in _UNITS_PER_DAY else value


def widen_default(old: IcebergType, new: IcebergType, wire: Any) -> Any:
    """The JSON of a default after its column was promoted."""
    return encode_default(new, widen_value(old, new, decode_default(old, wire)))


def check_partitions_stay(source_id: int, old: IcebergType, new: IcebergType, specs: Iterable[PartitionSpec]) -> None:
    """Refuse a promotion that would move rows to other partitions: a date under a transform other than time units."""
    if old != DATE or new == DATE:
        return
    for spec in specs:
        for field in spec.fields:
            if field.source_id == source_id and not isinstance(field.transform, TimeTransform | Void):
                raise InvalidInputError(
                    f"cannot change a column from `{old}` to `{new}`: "
                    f"the values of partition field `{field.name}` would change"
                )
