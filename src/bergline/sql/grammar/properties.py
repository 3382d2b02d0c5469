"""Property lists: `('key' = 'value', other.key = 5)`."""

from bergline.errors import InvalidInputError
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import TokenKind

_CLAUSES = {"provider": "USING", "location": "LOCATION"}
_RESERVED = "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY"


def parse_properties(cursor: Cursor) -> dict[str, str]:
    """Keys and values, in parentheses."""
    cursor.expect_symbol("(")
    found: dict[str, str] = {}
    while True:
        key = _key(cursor)
        cursor.accept_symbol("=")
        if key in found:
            raise InvalidInputError(f"expected property `{key}` once, found it twice", condition="DUPLICATE_KEY")
        found[key] = _value(cursor)
        if cursor.accept_symbol(")"):
            return found
        if not cursor.accept_symbol(","):
            cursor.fail("`,`, `)`")


def parse_property_keys(cursor: Cursor) -> tuple[str, ...]:
    """Keys, in parentheses."""
    cursor.expect_symbol("(")
    keys = [_key(cursor)]
    while not cursor.accept_symbol(")"):
        cursor.expect_symbol(",")
        keys.append(_key(cursor))
    return tuple(keys)


def parse_property_key(cursor: Cursor) -> str:
    """One key, in parentheses."""
    cursor.expect_symbol("(")
    key = _key(cursor)
    cursor.expect_symbol(")")
    return key


def check_table_properties(properties: dict[str, str]) -> dict[str, str]:
    """Refuse keys that have a clause of their own, or that users cannot set."""
    for key, clause in _CLAUSES.items():
        if key in properties:
            message = f"expected no property `{key}`, found one: use the {clause} clause"
            raise InvalidInputError(message, condition=_RESERVED)
    if "owner" in properties:
        message = "expected no property `owner`, found one: it is the user who creates the table"
        raise InvalidInputError(message, condition=_RESERVED)
    return properties


def _key(cursor: Cursor) -> str:
    if cursor.token.kind is TokenKind.STRING:
        return cursor.expect_text("a property's name")
    return ".".join(cursor.expect_dotted_name("a property's name"))


def _value(cursor: Cursor) -> str:
    if cursor.token.kind is TokenKind.STRING:
        return cursor.expect_text("a property's value")
    if cursor.token.kind is TokenKind.NUMBER:
        return cursor.advance().text
    if cursor.token.is_word("TRUE", "FALSE"):
        return cursor.advance().text.lower()
    return cursor.fail("a value in quotes, a number, `TRUE`, `FALSE`")
