"""Predicates from SQL text such as `amount > 5 AND region IN ('eu', 'us')`, as Spark reads it."""

import math
from typing import Any

import sqlglot
from sqlglot import exp

from bergline.errors import InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.expressions.literals import nan_hint
from bergline.expressions.parse_literal import is_literal, parse_literal, render_sql
from bergline.expressions.predicate import (
    UNKNOWN,
    Always,
    And,
    Comparison,
    ComparisonOperator,
    IsIn,
    IsNull,
    Not,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from bergline.expressions.sql_predicates import MIRRORED, function_predicate, null_safe_equal

_COMPARISONS: dict[type[exp.Expression], ComparisonOperator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_UNDERSTOOD = (
    "=, !=, <, <=, >, >=, <=>, IN, BETWEEN, LIKE 'prefix%', startswith, isnan, IS [NOT] NULL, IS [NOT] TRUE, "
    "boolean columns, AND, OR and NOT are supported"
)


def parse_predicate(text: str) -> Predicate:
    """Parse a predicate; SqlSyntaxError or UnsupportedError if the text is not one."""
    try:
        tree = syntax_tree(text, "filter")
    except RecursionError as error:
        raise UnsupportedError(f"expected a filter with less nesting, found {len(text)} characters of it") from error
    return parse_tree(tree, text)


def parse_tree(tree: Any, text: str) -> Predicate:
    """Convert a sqlglot expression to a predicate; UnsupportedError if it is not one."""
    try:
        return _predicate(tree, text)
    except RecursionError as error:
        raise UnsupportedError(f"expected a filter with less nesting, found {len(text)} characters of it") from error


def syntax_tree(text: str, what: str) -> Any:
    """Sqlglot's tree of a condition or value; SqlSyntaxError for other text. The caller handles RecursionError."""
    if not text.strip():
        article = "an" if what[0] in "aeiou" else "a"
        raise SqlSyntaxError(f"expected {article} {what}, found empty text", line=1, column=1)
    try:
        return sqlglot.parse_one(text, dialect="spark", into=exp.Condition)
    except RecursionError:
        raise
    except sqlglot.errors.ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise SqlSyntaxError(
            f"cannot read the {what} `{text}` near `{place.get('highlight') or text}`",
            line=place.get("line") or 1,
            column=place.get("col") or 1,
        ) from error
    except Exception as error:  # sqlglot raises various internal errors on some malformed texts
        raise SqlSyntaxError(f"cannot read the {what} `{text}`", line=1, column=1) from error


def _predicate(tree: Any, text: str) -> Predicate:
    match tree:
        case exp.Paren():
            return _predicate(tree.this, text)
        case exp.Not():
            return Not(_predicate(tree.this, text))
        case exp.And():
            return all_of([_predicate(part, text) for part in _chain(tree, exp.And)])
        case exp.Or():
            return any_of([_predicate(part, text) for part in _chain(tree, exp.Or)])
        case exp.Boolean():
            return Always(bool(tree.this))
        case exp.Null():
            return UNKNOWN
        case exp.Column():
            return Comparison(_column(tree, text), "=", True)
        case exp.Is():
            return _is(tree, text)
        case exp.In() if tree.expressions:
            return IsIn(_column(tree.this, text), tuple(parse_literal(e, text) for e in tree.expressions))
        case exp.In() if not any(tree.args.get(kind) for kind in ("query", "unnest", "field")):
            raise InvalidInputError(
                f"expected at least one value in IN (…), found `{render_sql(tree)}` in the filter `{text}`"
            )
        case exp.Between():
            column = _column(tree.this, text)
            low, high = parse_literal(tree.args["low"], text), parse_literal(tree.args["high"], text)
            return And(Comparison(column, ">=", low), Comparison(column, "<=", high))
        case exp.Like():
            return _like(tree, "\\", text)
        case exp.Escape() if isinstance(tree.this, exp.Like):
            return _like(tree.this, parse_literal(tree.expression, text), text)
        case exp.StartsWith():
            prefix = parse_literal(tree.expression, text)
            if isinstance(prefix, str):
                return StartsWith(_column(tree.this, text), prefix)
        case exp.IsNan():
            return function_predicate("isnan", _column(tree.this, text))
        case exp.NullSafeEQ():
            return _null_safe(tree, text)
        case exp.NullSafeNEQ():
            return Not(_null_safe(tree, text))
    if op := _COMPARISONS.get(type(tree)):
        column, literal, swapped = _operands(tree, text)
        return Comparison(column, MIRRORED[op] if swapped else op, literal)
    raise _unsupported(tree, text)


def _chain(tree: Any, kind: type[exp.Expression]) -> list[Any]:
    """The operands of `a AND b AND c`, which the tree nests to the left."""
    parts = []
    while type(tree) is kind:
        parts.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(parts)]


def _is(tree: exp.Is, text: str) -> Predicate:
    match tree.expression:
        case exp.Null():
            return IsNull(_column(tree.this, text))
        case exp.Boolean() as truth:
            return null_safe_equal(_column(tree.this, text), bool(truth.this), is_null=False)
    raise _unsupported(tree, text)


def _like(tree: exp.Like, escape: Any, text: str) -> Predicate:
    pattern = parse_literal(tree.expression, text)
    if not isinstance(pattern, str) or not isinstance(escape, str) or len(escape) != 1:
        raise _unsupported(tree, text)
    found = parse_like(_column(tree.this, text), pattern, escape, text)
    return Not(found) if tree.args.get("negate") else found


def _null_safe(tree: Any, text: str) -> Predicate:
    """`<=>`: false where one side is null and true where both are."""
    column, literal, _ = _operands(tree, text)
    if isinstance(literal, float) and math.isnan(literal):
        return function_predicate("isnan", column)
    return null_safe_equal(column, literal, is_null=literal is None)


def _operands(tree: Any, text: str) -> tuple[str, Any, bool]:
    """The column and the literal of a comparison, and whether their order is reversed."""
    left, right = _unwrapped(tree.this), _unwrapped(tree.expression)
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        nan = next((c for c, other in ((left, right), (right, left)) if other.name.lower() == "nan"), None)
        raise UnsupportedError(
            f"expected a column and a literal, found the two columns of `{render_sql(tree)}` in the filter `{text}`",
            hints=[f"text is written in quotes: '{right.name}'"] if nan is None else [nan_hint(_column(nan, text))],
        )
    if isinstance(left, exp.Column):
        return _column(left, text), parse_literal(right, text), False
    if isinstance(right, exp.Column) and is_literal(left):
        return _column(right, text), parse_literal(left, text), True
    raise _unsupported(tree, text)


def _unwrapped(tree: Any) -> Any:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _column(tree: Any, text: str) -> str:
    tree = _unwrapped(tree)
    if not isinstance(tree, exp.Column) or not all(isinstance(part, exp.Identifier) for part in tree.parts):
        raise UnsupportedError(f"expected a column, found `{render_sql(tree)}` in the filter `{text}`")
    return ".".join(part.name for part in tree.parts)


def _unsupported(tree: Any, text: str) -> UnsupportedError:
    return UnsupportedError(
        f"expected comparisons of columns with literals, found `{render_sql(tree)}` in the filter `{text}`",
        hints=[_UNDERSTOOD],
    )


def parse_like(column: str, pattern: str, escape: str, text: str) -> Predicate:
    """`abc%` is a prefix, `abc` an equality; UnsupportedError for wildcards elsewhere."""
    literal, wildcards = _split(pattern, escape, text)
    if wildcards.strip("%"):
        raise UnsupportedError(
            f"expected a LIKE pattern with % at its end only, found '{pattern}' in the filter `{text}`",
            hints=["`LIKE 'abc%'` and `LIKE 'abc'` are supported"],
        )
    return StartsWith(column, literal) if wildcards else Comparison(column, "=", literal)


def _split(pattern: str, escape: str, text: str) -> tuple[str, str]:
    """The characters before the first wildcard, and the rest of the pattern."""
    literal = []
    position = 0
    while position < len(pattern) and (found := pattern[position]) not in "%_":
        if found == escape:
            position += 1
            found = pattern[position : position + 1]
            if not found or found not in {"%", "_", escape}:  # as in Spark
                raise InvalidInputError(
                    f"expected %, _ or {escape} after {escape}, found '{pattern}' in the filter `{text}`"
                )
        literal.append(found)
        position += 1
    return "".join(literal), pattern[position:]
