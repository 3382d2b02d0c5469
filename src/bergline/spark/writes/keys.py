"""Partition and sort values as Spark columns, so that rows of one partition meet in one task.

Only where rows meet depends on them: the writer computes every partition value itself.
"""

import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.format.partition.transforms import Bucket, Identity, TimeTransform, Transform, Truncate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    IcebergType,
)
from bergline.quoting import back_quoted_path

# Spark's hash starts with 42 and goes on with the hash of what came before; that of this number is 0, with which
# Iceberg's starts. So `hash(this, x)` is Iceberg's hash of a long x.
_HASHES_TO_ZERO = -1693959553
_MICROS = {"hour": 3_600_000_000, "day": 86_400_000_000}


def key_column(source_id: int, transform: Transform, schema: Schema, prepare: Callable[[], object]) -> Column | None:
    """The transformed column; None if Spark cannot compute it. Tasks need our package after `prepare` only."""
    path = schema.paths.get(source_id)
    if path is None:
        return None
    column = F.col(back_quoted_path(path))
    type_ = schema.ids[source_id].type
    match transform:
        case Identity():
            return F.lower(column) if type_ == UUID else column
        case Bucket(count):
            number = _as_long(column, type_)
            if number is None:
                return _in_python(column, transform, type_, prepare)
            return F.hash(F.lit(_HASHES_TO_ZERO), number).bitwiseAND(0x7FFFFFFF) % count
        case Truncate(width):
            return _truncated(column, type_, width)
        case TimeTransform(unit):
            return _time(column, type_, unit)
    return None


def _as_long(column: Column, type_: IcebergType) -> Column | None:
    """The number that Iceberg hashes; None if it hashes bytes."""
    if type_ in (INT, LONG):
        return column.cast("bigint")
    if type_ == DATE:
        return F.unix_date(column).cast("bigint")
    return _micros(column, type_)


def _micros(column: Column, type_: IcebergType) -> Column | None:
    if type_ in (TIMESTAMPTZ, TIMESTAMPTZ_NS):
        return F.unix_micros(column)
    if type_ in (TIMESTAMP, TIMESTAMP_NS):  # Spark takes it for a time of the session's zone, which must not count
        return F.unix_micros(F.from_utc_timestamp(column, F.current_timezone()))
    return None


def _truncated(column: Column, type_: IcebergType, width: int) -> Column | None:
    if type_ in (INT, LONG):
        return _rounded_down(column, width)
    if type_ in (STRING, BINARY):
        return F.substring(column, 1, width)
    if isinstance(type_, DecimalType):
        return _rounded_down(column, Decimal(width).scaleb(-type_.scale))
    return None


def _rounded_down(column: Column, step: int | Decimal) -> Column:
    return F.try_subtract(column, F.pmod(column, F.lit(step)))


def _time(column: Column, type_: IcebergType, unit: str) -> Column | None:
    micros = _micros(column, type_)
    if type_ != DATE and micros is None:
        return None
    if micros is not None and unit in _MICROS:
        return _rounded_down(micros, _MICROS[unit])
    date = column if micros is None else F.date_from_unix_date(F.floor(micros / _MICROS["day"]).cast("int"))
    match unit:
        case "year":
            return F.year(date)
        case "month":
            return F.year(date) * 12 + F.month(date)
    return date


def _in_python(
    column: Column, transform: Transform, type_: IcebergType, prepare: Callable[[], object]
) -> Column | None:
    """A bucket of text or bytes, computed in Python: Spark hashes these differently."""
    if type_ not in (STRING, BINARY, UUID) and not isinstance(type_, DecimalType):
        return None
    prepare()  # a function knows only those packages that executors have got before it is made
    # no type hints: Spark would take them for those of another kind of function
    in_bucket = F.udf(lambda v: transform.apply(type_, _plain(v, type_)), "int")
    return in_bucket(column)


def _plain(value: Any, type_: IcebergType) -> Any:
    """A value as Iceberg has it; text that is no UUID is refused by the writer."""
    if type_ == UUID:
        try:
            return None if value is None else uuid.UUID(value)
        except ValueError:
            return None
    return bytes(value) if isinstance(value, bytearray) else value
