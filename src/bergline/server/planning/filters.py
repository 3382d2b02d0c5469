"""Filters of the protocol: the files that they select, and their residual for a file.

Iceberg's filters have two values: `not-eq` holds where a column is null. So negation goes down to the columns first,
and each negated predicate holds for null too. Predicates that we cannot express select every file.
"""

import hashlib
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from operator import itemgetter
from typing import Any, assert_never

import msgspec

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.bound_filter import BoundFilter
from bergline.expressions.literals import locate
from bergline.expressions.metrics import bounds_of
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    MAX_DEPTH,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    bind,
)
from bergline.expressions.times import NANOS_PER_DAY, Instant, TimeOfDay
from bergline.format.encoding.wire import encode_json
from bergline.format.manifest.manifest import DataFile
from bergline.format.types.types import DOUBLE, FLOAT, UUID, FixedType, IcebergType, NestedField, PrimitiveType
from bergline.server.planning.fields import FieldNames

_NEGATED = {
    "eq": "not-eq",
    "lt": "gt-eq",
    "gt": "lt-eq",
    "in": "not-in",
    "starts-with": "not-starts-with",
    "is-null": "not-null",
    "is-nan": "not-nan",
}
_NEGATED |= {b: a for a, b in _NEGATED.items()}
_LONG = 64
_LONG_TEXT, _MAX_CACHED_TEXT = 16 * 1024, 8 * 1024 * 1024
_UNORDERED = (FLOAT, DOUBLE, UUID)  # NaN, zeros, and writers that order UUIDs differently
_COMPARED: dict[str, Any] = {"eq": "=", "not-eq": "!=", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}


class LongList(msgspec.Struct, frozen=True):
    """The values of a predicate if they are many, sorted, each with the client's literal."""

    field: NestedField
    values: list[Any]
    literals: list[Any]

    def within(self, lower: Any, upper: Any) -> list[Any]:
        """The literals for the values between two bounds, each of which may be unknown."""
        start = 0 if lower is None else bisect_left(self.values, lower)
        stop = len(self.values) if upper is None else bisect_right(self.values, upper)
        return self.literals[start:stop]


class FilterPredicate(msgspec.Struct, frozen=True):
    """A predicate on a column as the client sent it, and as ours: None where we have none."""

    wire: dict[str, Any]
    bound: Predicate | None
    listed: LongList | None = None
    """The values of `in` and `not-in` where they are many."""

    def within(self, file: DataFile) -> Any:
        """The predicate in decoded JSON for a file: of many values only those within its bounds."""
        if self.listed is None:
            return self.wire
        literals = self.listed.within(*bounds_of(file, self.listed.field))
        if not literals:
            return self.wire["type"] == "not-in"
        values = self.wire["values"]
        return {**self.wire, "values": {**values, "values": literals} if isinstance(values, dict) else literals}


class FilterGroup(msgspec.Struct, frozen=True):
    """All parts, or any of them."""

    kind: str
    parts: tuple["WireFilter", ...]


WireFilter = bool | FilterPredicate | FilterGroup


def read_filter(wire: Any, names: FieldNames) -> WireFilter:
    """The filter in decoded JSON; InvalidInputError with the place of what is none."""
    return True if wire is None else _Reading(names).read(wire, "$.filter", negated=False, depth=0)


class FilterCache:
    """The latest long filters: all tasks of one plan have the same."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[bytes, bool], tuple[WireFilter, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0

    def read(self, wire: Any, names: FieldNames) -> WireFilter:
        """The filter in decoded JSON, parsed once for a schema: tables may have no uuid, or that of another."""
        text = b"" if wire is None else encode_json(wire)
        if len(text) < _LONG_TEXT:
            return read_filter(wire, names)
        key = hashlib.sha256(encode_json(names.schema) + text).digest(), names.case_sensitive
        with self._lock:
            found = self._cached.get(key)
        if found is not None:
            return found[0]
        read = read_filter(wire, names)
        with self._lock:
            if key not in self._cached:
                self._cached[key] = read, len(text)
                self._size += len(text)
            while self._size > _MAX_CACHED_TEXT:
                self._size -= self._cached.popitem(last=False)[1][1]
        return read


def file_filter(filter_: WireFilter, names: FieldNames) -> BoundFilter:
    """The filter that selects files."""
    return BoundFilter(_predicate(filter_), names.schema)


def reduced(filter_: WireFilter, decide: Callable[[Predicate], bool | None]) -> WireFilter:
    """The filter without the predicates that are decided already."""
    match filter_:
        case bool():
            return filter_
        case FilterPredicate(_, bound):
            decided = None if bound is None else decide(bound)
            return filter_ if decided is None else decided
        case FilterGroup(kind, parts):
            decisive = kind == "or"
            left = [part for part in (reduced(part, decide) for part in parts) if part is not (not decisive)]
            if any(part is decisive for part in left):
                return decisive
            return (left[0] if len(left) == 1 else FilterGroup(kind, tuple(left))) if left else not decisive
        case _:
            assert_never(filter_)


def render_filter(filter_: WireFilter, file: DataFile) -> Any:
    """The filter in decoded JSON for the rows of a file."""
    match filter_:
        case bool():
            return filter_
        case FilterPredicate():
            return filter_.within(file)
        case FilterGroup(kind, parts):
            return _joined(kind, [render_filter(part, file) for part in parts])
        case _:
            assert_never(filter_)


def has_long_lists(filter_: WireFilter) -> bool:
    """Whether what is left of the filter depends on the bounds of a file."""
    match filter_:
        case bool():
            return False
        case FilterPredicate(listed=listed):
            return listed is not None
        case FilterGroup(_, parts):
            return any(map(has_long_lists, parts))
        case _:
            assert_never(filter_)


def _predicate(filter_: WireFilter) -> Predicate:
    match filter_:
        case bool():
            return ALWAYS_TRUE if filter_ else ALWAYS_FALSE
        case FilterPredicate(_, bound):
            return ALWAYS_TRUE if bound is None else bound
        case FilterGroup(kind, parts):
            return (all_of if kind == "and" else any_of)(map(_predicate, parts))
        case _:
            assert_never(filter_)


def _joined(kind: str, parts: list[Any]) -> Any:
    """Parts in decoded JSON as one, nested as little as possible."""
    decisive = kind == "or"
    if any(part is decisive for part in parts):
        return decisive
    left = [part for part in parts if part is not (not decisive)]
    if not left:
        return not decisive
    while len(left) > 1:
        pairs = [left[i : i + 2] for i in range(0, len(left), 2)]
        left = [{"type": kind, "left": p[0], "right": p[1]} if len(p) > 1 else p[0] for p in pairs]
    return left[0]


class _Reading:
    def __init__(self, names: FieldNames) -> None:
        self._names = names

    def read(self, wire: Any, place: str, *, negated: bool, depth: int) -> WireFilter:
        if depth > MAX_DEPTH:
            raise InvalidInputError(f"expected a filter nested at most {MAX_DEPTH} levels deep, found a deeper one")
        if isinstance(wire, bool):
            return wire is not negated
        if not isinstance(wire, dict) or not isinstance(kind := wire.get("type"), str):
            raise InvalidInputError(f"expected a filter with a type, found {wire!r:.80} at {place}")
        kind = kind.lower().replace("_", "-")
        match kind:
            case "true" | "false":
                return (kind == "true") is not negated
            case "literal":
                return self._constant(wire.get("value"), place) is not negated
            case "not":
                return self.read(wire.get("child"), f"{place}.child", negated=not negated, depth=depth + 1)
            case "and" | "or":
                parts = _parts(wire, kind, place)
                joined = kind if not negated else "or" if kind == "and" else "and"
                read = tuple(self.read(part, at, negated=negated, depth=depth + 1) for part, at in parts)
                return FilterGroup(joined, read)
        if kind not in _NEGATED:
            raise InvalidInputError(f"expected a known type of filter, found `{kind[:40]}` at {place}")
        kind = _NEGATED[kind] if negated else kind
        bound = self._bound(kind, wire, place)
        listed = self._long_list(wire, place) if bound is not None and kind in {"in", "not-in"} else None
        return FilterPredicate({**wire, "type": kind}, bound, listed)

    def _constant(self, value: Any, place: str) -> bool:
        if not isinstance(value, bool):
            raise InvalidInputError(f"expected true or false, found {value!r:.80} at {place}.value")
        return value

    def _bound(self, kind: str, wire: dict[str, Any], place: str) -> Predicate | None:
        """The bound predicate; None for a transformed column."""
        column = self._column(wire, place)
        if column is None:
            return None
        try:
            return bind(_parsed(kind, column, wire, self._names.schema.find(column).type, place), self._names.schema)
        except UnsupportedError:
            return None
        except InvalidInputError as error:
            raise error if place in str(error) else InvalidInputError(f"{error} at {place}") from error

    def _long_list(self, wire: dict[str, Any], place: str) -> LongList | None:
        """The values of a bound predicate; None if they are few, or of a type without one order."""
        literals = _listed(wire)
        column = self._column(wire, place)
        if column is None or len(literals) < _LONG:
            return None
        field = self._names.schema.names[column]
        if field.type in _UNORDERED:
            return None
        located = (
            (locate(read_literal(literal, field.type, place), field.type, column), literal) for literal in literals
        )
        pairs = sorted(((p.value, literal) for p, literal in located if p.side == 0), key=itemgetter(0))
        return LongList(field, [value for value, _ in pairs], [literal for _, literal in pairs])

    def _column(self, wire: dict[str, Any], place: str) -> str | None:
        """The column of a predicate; None if it is on a transform of one."""
        key = next((k for k in ("term", "child", "left") if k in wire), "term")
        term, place = wire.get(key), f"{place}.{key}"
        if isinstance(term, dict):
            if term.get("type") != "reference":
                if not isinstance(term.get("type"), str):
                    raise InvalidInputError(f"expected a term with a type, found {term!r:.80} at {place}")
                return None
            term = term.get("name", term.get("term", term.get("id")))
        if isinstance(term, int) and not isinstance(term, bool) and term in self._names.schema.names_by_id:
            return self._names.schema.names_by_id[term]
        if not isinstance(term, str):
            raise InvalidInputError(f"expected the name of a column, found {term!r:.80} at {place}")
        try:
            return self._names.find(term)
        except NotFoundError as error:
            raise InvalidInputError(f"{error} at {place}", hints=error.hints) from error


def _parts(wire: dict[str, Any], kind: str, place: str) -> list[tuple[Any, str]]:
    """The parts of a chain of one kind, in order, however deep it is nested."""
    parts: list[tuple[Any, str]] = []
    waiting: list[tuple[Any, str]] = [(wire, place)]
    while waiting:
        part, at = waiting.pop()
        if isinstance(part, dict) and part.get("type") == kind and (part is wire or {"left", "right"} <= part.keys()):
            waiting += [(part.get(side), f"{at}.{side}") for side in ("right", "left")]
        else:
            parts.append((part, at))
    return parts


def _listed(wire: dict[str, Any]) -> Any:
    values = wire.get("values")
    return values.get("values") if isinstance(values, dict) else values


def _parsed(kind: str, column: str, wire: dict[str, Any], type_: IcebergType, place: str) -> Predicate:
    match kind:
        case "is-null":
            return IsNull(column)
        case "not-null":
            return Not(IsNull(column))
        case "is-nan":
            return IsNan(column)
        case "not-nan":
            return Or(Not(IsNan(column)), IsNull(column))
        case "in" | "not-in":
            listed = _listed(wire)
            if not isinstance(listed, list):
                raise InvalidInputError(f"expected a list of values, found {listed!r:.80} at {place}.values")
            literals = (read_literal(value, type_, f"{place}.values[{n}]") for n, value in enumerate(listed))
            among = IsIn(column, tuple(literals))
            return among if kind == "in" else Or(Not(among), IsNull(column))
    key = "value" if "value" in wire else "right"
    literal = read_literal(wire.get(key), type_, f"{place}.{key}")
    if kind in {"starts-with", "not-starts-with"}:
        starts = StartsWith(column, literal)
        return starts if kind == "starts-with" else Or(Not(starts), IsNull(column))
    compared = Comparison(column, _COMPARED[kind], literal)
    return Or(compared, IsNull(column)) if kind == "not-eq" else compared


_MICRO = 1000
_NOT_NUMBERS = {"NaN", "Infinity", "-Infinity"}


def read_literal(wire: Any, type_: IcebergType, place: str) -> Any:
    """A literal for a column of the type; InvalidInputError with its place for what is none.

    Whole numbers are days for dates and, as in Java, microseconds for times of every precision; bytes are hexadecimal.
    """
    if isinstance(wire, dict):
        wire, place = wire.get("value"), f"{place}.value"
    if wire is None or isinstance(wire, dict | list):
        raise InvalidInputError(f"expected a literal, found {wire!r:.80} at {place}")
    match type_, wire:
        case _, bool():
            return wire
        case PrimitiveType("date"), int():
            return Instant(Fraction(wire * NANOS_PER_DAY))
        case PrimitiveType("time"), int():
            return TimeOfDay(Fraction(wire * _MICRO))
        case PrimitiveType("timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns"), int():
            return Instant(Fraction(wire * _MICRO))
        case PrimitiveType("float" | "double"), str() if wire in _NOT_NUMBERS:
            return float(wire)
        case PrimitiveType("binary") | FixedType(), str():
            try:
                return bytes.fromhex(wire)
            except ValueError as error:
                raise InvalidInputError(f"expected hexadecimal text, found `{wire[:40]}` at {place}") from error
    return wire
