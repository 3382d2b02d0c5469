"""The assignments of UPDATE and MERGE, `SET a = 1, b.c = DEFAULT`, and expressions as places in a statement's text.

Expressions are left to the engine: only where each begins and ends is found, by tokens.
"""

from collections.abc import Callable

import msgspec

from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, SqlText, Token, TokenKind

Ends = Callable[[Cursor], bool]
"""Whether an expression ends before the current token, which is outside of parentheses and CASE … END."""
_OPENING, _CLOSING = "([{", ")]}"


class Expression(msgspec.Struct, frozen=True):
    """Where an expression begins and ends in the text of its statement."""

    start: int
    end: int

    def text(self, sql: SqlText) -> str:
        """The expression as it was written."""
        return sql.text[self.start : self.end]


class Assignment(msgspec.Struct, frozen=True):
    """`a.b = value`: the name, which may begin with the table's, and the value; None for the word DEFAULT."""

    target: Name
    start: int
    """Where the name stands in the text."""
    value: Expression | None


def parse_assignments(cursor: Cursor, ends: Ends) -> tuple[Assignment, ...]:
    """One or more assignments, up to where the last value ends."""
    found = [_assignment(cursor, ends)]
    while cursor.accept_symbol(","):
        found.append(_assignment(cursor, ends))
    return tuple(found)


def take_value(cursor: Cursor, ends: Ends) -> Expression | None:
    """An expression, or None for the word DEFAULT alone."""
    first = cursor.token
    value = take_expression(cursor, "a value", ends)
    return None if first.is_word("DEFAULT") and first.end == value.end else value


def take_expression(cursor: Cursor, what: str, ends: Ends) -> Expression:
    """An expression: to a comma, a closing parenthesis, a semicolon or what `ends` knows, outside of all nesting."""
    start = end = cursor.token.start
    nesting: list[Token] = []
    before: Token | None = None
    while not (not nesting and _stops(cursor, ends)):
        token = cursor.token
        if token.kind is TokenKind.END:
            cursor.fail("`END`" if nesting[-1].is_word("CASE") else "a closing parenthesis")
        is_field = before is not None and before.is_symbol(".")
        if _opens(token) or (token.is_word("CASE") and not is_field):
            nesting.append(token)
        elif _closes(token, nesting) and not is_field:
            nesting.pop()
        end, before = token.end, cursor.advance()
    if start == end:
        cursor.fail(what)
    return Expression(start, end)


def _assignment(cursor: Cursor, ends: Ends) -> Assignment:
    start = cursor.token.start
    target = cursor.expect_dotted_name("a column name")
    cursor.expect_symbol("=")
    return Assignment(target, start, take_value(cursor, ends))


def _stops(cursor: Cursor, ends: Ends) -> bool:
    token = cursor.token
    if token.kind is TokenKind.END or (token.kind is TokenKind.SYMBOL and token.text in (",", ")", ";")):
        return True
    return ends(cursor)


def _opens(token: Token) -> bool:
    return token.kind is TokenKind.SYMBOL and token.text in _OPENING


def _closes(token: Token, nesting: list[Token]) -> bool:
    if not nesting:
        return False
    if nesting[-1].is_word("CASE"):
        return token.is_word("END")
    return token.kind is TokenKind.SYMBOL and token.text in _CLOSING
