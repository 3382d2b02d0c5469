"""The functions of row expressions, with Spark's results."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bergline.errors import InvalidInputError
from bergline.format.types.types import BOOLEAN, INT, STRING, UNKNOWN, IcebergType
from bergline.table.row_expressions.casts import WHOLE, assigned_text, by_value, retyped
from bergline.table.row_expressions.comparisons import compare, comparison, in_common_type, is_null, negation
from bergline.table.row_expressions.rows import RowExpression, Rows, choose, null_expression, places_of

Branch = tuple[RowExpression | None, RowExpression]


def branches(given: Sequence[Branch], text: str) -> RowExpression:
    """CASE and IF: conditions, each with a value; no condition is ELSE."""
    values = in_common_type([value for _, value in given], text)
    typed = [(condition, value) for (condition, _), value in zip(given, values, strict=True)]
    type_ = values[0].type
    conditions = [condition for condition, _ in given if condition is not None]
    return RowExpression(type_, lambda rows: choose(rows, typed, type_), places_of(*conditions, *values), text)


def coalesce(values: Sequence[RowExpression], text: str) -> RowExpression:
    """The first value that is not null."""
    return branches([(negation(is_null(value, text), text), value) for value in values], text)


def nullif(value: RowExpression, other: RowExpression, text: str) -> RowExpression:
    """Null where the two are equal, else the first."""
    return branches(
        [(comparison("=", value, other, text), retyped(null_expression(), value.type)), (None, value)], text
    )


def extreme(values: Sequence[RowExpression], *, greatest: bool, text: str) -> RowExpression:
    """`greatest` and `least`, which skip nulls."""
    typed = in_common_type(values, text)
    type_, operator = typed[0].type, ">" if greatest else "<"

    def run(rows: Rows) -> pa.Array:
        found = typed[0].evaluate(rows)
        for value in typed[1:]:
            other = value.evaluate(rows)
            better = pc.or_(pc.is_null(found), pc.fill_null(compare(operator, other, found, type_), False))
            found = pc.if_else(pc.and_(better, pc.is_valid(other)), other, found)
        return found

    return RowExpression(type_, run, places_of(*typed), text)


def concatenation(values: Sequence[RowExpression], text: str) -> RowExpression:
    """`concat` and `||`: null if one of the values is."""
    texts = [assigned_text(value, text) for value in values]

    def run(rows: Rows) -> pa.Array:
        return pc.binary_join_element_wise(*(t.evaluate(rows) for t in texts), "")

    return RowExpression(STRING, run, places_of(*texts), text)


def text_function(name: str, value: RowExpression, text: str) -> RowExpression:
    """`upper`, `lower`, `trim`, `length` and the like."""
    type_, kernel = _TEXT_FUNCTIONS[name]
    value = _text(value, text)
    return RowExpression(type_, lambda rows: kernel(value.evaluate(rows)), value.places, text)


def substring(value: RowExpression, start: RowExpression, length: RowExpression | None, text: str) -> RowExpression:
    """`substring(value, start, length)`: counts from 1, or from the end if negative."""
    value = _text(value, text)
    numbers = [number for number in (start, length) if number is not None]
    for number in numbers:
        if number.type not in (*WHOLE, UNKNOWN):
            raise InvalidInputError(
                f"expected a whole number, found `{number.text}` of type `{number.type}` in `{text}`"
            )

    def run(rows: Rows) -> pa.Array:
        columns = [e.evaluate(rows).to_pylist() for e in (value, *numbers)]
        found = (None if None in row else _substring(*row) for row in zip(*columns, strict=True))
        return pa.array(found, pa.string(), size=rows.count)

    return RowExpression(STRING, run, places_of(value, *numbers), text)


def starts_with(value: RowExpression, prefix: RowExpression, text: str) -> RowExpression:
    """`startswith(value, prefix)`."""
    value, prefix = _text(value, text), _text(prefix, text)

    def run(rows: Rows) -> pa.Array:
        pairs = zip(value.evaluate(rows).to_pylist(), prefix.evaluate(rows).to_pylist(), strict=True)
        return pa.array([None if a is None or b is None else a.startswith(b) for a, b in pairs], pa.bool_())

    return RowExpression(BOOLEAN, run, places_of(value, prefix), text)


def _text(value: RowExpression, text: str) -> RowExpression:
    if value.type not in (STRING, UNKNOWN):
        raise InvalidInputError(
            f"expected text, found `{value.text}` of type `{value.type}` in `{text}`",
            hints=[f"CAST({value.text} AS STRING) makes text of it"],
        )
    return retyped(value, STRING)


def _substring(value: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    end = len(value) if length is None else begin + length
    return value[max(begin, 0) : max(end, 0)]


def _in_case(ascii_kernel: Callable[[pa.Array], pa.Array], convert: Callable[[str], str]) -> Callable[[Any], Any]:
    """Python converts letters as Java does, possibly to several letters; Arrow converts them one by one."""

    def run(values: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(values)).as_py() is not False:
            return ascii_kernel(values)
        return by_value(values, STRING, convert, "")

    return run


def _trim(kernel: Callable[..., pa.Array]) -> Callable[[pa.Array], pa.Array]:
    return lambda values: kernel(values, characters=" ")


_TEXT_FUNCTIONS: dict[str, tuple[IcebergType, Callable[[Any], Any]]] = {
    "upper": (STRING, _in_case(pc.ascii_upper, str.upper)),
    "lower": (STRING, _in_case(pc.ascii_lower, str.lower)),
    "trim": (STRING, _trim(pc.utf8_trim)),
    "ltrim": (STRING, _trim(pc.utf8_ltrim)),
    "rtrim": (STRING, _trim(pc.utf8_rtrim)),
    "length": (INT, lambda values: pc.utf8_length(values).cast(pa.int32())),
}
