"""Partition and sort terms, parsed into the text that tables take, such as `bucket(16, id)`."""

from bergline.errors import UnsupportedError
from bergline.quoting import back_quoted
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, TokenKind

TRANSFORMS = ("identity", "years", "months", "days", "hours", "bucket", "truncate")
_KNOWN = {*TRANSFORMS, "year", "month", "day", "hour", "date", "date_hour"}
_OLD_NAMES = {"date": "days", "date_hour": "hours"}


def parse_partition_term(cursor: Cursor) -> str:
    """A column, or a transform of one with a number before or after it."""
    column = cursor.expect_dotted_name("a column or a transform of one")
    if not cursor.token.is_symbol("("):
        return column_term(column)
    name = ".".join(column)
    if name.lower() not in _KNOWN:
        raise UnsupportedError(
            f"expected one of the transforms {', '.join(TRANSFORMS)}, found `{name}`",
        )
    cursor.advance()
    arguments: list[str] = []
    while not cursor.accept_symbol(")"):
        if arguments:
            cursor.expect_symbol(",")
        if cursor.token.kind is TokenKind.NUMBER:
            arguments.append(str(cursor.expect_whole_number()))
        else:
            arguments.append(column_term(cursor.expect_dotted_name("a column, a whole number")))
    return f"{_OLD_NAMES.get(name.lower(), name.lower())}({', '.join(arguments)})"


def parse_sort_terms(cursor: Cursor) -> tuple[str, ...]:
    """Terms with a direction and an order for nulls, with or without parentheses."""
    bracket = cursor.accept_symbol("(")
    terms = [_sort_term(cursor)]
    while cursor.accept_symbol(","):
        terms.append(_sort_term(cursor))
    if bracket:
        cursor.expect_symbol(")")
    return tuple(terms)


def column_term(column: Name) -> str:
    """A column as a term has it, in back-quotes if it would be read as something else."""
    text = ".".join(column)
    return text if text.replace(".", "_").isidentifier() else back_quoted(text)


def _sort_term(cursor: Cursor) -> str:
    term = parse_partition_term(cursor)
    for word in ("ASC", "DESC"):
        if cursor.accept(word):
            term = f"{term} {word.lower()}"
    if cursor.accept("NULLS"):
        term = f"{term} nulls {cursor.expect_one_of('FIRST', 'LAST').lower()}"
    return term
