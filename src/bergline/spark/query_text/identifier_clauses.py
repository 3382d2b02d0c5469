"""`IDENTIFIER(…)`: names that are evaluated from constants and arguments when a statement is run."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bergline.errors import BerglineError
from bergline.quoting import dotted
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.names import parse_name
from bergline.sql.text.tokens import Name, SqlText, Token

Evaluate = Callable[[str, Any], Any]
"""Evaluates an expression with arguments; None if it has no value."""


class _Clause(msgspec.Struct, frozen=True):
    """Where a clause and its expression stand, and which of the statement's `?` are in it."""

    start: int
    end: int
    expression: tuple[int, int]
    markers: tuple[int, int]


def with_identifiers(sql: SqlText, args: Any, lakes: Lakes, evaluate: Evaluate) -> tuple[SqlText, Any]:
    """The text with names of lakes in place of the clauses that mean them, and the arguments that are left."""
    if "identifier" not in sql.text.lower():
        return sql, args
    try:
        clauses = _clauses(sql.tokens)
    except BerglineError:
        return sql, args
    edits = []
    for clause in reversed(clauses):
        first, last = clause.markers
        own = args[first:last] if isinstance(args, list) else args
        name = _parsed(evaluate(sql.text[slice(*clause.expression)], own or None))
        if name is None or not lakes.owns(name):
            continue
        edits.append((clause.start, clause.end, dotted(name)))
        if isinstance(args, list):
            args = [*args[:first], *args[last:]] or None
    return sql.edited(edits), args


def _clauses(tokens: Sequence[Token]) -> list[_Clause]:
    found, markers, place = [], 0, 0
    while place < len(tokens):
        token = tokens[place]
        opens = token.is_word("IDENTIFIER") and tokens[place + 1].is_symbol("(")
        closing = _closing(tokens, place + 1) if opens else None
        if closing is None:
            markers += token.is_symbol("?")
            place += 1
            continue
        inside = tokens[place + 2 : closing]
        before, markers = markers, markers + sum(t.is_symbol("?") for t in inside)
        expression = (tokens[place + 1].end, tokens[closing].start)
        found.append(_Clause(token.start, tokens[closing].end, expression, (before, markers)))
        place = closing + 1
    return found


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += tokens[place].is_symbol("(") - tokens[place].is_symbol(")")
        if depth == 0:
            return place
    return None


def _parsed(value: Any) -> Name | None:
    if not isinstance(value, str):
        return None
    try:
        return parse_name(value, "a name")
    except BerglineError:
        return None
