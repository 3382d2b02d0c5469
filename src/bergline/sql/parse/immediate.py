"""EXECUTE IMMEDIATE: a statement whose text is worked out when it is run."""

import msgspec

from bergline.sql.text.cursor import Cursor


class Immediate(msgspec.Struct, frozen=True):
    """The expression that gives the text, and the arguments of USING as they are written."""

    statement: str
    arguments: str | None = None
    named: bool = False
    """Whether the arguments have names."""
    into: bool = False
    """Whether the result goes to variables."""


def parse_immediate(text: str) -> Immediate | None:
    """EXECUTE IMMEDIATE; None if the text is another kind of statement."""
    cursor = Cursor(text)
    if not cursor.accept("EXECUTE", "IMMEDIATE"):
        return None
    statement, _ = _until(cursor, text, "INTO", "USING")
    into = cursor.accept("INTO")
    if into:
        _until(cursor, text, "USING")
    if not cursor.accept("USING"):
        return Immediate(statement, into=into)
    arguments, named = _until(cursor, text)
    if arguments.startswith("(") and arguments.endswith(")"):
        inner = Cursor(arguments[1:-1])
        arguments, named = _until(inner, arguments[1:-1])
    return Immediate(statement, arguments, named, into)


def _until(cursor: Cursor, text: str, *words: str) -> tuple[str, bool]:
    """The text up to one of the words outside of brackets, and whether there is an AS in it."""
    start = end = cursor.token.start
    depth, named = 0, False
    while not cursor.is_at_end and not (depth == 0 and cursor.token.is_word(*words)):
        named = named or (depth == 0 and cursor.token.is_word("AS"))
        token = cursor.advance()
        depth += token.is_symbol("(") - token.is_symbol(")")
        end = token.end
    return text[start:end], named
