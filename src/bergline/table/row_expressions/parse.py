"""Row expressions from SQL text such as `amount * 2` or `source.seen > target.seen`, as Spark reads it.

docs/reference/filters-and-rows.md lists what is supported; everything else is refused before any row is read.
"""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec
from sqlglot import exp

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.parse import syntax_tree
from bergline.expressions.parse_literal import parse_literal, render_sql
from bergline.expressions.times import Instant, TimeOfDay
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
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
)
from bergline.table.row_expressions import arithmetic, comparisons, functions
from bergline.table.row_expressions.casts import cast_expression
from bergline.table.row_expressions.rows import (
    ColumnPlace,
    RowExpression,
    column_expression,
    literal_expression,
    null_expression,
)

_COMPARISONS: Final = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_ARITHMETIC: Final = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}
_TEXT_FUNCTIONS: Final = {exp.Upper: "upper", exp.Lower: "lower", exp.Length: "length"}
_MOST_DIGITS: Final = 38
_NANOS_PER_DAY: Final = 86_400_000_000_000
_NANOS_PER_MICRO: Final = 1000
_TYPES: Final[dict[str, IcebergType]] = {
    "boolean": BOOLEAN,
    "int": INT,
    "bigint": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMPTZ,
    "timestamptz": TIMESTAMPTZ,
    "timestampltz": TIMESTAMPTZ,
    "timestampntz": TIMESTAMP,
    "text": STRING,
    "varchar": STRING,
    "binary": BINARY,
    "varbinary": BINARY,
}
_UNDERSTOOD: Final = (
    "columns, literals, + - * / % DIV ||, comparisons, <=>, IN, BETWEEN, LIKE, IS [NOT] NULL|TRUE|FALSE, AND, OR, NOT, "
    "CASE, CAST, if, coalesce, nvl, ifnull, nullif, greatest, least, abs, round, upper, lower, trim, ltrim, rtrim, "
    "length, substring, concat, startswith, isnan, isnull, isnotnull, current_date and current_timestamp are understood"
)


class Names(msgspec.Struct, frozen=True):
    """The columns that an expression may name, by the alias of their side."""

    sides: Mapping[str, Schema]
    now: dt.datetime
    """The value of `current_timestamp()` in the whole statement."""

    def only(self, *aliases: str) -> "Names":
        """Only the names of some sides."""
        return Names({alias: schema for alias, schema in self.sides.items() if alias in aliases}, self.now)


def parse_expression(text: str, names: Names) -> RowExpression:
    """Parse and bind an expression; an error says what in it is wrong or not supported."""
    try:
        return _Binder(text, names).bind(parse_sql(text))
    except RecursionError as error:
        raise _too_deep(text) from error


def parse_condition(text: str, names: Names) -> RowExpression:
    """Parse and bind an expression that is true, false or unknown."""
    return comparisons.condition(parse_expression(text, names), text)


def bind_tree(tree: exp.Expression, text: str, names: Names) -> RowExpression:
    """Bind a part of a parsed expression."""
    try:
        return _Binder(text, names).bind(tree)
    except RecursionError as error:
        raise _too_deep(text) from error


def number_literal(value: Any, text: str) -> RowExpression:
    """A number in the type that SQL gives it: the narrowest one."""
    if isinstance(value, float):
        return literal_expression(DOUBLE, value, text)
    if isinstance(value, int):
        for type_, bits in ((INT, 32), (LONG, 64)):
            if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
                return literal_expression(type_, value, text)
    exact = Decimal(value)
    return literal_expression(arithmetic.exact_decimal(exact, text), exact, text)


def parse_sql(text: str) -> Any:
    """The syntax tree of an expression; SqlSyntaxError for other text."""
    try:
        return syntax_tree(text, "expression")
    except RecursionError as error:
        raise _too_deep(text) from error


def conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    """The parts of `a AND b AND …`, without parentheses around them."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def column_place(tree: Any, names: Names, text: str) -> tuple[ColumnPlace, tuple[str, ...], IcebergType]:
    """The column that a name refers to, and the path of a field inside it."""
    parts = [part.name for part in tree.parts]
    alias = next((a for a in names.sides if a.casefold() == parts[0].casefold()), None)
    if alias is not None and len(parts) > 1:
        return _find(names.sides[alias], alias, parts[1:], text)
    found = []
    for side, schema in names.sides.items():
        try:
            found.append(_find(schema, side, parts, text))
        except NotFoundError:
            continue
    if len(found) > 1:
        both = " and ".join(f"`{place.side}.{'.'.join(parts)}`" for place, _, _ in found)
        raise InvalidInputError(
            f"expected a column of one side, found `{'.'.join(parts)}`, which may be {both}, in `{text}`"
        )
    if not found:
        known = [name for schema in names.sides.values() for name in schema.names]
        name = ".".join(parts)
        raise NotFoundError(f"no column `{name}` in `{text}`", kind="column", name=name, known=known)
    return found[0]


class _Binder:
    """Binds the nodes of one expression."""

    def __init__(self, text: str, names: Names) -> None:
        self._text = text
        self._names = names

    def bind(self, tree: Any) -> RowExpression:
        text = render_sql(tree)
        if operator := _COMPARISONS.get(type(tree)):
            return comparisons.comparison(operator, self.bind(tree.this), self.bind(tree.expression), text)  # type: ignore[arg-type]
        if operator := _ARITHMETIC.get(type(tree)):
            return arithmetic.binary_arithmetic(operator, self.bind(tree.this), self.bind(tree.expression), text)  # type: ignore[arg-type]
        if function := _TEXT_FUNCTIONS.get(type(tree)):
            return functions.text_function(function, self.bind(tree.this), text)
        return self._logic(tree, text) or self._value(tree, text) or self._function(tree, text) or self._refuse(tree)

    def _logic(self, tree: Any, text: str) -> RowExpression | None:
        match tree:
            case exp.Not():
                return comparisons.negation(self.bind(tree.this), text)
            case exp.And():
                return comparisons.conjunction([self.bind(part) for part in _chain(tree, exp.And)], text)
            case exp.Or():
                return comparisons.disjunction([self.bind(part) for part in _chain(tree, exp.Or)], text)
            case exp.Is(expression=exp.Null()):
                return comparisons.is_null(self.bind(tree.this), text)
            case exp.Is(expression=exp.Boolean() as truth):
                return comparisons.is_truth(self.bind(tree.this), bool(truth.this), text)
            case exp.NullSafeEQ():
                return comparisons.null_safe_equality(self.bind(tree.this), self.bind(tree.expression), text)
            case exp.NullSafeNEQ():
                same = comparisons.null_safe_equality(self.bind(tree.this), self.bind(tree.expression), text)
                return comparisons.negation(same, text)
            case exp.In() if tree.expressions:
                return comparisons.membership(self.bind(tree.this), [self.bind(e) for e in tree.expressions], text)
            case exp.Between():
                value, low, high = (self.bind(part) for part in (tree.this, tree.args["low"], tree.args["high"]))
                bounds = [
                    comparisons.comparison(">=", value, low, text),
                    comparisons.comparison("<=", value, high, text),
                ]
                return comparisons.conjunction(bounds, text)
            case exp.Like():
                return self._like(tree, "\\", text)
            case exp.Escape() if isinstance(tree.this, exp.Like):
                return self._like(tree.this, str(tree.expression.this), text)
            case exp.IsNan():
                return comparisons.is_nan(self.bind(tree.this), text)
            case exp.StartsWith():
                return functions.starts_with(self.bind(tree.this), self.bind(tree.expression), text)
        return None

    def _value(self, tree: Any, text: str) -> RowExpression | None:
        match tree:
            case exp.Paren():
                return self.bind(tree.this)
            case exp.Column() if all(isinstance(part, exp.Identifier) for part in tree.parts):
                place, path, type_ = column_place(tree, self._names, self._text)
                return column_expression(place, path, type_, text)
            case exp.Literal() | exp.RawString() | exp.Boolean() | exp.Null() | exp.HexString():
                return self._literal(tree, text)
            case exp.Neg() if isinstance(tree.this, exp.Literal):
                return self._literal(tree, text)
            case exp.Neg():
                return arithmetic.negated(self.bind(tree.this), text)
            case exp.Cast() if isinstance(tree.this, exp.Literal) and not tree.args.get("safe") and _is_typed(tree):
                return self._literal(tree, text)
            case exp.Cast() if not tree.args.get("safe"):
                return cast_expression(self.bind(tree.this), self._type(tree.to), text)
        return None

    def _function(self, tree: Any, text: str) -> RowExpression | None:
        match tree:
            case exp.DPipe():
                return functions.concatenation([self.bind(tree.this), self.bind(tree.expression)], text)
            case exp.Concat() if tree.args.get("safe"):
                return functions.concatenation([self.bind(e) for e in tree.expressions], text)
            case exp.Case():
                return self._case(tree, text)
            case exp.If():
                otherwise = tree.args.get("false")
                rest = null_expression() if otherwise is None else self.bind(otherwise)
                taken = comparisons.condition(self.bind(tree.this), text)
                return functions.branches([(taken, self.bind(tree.args["true"])), (None, rest)], text)
            case exp.Coalesce():
                return functions.coalesce([self.bind(e) for e in (tree.this, *tree.expressions)], text)
            case exp.Nullif():
                return functions.nullif(self.bind(tree.this), self.bind(tree.expression), text)
            case exp.Greatest() | exp.Least():
                values = [self.bind(e) for e in (tree.this, *tree.expressions)]
                return functions.extreme(values, greatest=isinstance(tree, exp.Greatest), text=text)
            case exp.Abs():
                return arithmetic.absolute(self.bind(tree.this), text)
            case exp.Round():
                return self._round(tree, text)
            case exp.Trim() if tree.args.get("expression") is None:
                sides = {"LEADING": "ltrim", "TRAILING": "rtrim"}
                name = sides.get(str(tree.args.get("position") or "").upper(), "trim")
                return functions.text_function(name, self.bind(tree.this), text)
            case exp.Substring():
                start, length = (tree.args.get(part) for part in ("start", "length"))
                bound = None if length is None else self.bind(length)
                return functions.substring(self.bind(tree.this), self.bind(start), bound, text)
            case exp.CurrentDate() if tree.this is None:
                return literal_expression(DATE, (self._names.now.date() - dt.date(1970, 1, 1)).days, text)
            case exp.CurrentTimestamp() if tree.this is None:
                micros = (self._names.now - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
                return literal_expression(TIMESTAMPTZ, micros, text)
            case exp.Anonymous() if str(tree.this).lower() in {"isnull", "isnotnull"} and len(tree.expressions) == 1:
                found = comparisons.is_null(self.bind(tree.expressions[0]), text)
                return found if str(tree.this).lower() == "isnull" else comparisons.negation(found, text)
        return None

    def _refuse(self, tree: Any) -> RowExpression:
        shown = render_sql(tree)
        inside = "" if shown == self._text else f" in `{self._text}`"
        hints = ["for a quote inside text write \\', as in 'it\\'s'"] if isinstance(tree, exp.Concat) else [_UNDERSTOOD]
        raise UnsupportedError(
            f"expected an expression that can be evaluated here, found `{shown}`{inside}", hints=hints
        )

    def _case(self, tree: exp.Case, text: str) -> RowExpression:
        found: list[functions.Branch] = []
        for branch in tree.args["ifs"]:
            if tree.this is None:
                taken = comparisons.condition(self.bind(branch.this), text)
            else:
                taken = comparisons.comparison("=", self.bind(tree.this), self.bind(branch.this), text)
            found.append((taken, self.bind(branch.args["true"])))
        default = tree.args.get("default")
        found.append((None, null_expression() if default is None else self.bind(default)))
        return functions.branches(found, text)

    def _like(self, tree: exp.Like, escape: str, text: str) -> RowExpression:
        pattern = parse_literal(tree.expression, self._text)
        if not isinstance(pattern, str) or len(escape) != 1:
            self._refuse(tree)
        found = comparisons.like(self.bind(tree.this), _with_backslashes(pattern, escape, self._text), text)
        return comparisons.negation(found, text) if tree.args.get("negate") else found

    def _round(self, tree: exp.Round, text: str) -> RowExpression:
        given = tree.args.get("decimals")
        scale = 0 if given is None else parse_literal(given, self._text)
        if not isinstance(scale, int):
            self._refuse(tree)
        return arithmetic.rounded_number(self.bind(tree.this), scale, text)

    def _literal(self, tree: Any, text: str) -> RowExpression:
        if isinstance(tree, exp.Literal) and not tree.is_string and "e" in str(tree.this).lower():
            return literal_expression(DOUBLE, float(str(tree.this)), text)
        value = parse_literal(tree, self._text)
        match value:
            case None:
                return null_expression(text)
            case bool():
                return literal_expression(BOOLEAN, value, text)
            case int() | float() | Decimal():
                return number_literal(value, text)
            case str():
                return literal_expression(STRING, value, text)
            case bytes():
                return literal_expression(BINARY, value, text)
            case TimeOfDay(nanoseconds):
                return literal_expression(TIME, self._units(nanoseconds / _NANOS_PER_MICRO, text), text)
            case Instant(nanoseconds) if tree.is_type("date"):
                return literal_expression(DATE, self._units(nanoseconds / _NANOS_PER_DAY, text), text)
            case Instant(nanoseconds):
                type_ = TIMESTAMP if tree.is_type("timestampntz") else TIMESTAMPTZ
                return literal_expression(type_, self._units(nanoseconds / _NANOS_PER_MICRO, text), text)
        return self._refuse(tree)

    def _units(self, number: Any, text: str) -> int:
        if number.denominator != 1:
            raise InvalidInputError(f"expected at most six fractional digits, found {text} in `{self._text}`")
        return int(number)

    def _type(self, tree: exp.DataType) -> IcebergType:
        name = str(tree.this.value).lower()
        if name == "decimal":
            given = [int(p.name) for p in tree.expressions]
            precision, scale = (given + [10, 0][len(given) :])[:2]
            if not 1 <= precision <= _MOST_DIGITS or not 0 <= scale <= precision:
                raise InvalidInputError(
                    f"expected a decimal of 1 to 38 digits, found `{render_sql(tree)}` in `{self._text}`"
                )
            return DecimalType(precision, scale)
        if name not in _TYPES or (name == "varchar" and tree.expressions):
            raise UnsupportedError(f"expected a type that can be cast to, found `{render_sql(tree)}` in `{self._text}`")
        return _TYPES[name]


def _chain(tree: Any, kind: type[exp.Expression]) -> list[Any]:
    """The operands of `a AND b AND c`, which the tree nests to the left."""
    parts = []
    while type(tree) is kind:
        parts.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(parts)]


def _is_typed(tree: exp.Cast) -> bool:
    """Whether a cast of a literal is a date or time literal: `DATE '…'`."""
    return bool(tree.this.is_string and tree.is_type("date", "time", "timestamp", "timestamptz", "timestampntz"))


def _find(schema: Schema, side: str, parts: list[str], text: str) -> tuple[ColumnPlace, tuple[str, ...], IcebergType]:
    name = ".".join(parts)
    try:
        field = schema.find(name)
    except NotFoundError as error:
        raise NotFoundError(f"no column `{name}` in `{text}`", kind="column", name=name, known=schema.names) from error
    path = schema.paths.get(field.id)
    if path is None:
        raise UnsupportedError(f"expected a column outside lists and maps, found `{name}` in `{text}`")
    return ColumnPlace(side, path[0]), tuple(path[1:]), field.type


def _with_backslashes(pattern: str, escape: str, text: str) -> str:
    """A LIKE pattern with another escape character as one with backslashes."""
    found, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            character = pattern[position : position + 1]
            if not character or character not in {"%", "_", escape}:  # as in Spark
                raise InvalidInputError(f"expected %, _ or {escape} after {escape}, found '{pattern}' in `{text}`")
            found.append("\\" + character)
        else:
            found.append("\\\\" if character == "\\" else character)
        position += 1
    return "".join(found)


def _too_deep(text: str) -> UnsupportedError:
    return UnsupportedError(f"expected an expression with less nesting, found {len(text)} characters of it")
