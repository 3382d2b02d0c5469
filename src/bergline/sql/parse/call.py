"""Parser for CALL: procedures with positional or named arguments that are literals or parameters."""

from decimal import Decimal
from typing import Any

from bergline.errors import InvalidInputError, near_names
from bergline.sql.statements.statements import CallProcedure, Moment, Name, SqlParameter
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.timestamps import parse_moment
from bergline.sql.text.tokens import TokenKind, syntax_error

_SYSTEM = "system"


def parse_call(text: str) -> CallProcedure | None:
    """The call that the text is, perhaps with an error in it; None if it is another kind of statement."""
    cursor = Cursor(text)
    if not cursor.accept("CALL"):
        return None
    start = cursor.token.start
    procedure = cursor.expect_dotted_name("a procedure like `system.fast_forward`")
    if procedure[-2:-1] and procedure[-2].lower() != _SYSTEM and near_names(procedure[-2], [_SYSTEM]):
        place = text.index(procedure[-2], start)
        return CallProcedure(
            procedure, error=syntax_error(text, place, f"expected `{_SYSTEM}`, found `{procedure[-2]}`", [_SYSTEM])
        )
    try:
        return _arguments(cursor, procedure)
    except InvalidInputError as error:
        return CallProcedure(procedure, error=error)


def _arguments(cursor: Cursor, procedure: Name) -> CallProcedure:
    cursor.expect_symbol("(")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    while not cursor.accept_symbol(")"):
        if positional or named:
            cursor.expect_symbol(",")
        name = _argument_name(cursor)
        if name is None:
            if named:
                cursor.fail("a named argument after named ones")
            positional.append(_value(cursor))
        elif name in named:
            raise InvalidInputError(f"expected argument `{name}` once, found it twice")
        else:
            named[name] = _value(cursor)
    cursor.expect_end()
    return CallProcedure(procedure, tuple(positional), named)


def _argument_name(cursor: Cursor) -> str | None:
    """The name before `=>`, if there is one."""
    if cursor.token.kind is not TokenKind.WORD or not cursor.following.is_symbol("=>"):
        return None
    name = cursor.advance().text.lower()
    cursor.advance()
    return name


def _value(cursor: Cursor) -> Any:
    negative = cursor.accept_symbol("-")
    token = cursor.token
    if token.kind is TokenKind.NUMBER:
        cursor.advance()
        number = int(token.text) if token.text.isdecimal() else Decimal(token.text)
        return -number if negative else number
    if negative:
        cursor.fail("a number")
    if token.kind is TokenKind.STRING:
        return cursor.advance().value
    if token.is_word("TRUE", "FALSE"):
        return cursor.advance().is_word("TRUE")
    if token.is_word("NULL"):
        cursor.advance()
        return None
    if cursor.accept("TIMESTAMP") or cursor.accept("DATE"):
        return Moment(parse_moment(cursor.advance().value if cursor.token.kind is TokenKind.STRING else ""))
    if cursor.accept("NOW") or cursor.accept("CURRENT_TIMESTAMP"):
        if cursor.accept_symbol("("):
            cursor.expect_symbol(")")
        return Moment(None)
    if cursor.accept_symbol("?"):
        return SqlParameter(None)
    if token.is_symbol(":") and cursor.following.kind is TokenKind.WORD:
        cursor.advance()
        return SqlParameter(cursor.advance().text)
    if cursor.accept("ARRAY"):
        return _array(cursor)
    if cursor.accept("MAP"):
        return _map(cursor)
    return cursor.fail("text, a number, true, false, null, TIMESTAMP '…', now(), array(…), map(…), `:name` or `?`")


def _array(cursor: Cursor) -> tuple[Any, ...]:
    cursor.expect_symbol("(")
    values: list[Any] = []
    while not cursor.accept_symbol(")"):
        if values:
            cursor.expect_symbol(",")
        values.append(_value(cursor))
    return tuple(values)


def _map(cursor: Cursor) -> dict[Any, Any]:
    """Keys and values in turn."""
    values = _array(cursor)
    if len(values) % 2 or any(isinstance(key, dict) for key in values[::2]):
        raise InvalidInputError(f"expected keys and values in turn in map(…), found {len(values)} values")
    return dict(zip(values[::2], values[1::2], strict=True))
