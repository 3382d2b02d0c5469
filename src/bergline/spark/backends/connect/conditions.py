"""Conditions over Spark Connect, where no optimizer can be asked: columns as they are sent, and SQL text."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sqlglot
from pyspark.sql import Column
from sqlglot import exp

from bergline.errors import BerglineError
from bergline.expressions.parse import parse_tree
from bergline.expressions.predicate import (
    Always,
    And,
    Comparison,
    ComparisonOperator,
    IsIn,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from bergline.expressions.sql_predicates import MIRRORED, function_predicate, null_safe_equal
from bergline.expressions.times import NANOS_PER_DAY, Instant
from bergline.format.schema.schema import Schema
from bergline.spark.backends.connect.plain_predicates import Conjunction, Negation, Outline, PlainPredicates, Value
from bergline.sql.text.names import parse_name

_NANOS_PER_MICRO = 1000
_OPERATORS: dict[str, ComparisonOperator] = {"==": "=", "=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LITERALS: dict[str, Callable[[Any], Value]] = {
    "null": lambda _: Value("null", None),
    "boolean": lambda v: Value("boolean", bool(v)),
    **dict.fromkeys(("byte", "short", "integer", "long"), lambda v: Value("whole", int(v))),
    "double": lambda v: Value("double", float(v)),
    "string": lambda v: Value("string", str(v)),
    "binary": lambda v: Value("binary", bytes(v)),
    "date": lambda days: Value("date", Instant(Fraction(days * NANOS_PER_DAY))),
    "timestamp": lambda micros: Value("timestamp", Instant(Fraction(micros * _NANOS_PER_MICRO))),
    "timestamp_ntz": lambda micros: Value("timestamp_ntz", Instant(Fraction(micros * _NANOS_PER_MICRO))),
}


def known_part(condition: Column | str, schema: Schema, qualifier: str | None, client: Any) -> Predicate | None:
    """What holds for every row that a condition keeps; None if nothing is known."""
    tree = _readable(condition, client)
    return None if tree is None else PlainPredicates(schema, _outline, qualifier).known_part(tree)


def exact_part(condition: Column | str, schema: Schema, client: Any, qualifier: str | None = None) -> Predicate | None:
    """What holds for exactly the rows that a condition keeps; None if we cannot tell."""
    tree = _readable(condition, client)
    return None if tree is None else PlainPredicates(schema, _outline, qualifier).exact(tree)


def outline_of_text(tree: Any) -> Outline:
    """How a condition in SQL, as sqlglot has parsed it, is put together."""
    match tree:
        case exp.Paren():
            return outline_of_text(tree.this)
        case exp.And() | exp.Or():
            return Conjunction([tree.this, tree.expression], all=isinstance(tree, exp.And))
        case exp.Not():
            return Negation(tree.this)
    if any(cast.is_type("timestamp", "timestamptz", "timestampntz", "time") for cast in tree.find_all(exp.Cast)):
        return None  # which moment that is depends on the session's zone
    try:
        return _with_kinds(parse_tree(tree, ""))
    except BerglineError:
        return None


def is_plain_text(text: str) -> bool:
    """Whether settings cannot change how Spark reads the quotes of a text."""
    return "\\" not in text and '"' not in text


def _readable(condition: Column | str, client: Any) -> Any:
    """A column as it is sent, or SQL text as sqlglot parses it; None if it cannot be read for certain."""
    if not isinstance(condition, str):
        return condition.to_plan(client)  # type: ignore[operator]
    if not is_plain_text(condition):
        return None
    try:
        return sqlglot.parse_one(condition, dialect="spark", into=exp.Condition)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None


def _outline(condition: Any) -> Outline:
    return outline_of_text(condition) if isinstance(condition, exp.Expression) else _outline_of_column(condition)


def _outline_of_column(expression: Any) -> Outline:
    """How a condition is put together, as Spark Connect sends it."""
    match expression.WhichOneof("expr_type"):
        case "literal":
            return Always(expression.literal.boolean) if expression.literal.HasField("boolean") else None
        case "unresolved_attribute" | "unresolved_extract_value":
            column = _column(expression)
            return None if column is None else Comparison(column, "=", Value("boolean", True))
        case "expression_string":
            tree = _readable(expression.expression_string.expression, None)
            return None if tree is None else outline_of_text(tree)
        case "unresolved_function":
            call = expression.unresolved_function
            return _outline_of_call(call.function_name.lower(), list(call.arguments))
    return None


def _outline_of_call(name: str, arguments: list[Any]) -> Outline:
    match name, arguments:
        case "and" | "or", [_, _]:
            return Conjunction(arguments, all=name == "and")
        case "not" | "!", [part]:
            return Negation(part)
        case "isnull" | "isnotnull" | "isnan", [child]:
            column = _column(child)
            return None if column is None else function_predicate(name, column)
        case "in", [child, *others]:
            column, literals = _column(child), [_literal(other) for other in others]
            return None if column is None or None in literals else IsIn(column, tuple(literals))
        case "startswith", [child, prefix]:
            column, literal = _column(child), _literal(prefix)
            return StartsWith(column, literal.value) if column and literal and literal.kind == "string" else None
        case _, [left, right]:
            return _comparison(name, left, right)
    return None


def _comparison(name: str, left: Any, right: Any) -> Predicate | None:
    column, literal, swapped = _column(left), _literal(right), False
    if column is None:
        column, literal, swapped = _column(right), _literal(left), True
    if column is None or literal is None:
        return None
    if name == "<=>":
        return null_safe_equal(column, literal, is_null=literal.kind == "null")
    if name in {"!=", "<>"}:
        return Not(Comparison(column, "=", literal))
    operator = _OPERATORS.get(name)
    return None if operator is None else Comparison(column, MIRRORED[operator] if swapped else operator, literal)


def _column(expression: Any) -> str | None:
    """The name of a column or of a field inside structs; names with dots in them are not understood."""
    match expression.WhichOneof("expr_type"):
        case "unresolved_attribute":
            try:
                parts = parse_name(expression.unresolved_attribute.unparsed_identifier, "a column")
            except BerglineError:
                return None
            return None if any("." in part for part in parts) else ".".join(parts)
        case "unresolved_extract_value":
            value = expression.unresolved_extract_value
            around, field = _column(value.child), _literal(value.extraction)
            return f"{around}.{field.value}" if around and field and field.kind == "string" else None
    return None


def _literal(expression: Any) -> Value | None:
    if expression.WhichOneof("expr_type") != "literal":
        return None
    kind = expression.literal.WhichOneof("literal_type")
    if kind == "decimal":
        return _decimal(expression.literal.decimal)
    return _LITERALS[kind](getattr(expression.literal, kind)) if kind in _LITERALS else None


def _decimal(literal: Any) -> Value | None:
    number = Decimal(literal.value)
    exponent = number.as_tuple().exponent
    return Value("decimal", number) if isinstance(exponent, int) and -exponent <= literal.scale else None


def _with_kinds(predicate: Predicate) -> Predicate | None:
    """A predicate of SQL text with what Spark takes its literals for; None if it has one of another type."""
    match predicate:
        case Comparison(column, op, literal):
            value = _kind_of(literal)
            return None if value is None else Comparison(column, op, value)
        case IsIn(column, literals):
            values = [_kind_of(literal) for literal in literals]
            return None if None in values else IsIn(column, tuple(values))
        case Not(child):
            inner = _with_kinds(child)
            return None if inner is None else Not(inner)
        case And(left, right) | Or(left, right):
            first, second = _with_kinds(left), _with_kinds(right)
            return None if first is None or second is None else type(predicate)(first, second)
    return predicate


def _kind_of(literal: Any) -> Value | None:
    match literal:
        case None:
            return Value("null", None)
        case bool():
            return Value("boolean", literal)
        case int():
            return Value("whole", literal) if -(2**63) <= literal < 2**63 else None
        case Decimal():
            return Value("decimal", literal)
        case float():
            return Value("double", literal)
        case str():
            return Value("string", literal)
        case bytes():
            return Value("binary", literal)
        case Instant():  # a day: times are left out before
            return Value("date", literal)
    return None


_WITH_OTHER_ROWS = ("joins", "laterals", "pivots", "sample", "match", "connect", "prewhere")


class _WithoutBraces(dict[str, str]):
    """Each name as it is, without its braces."""

    def __missing__(self, key: str) -> str:
        return key


def known_filters(text: str, schemas: Mapping[str, Schema]) -> dict[str, Predicate]:
    """For tables that stand as `{names}` in a text, what holds for all rows that it uses, where that is known."""
    if not is_plain_text(text):
        return {}
    try:
        tree = sqlglot.parse_one(text.format_map(_WithoutBraces()), dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return {}
    found = {}
    for name, alias, condition in _simple_reads(tree):
        if name in schemas:
            known = PlainPredicates(schemas[name], outline_of_text, alias).known_part(condition)
            if known is not None:
                found[name] = known
    return found


def _simple_reads(tree: Any) -> Iterator[tuple[str, str, Any]]:
    """Every SELECT with a WHERE on one table alone: the table, what its columns may be qualified by, the condition."""
    for select in tree.find_all(exp.Select):
        source, where = select.args.get("from_") or select.args.get("from"), select.args.get("where")
        if source is None or where is None or any(select.args.get(part) for part in _WITH_OTHER_ROWS):
            continue
        table = source.this
        if isinstance(table, exp.Table) and not any(v for k, v in table.args.items() if k not in {"this", "alias"}):
            yield table.name, table.alias_or_name, where.this
