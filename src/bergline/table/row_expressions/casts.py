"""Conversion of values between types: CAST, and Spark's ANSI store assignment to a column.

A value that the other type cannot hold is an error, never wrapped or replaced by the nearest one. Times without a zone
count as UTC.
"""

import decimal
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.datafiles.file.constants import constant_array, plain_to_arrow
from bergline.datafiles.write.fit import fit_to_schema
from bergline.errors import InvalidInputError
from bergline.expressions.literals import locate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    StructType,
    child_fields,
)
from bergline.table.row_expressions.rows import RowExpression, Rows

WHOLE: Final = (INT, LONG)
FLOATING: Final = (FLOAT, DOUBLE)
TIMESTAMPS: Final = (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
EXACT: Final = decimal.Context(prec=120, Emax=9999, Emin=-9999)
"""Enough digits for any sum, product or quotient of two decimals before it is rounded once."""
_FROM_TEXT: Final = (DATE, TIME, *TIMESTAMPS, UUID)
_TO_TEXT: Final = (*WHOLE, BOOLEAN, DATE, UUID)
_LIMITS: Final[dict[IcebergType, tuple[int, int]]] = {INT: (-(2**31), 2**31 - 1), LONG: (-(2**63), 2**63 - 1)}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_BYTES: Final = (FixedType, GeometryType, GeographyType)
_TRUE: Final = ("t", "true", "y", "yes", "1")
_FALSE: Final = ("f", "false", "n", "no", "0")


def is_number(type_: IcebergType) -> bool:
    """Whether a type has arithmetic."""
    return type_ in WHOLE or type_ in FLOATING or isinstance(type_, DecimalType)


def is_time(type_: IcebergType) -> bool:
    """Whether a type is a date or a timestamp."""
    return type_ == DATE or type_ in TIMESTAMPS


def assigned(value: RowExpression, field: NestedField, column: str) -> RowExpression:
    """The value as a column stores it; InvalidInputError if the types are not compatible."""
    if value.type in (field.type, UNKNOWN):
        return retyped(value, field.type)
    if child_fields(field.type) or child_fields(value.type):
        return _assigned_nested(value, field, column)
    if not _may_store(value.type, field.type):
        raise InvalidInputError(
            f"expected `{field.type}` for column `{column}`, found `{value.type}` of `{value.text}`",
            hints=_store_hints(value, field.type),
        )
    return retyped(value, field.type)


def cast_expression(value: RowExpression, target: IcebergType, text: str) -> RowExpression:
    """`CAST(value AS target)`; InvalidInputError if there is no such cast."""
    source = value.type
    if source not in (target, UNKNOWN) and not (_may_store(source, target) or _may_cast(source, target)):
        raise InvalidInputError(f"expected a cast that is supported, found `{source}` to `{target}` in `{text}`")
    return msgspec.structs.replace(retyped(value, target), text=text, literal=msgspec.UNSET, column=None)


def assigned_text(value: RowExpression, text: str) -> RowExpression:
    """The value as text; InvalidInputError if its type has no unique form as text."""
    if value.type not in (STRING, UNKNOWN) and not _may_store(value.type, STRING):
        raise InvalidInputError(f"expected text, found `{value.text}` of type `{value.type}` in `{text}`")
    return retyped(value, STRING)


def retyped(value: RowExpression, target: IcebergType) -> RowExpression:
    """The value in another type; the caller has checked that there is a conversion."""
    source = value.type
    if source == target:
        return value

    def run(rows: Rows) -> pa.Array:
        return convert(value.evaluate(rows), source, target, value.text)

    return msgspec.structs.replace(value, type=target, run=run)


def convert(values: pa.Array, source: IcebergType, target: IcebergType, text: str) -> pa.Array:
    """Convert values to another type; InvalidInputError names a value that it cannot hold."""
    if source == target:
        return values
    if source == UNKNOWN:
        return constant_array(target, None, len(values))
    match source, target:
        case DecimalType(), DecimalType() | _ if target in WHOLE or isinstance(target, DecimalType):
            return _number_by_value(values, target, text)
        case _, DecimalType() if source in FLOATING:
            return _number_by_value(values, target, text)
        case _, DecimalType() if source == STRING:
            return _number_by_value(values, target, text)
        case _ if source in FLOATING and target in WHOLE:
            return _truncated(values, target, text)
        case _ if source == DOUBLE and target == FLOAT:
            return _narrowed(values, text)
        case DecimalType(), _ if target in FLOATING:
            # via text, which gives the nearest number; Arrow's own cast may be off by one unit
            return pc.cast(pc.cast(values, pa.string()), arrow_type(target))
        case DecimalType(), _ if target == STRING:
            return by_value(values, target, lambda number: format(number, "f"), text)
        case _ if source == STRING and target in WHOLE:
            return _whole_from_text(pc.utf8_trim_whitespace(values), target, text)
        case _ if source == STRING and target in FLOATING:
            return _from_text(pc.utf8_trim_whitespace(values), target, text)
        case _ if source == STRING and target == BOOLEAN:
            return by_value(values, target, _truth, text)
        case _ if source == STRING and target in _FROM_TEXT:
            return by_value(values, target, lambda found: _located(found, target), text)
        case _ if source == UUID and target == STRING:
            return by_value(values.cast(pa.binary(16)), target, lambda found: str(uuid.UUID(bytes=found)), text)
        case _, FixedType(length) if source == BINARY:
            return _fixed(values, length, text)
        case _ if source in TIMESTAMPS and target == DATE:
            plain = pc.cast(pc.floor_temporal(values, unit="day"), pa.timestamp("us"), safe=False)
            return pc.cast(plain, pa.date32(), safe=False)
        case _ if source in WHOLE and isinstance(target, DecimalType):
            return _number_by_value(values, target, text)
    return _cast(values, target, text)


def _may_store(source: IcebergType, target: IcebergType) -> bool:
    """Whether Spark's store assignment allows it; a uuid is text in Spark."""
    if is_number(source) and is_number(target):
        return True
    if is_time(source) and is_time(target):
        return True
    if target == STRING:
        return source in _TO_TEXT or isinstance(source, DecimalType)
    if source == STRING:
        return target == UUID
    return (source == BINARY and isinstance(target, _BYTES)) or (isinstance(source, _BYTES) and target == BINARY)


def _may_cast(source: IcebergType, target: IcebergType) -> bool:
    """Whether an explicit cast allows it."""
    if source == STRING:
        return is_number(target) or target in (BOOLEAN, *_FROM_TEXT)
    return (source == BOOLEAN and target in WHOLE) or (source in WHOLE and target == BOOLEAN)


def _store_hints(value: RowExpression, target: IcebergType) -> list[str]:
    if value.type == STRING and (is_number(target) or target in (BOOLEAN, *_FROM_TEXT)):
        if is_number(target) and value.is_literal:
            return ["write numbers without quotes"]
        return [f"CAST({value.text} AS …) converts text"]
    return []


def _assigned_nested(value: RowExpression, field: NestedField, column: str) -> RowExpression:
    """Structs, lists and maps fit as in appended rows."""
    optional = msgspec.structs.replace(field, required=False)

    def run(rows: Rows) -> pa.Array:
        values = value.evaluate(rows)
        check_whole(values, field, column)
        return _fitted(values, optional)

    try:
        _fitted(pa.nulls(0, arrow_type(value.type)), optional)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"expected `{field.type}` for column `{column}`, found `{value.type}` of `{value.text}`"
        ) from error
    return msgspec.structs.replace(value, type=field.type, run=run)


def check_whole(values: Any, field: NestedField, path: str) -> None:
    """Refuse structs without some of their fields, in Arrow values or a Python value: others would become null."""
    if not isinstance(field.type, StructType):
        return
    if isinstance(values, Mapping):
        given = values
    elif isinstance(values, pa.Array) and pa.types.is_struct(values.type) and values.null_count < len(values):
        given = dict(zip((part.name for part in values.type), values.flatten(), strict=True))
    else:
        return
    for child in field.type.fields:
        inside = f"{path}.{child.name}"
        if child.name not in given:
            raise InvalidInputError(
                f"expected all fields of the struct, found no `{inside}`",
                hints=["give all of them, or None for the whole struct; update can set one field by its path"],
            )
        check_whole(given[child.name], child, inside)


def _fitted(values: pa.Array, field: NestedField) -> pa.Array:
    fitted = fit_to_schema(pa.table({field.name: values}), Schema(fields=(field,)))
    return fitted.column(0).combine_chunks()


def _cast(values: pa.Array, target: IcebergType, text: str) -> pa.Array:
    try:
        return pc.cast(values, arrow_type(target), safe=target not in FLOATING)
    except pa.ArrowException as error:
        raise _misfit(target, text, str(error)) from error


def _from_text(values: pa.Array, target: IcebergType, text: str) -> pa.Array:
    try:
        return pc.cast(values, arrow_type(target))
    except pa.ArrowException as error:
        raise _misfit(target, text, str(error)) from error


def _whole_from_text(values: pa.Array, target: IcebergType, text: str) -> pa.Array:
    """Only decimal digits with a sign: Arrow would also read hexadecimal ones."""
    wrong = values.filter(pc.invert(pc.match_substring_regex(values, r"^[+-]?[0-9]+$")))
    if len(wrong):
        raise _misfit(target, text, wrong[0].as_py())
    return _from_text(pc.utf8_ltrim(values, characters="+"), target, text)


def _truncated(values: pa.Array, target: IcebergType, text: str) -> pa.Array:
    """Doubles truncated to whole numbers, as in Spark's ANSI cast."""
    whole = pc.trunc(pc.cast(values, pa.float64()))
    low, high = _LIMITS[target]
    inside = pc.and_(pc.greater_equal(whole, float(low)), pc.less(whole, float(high + 1)))
    if (wrong := values.filter(pc.invert(inside))) and len(wrong):
        raise _misfit(target, text, str(wrong[0].as_py()))
    return pc.cast(whole, arrow_type(target), safe=False)


def _narrowed(values: pa.Array, text: str) -> pa.Array:
    narrow = pc.cast(values, pa.float32(), safe=False)
    wrong = values.filter(pc.and_(pc.is_inf(narrow), pc.invert(pc.is_inf(values))))
    if len(wrong):
        raise _misfit(FLOAT, text, str(wrong[0].as_py()))
    return narrow


def _fixed(values: pa.Array, length: int, text: str) -> pa.Array:
    wrong = values.filter(pc.not_equal(pc.binary_length(values), length))
    if len(wrong):
        raise _misfit(FixedType(length), text, f"{len(wrong[0].as_py())} bytes")
    return pc.cast(values, pa.binary(length))


def by_value(values: pa.Array, target: IcebergType, compute: Callable[[Any], Any], text: str) -> pa.Array:
    """Convert value by value in Python, each distinct one once."""
    encoded = pc.dictionary_encode(values)
    found = []
    for value in encoded.dictionary.to_pylist():
        try:
            found.append(None if value is None else compute(value))
        except (ValueError, ArithmeticError) as error:
            raise _misfit(target, text, repr(value)) from error
    return plain_to_arrow(target, found).take(encoded.indices)


def _number_by_value(values: pa.Array, target: IcebergType, text: str) -> pa.Array:
    if isinstance(target, DecimalType):
        return by_value(values, target, lambda number: rounded(_exact(number), target), text)
    low, high = _LIMITS[target]

    def whole(number: Decimal) -> int:
        cut = int(number.to_integral_value(ROUND_DOWN))
        if not low <= cut <= high:
            raise OverflowError
        return cut

    return by_value(values, target, whole, text)


def rounded(number: Decimal, target: DecimalType) -> Decimal:
    """The number with the scale of a type; OverflowError if it has too many digits."""
    result = number.quantize(Decimal(1).scaleb(-target.scale, EXACT), ROUND_HALF_UP, EXACT)
    if result and result.adjusted() >= target.precision - target.scale:
        raise OverflowError
    return result


def decimal_from_text(text: str) -> Decimal:
    """The number as written; ValueError for other text, and for digits that only Python accepts."""
    plain = text.strip()
    if not _NUMBER.fullmatch(plain):
        raise ValueError(text)
    return Decimal(plain)


def _exact(number: Any) -> Decimal:
    if isinstance(number, str):
        return decimal_from_text(number)
    found = Decimal(repr(number) if isinstance(number, float) else number)
    if not found.is_finite():
        raise OverflowError
    return found


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise ValueError(text)
    return word in _TRUE


def _located(text: str, target: IcebergType) -> Any:
    if target == UUID:
        return uuid.UUID(text.strip())
    try:
        position = locate(text, target, "")
    except InvalidInputError as error:
        raise ValueError(text) from error
    if position.side:
        raise ValueError(text)
    return position.value


def _misfit(target: IcebergType, text: str, found: str) -> InvalidInputError:
    return InvalidInputError(f"expected values that fit `{target}`, found {found} in `{text}`")
