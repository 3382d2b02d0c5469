"""Partition and sort values as Spark columns, so that rows of one partition meet in one task.

Only where rows meet depends on `key_column`: our own writer computes every partition value itself. A `directory_key` is
the value: Spark's writer puts the rows of each into a directory, by whose name we know it.
"""

import uuid
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.format.partition.transforms import Bucket, Identity, TimeTransform, Transform, Truncate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
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
from bergline.spark.runtime.columns import column_at

# Spark's hash starts with 42 and goes on with the hash of what came before; that of this number is 0, with which
# Iceberg's starts. So `hash(this, x)` is Iceberg's hash of a long x.
_HASHES_TO_ZERO = -1693959553
_MICROS = {"hour": 3_600_000_000, "day": 86_400_000_000}


def key_column(source_id: int, transform: Transform, schema: Schema) -> Column | None:
    """The transformed column; None if Spark cannot compute it."""
    path = schema.paths.get(source_id)
    if path is None:
        return None
    column = column_at(path)
    type_ = schema.ids[source_id].type
    match transform:
        case Identity():
            return F.lower(column) if type_ == UUID else column
        case Bucket(count):
            number = _as_long(column, type_)
            if number is None:
                return _in_python(column, transform, type_)
            return F.hash(F.lit(_HASHES_TO_ZERO), number).bitwiseAND(0x7FFFFFFF) % count
        case Truncate(width):
            return _truncated(column, type_, width)
        case TimeTransform(unit):
            return _time(column, type_, unit)
    return None


def directory_key(source_id: int, transform: Transform, schema: Schema) -> Column | None:
    """A partition value as a number, or as text in ASCII; None where Spark's value might be another than Iceberg's."""
    path = schema.paths.get(source_id)
    if path is None:
        return None
    text, type_ = back_quoted_path(path), schema.ids[source_id].type
    match transform:
        case Identity() if type_ == STRING:
            return F.expr(_in_ascii(text))
        case Truncate(width) if type_ == STRING:
            return F.expr(_in_ascii(f"substring({text}, 1, {width})"))
        case Identity() if type_ in (INT, LONG):
            return F.expr(text)
        case Identity() if type_ == BOOLEAN:
            return F.expr(f"CAST({text} AS INT)")
        case Identity() if type_ == DATE:
            return F.expr(f"unix_date({text})")
        case Bucket() if type_ in (INT, LONG, DATE, TIMESTAMPTZ):
            bucket = key_column(source_id, transform, schema)
            return None if bucket is None else F.when(F.expr(f"{text} IS NOT NULL"), bucket)
        case TimeTransform(unit) if type_ in (DATE, TIMESTAMP, TIMESTAMPTZ):
            return F.expr(_units(text, type_, unit))
    return None


def partition_value(name: str) -> int | str | None:
    """What a directory key was, by the part of the directory's name that Spark made of it.

    ValueError for text that was too long for a name.
    """
    if name == _NULL:
        return None
    if name.startswith(_WHOLE):
        return bytes.fromhex(name.removeprefix(_WHOLE)).decode()
    return int(name)


_NULL = "__HIVE_DEFAULT_PARTITION__"
_WHOLE, _DIGEST = "v", "h"
_MOST_BYTES = 80


def _in_ascii(text: str) -> str:
    """Digits that stand in the order of the text, as file names may be: in Java these depend on the locale."""
    digits = f"CASE WHEN octet_length({text}) <= {_MOST_BYTES} THEN concat('{_WHOLE}', hex({text})) "
    return f"{digits}ELSE concat('{_DIGEST}', sha2(CAST({text} AS BINARY), 256)) END"


def _units(text: str, type_: IcebergType, unit: str) -> str:
    """Whole units since 1970; local times are never taken for those of the session's zone."""
    if type_ == TIMESTAMPTZ:
        micros = f"unix_micros({text})"
        size = _MICROS["hour" if unit == "hour" else "day"]
        whole = f"CASE WHEN {micros} >= 0 THEN {micros} div {size} ELSE ({micros} + 1) div {size} - 1 END"
        if unit in _MICROS:
            return whole
        date = f"date_from_unix_date(CAST({whole} AS INT))"
    else:
        date = text if type_ == DATE else f"CAST({text} AS DATE)"
        if unit == "hour":
            return f"unix_date({date}) * 24 + hour({text})"
    match unit:
        case "year":
            return f"year({date}) - 1970"
        case "month":
            return f"(year({date}) - 1970) * 12 + month({date}) - 1"
    return f"unix_date({date})"


def runs_python(source_id: int, transform: Transform, schema: Schema) -> bool:
    """Whether a key is found by a function of ours, which needs our package where tasks run."""
    field = schema.ids.get(source_id)
    numbers = (INT, LONG, DATE, TIMESTAMP, TIMESTAMP_NS, TIMESTAMPTZ, TIMESTAMPTZ_NS)
    return isinstance(transform, Bucket) and field is not None and field.type not in numbers


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


def _in_python(column: Column, transform: Transform, type_: IcebergType) -> Column | None:
    """A bucket of text or bytes: Spark's hash of them is another."""
    if type_ not in (STRING, BINARY, UUID) and not isinstance(type_, DecimalType):
        return None
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
