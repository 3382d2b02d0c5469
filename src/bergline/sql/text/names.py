"""Names in SQL text."""

import re
from collections.abc import Iterator

from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, SqlText, TokenKind

_LOOSE_NAME = re.compile(r"(?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))+")


def dotted_names(sql: SqlText) -> tuple[Name, ...]:
    """Every name of two or more parts in the text."""
    names: list[Name] = []
    parts: list[str] = []
    expects_part = True
    for token in sql.tokens:
        is_part = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        if is_part and expects_part:
            parts.append(token.value)
            expects_part = False
        elif token.is_symbol(".") and parts and not expects_part:
            expects_part = True
        else:
            names += [tuple(parts)] if len(parts) > 1 else []
            parts = [token.value] if is_part else []
            expects_part = not is_part
    return tuple(names)


def called_functions(sql: SqlText) -> Iterator[str]:
    """The names of functions that are called without a qualifier."""
    tokens = sql.tokens
    for place, token in enumerate(tokens[:-1]):
        is_name = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        if is_name and tokens[place + 1].is_symbol("(") and not (place and tokens[place - 1].is_symbol(".")):
            yield token.value


def loose_names(text: str) -> tuple[Name, ...]:
    """Possible names in text that cannot be tokenized."""
    return tuple(tuple(part.strip("`") for part in name.split(".")) for name in _LOOSE_NAME.findall(text))


def parse_name(text: str, what: str) -> Name:
    """The parts of a name that makes up a whole text."""
    cursor = Cursor(SqlText(text))
    parts = cursor.expect_dotted_name(what)
    cursor.expect_end()
    return parts
