"""Property lists."""

import pytest

from bergline.errors import InvalidInputError, SqlSyntaxError
from bergline.sql.grammar.properties import (
    check_table_properties,
    parse_properties,
    parse_property_key,
    parse_property_keys,
)
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText


def cursor(text: str) -> Cursor:
    return Cursor(SqlText(text))


def test_keys_are_text_or_names_and_values_are_text() -> None:
    text = "('a.b' = 'x', c.d = 5, e TRUE, 'f' = 'y' 'z')"
    assert parse_properties(cursor(text)) == {"a.b": "x", "c.d": "5", "e": "true", "f": "yz"}
    assert parse_property_keys(cursor("('a', b.c)")) == ("a", "b.c")
    assert parse_property_key(cursor("('a.b')")) == "a.b"


def test_key_stands_once() -> None:
    with pytest.raises(InvalidInputError, match="expected property `a` once"):
        parse_properties(cursor("('a' = '1', a = '2')"))


@pytest.mark.parametrize("text", ["()", "('a' = b)", "('a' = '1'", "('a' = '1' 'b' = '2')"])
def test_broken_lists_are_syntax_errors(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_properties(cursor(text))


@pytest.mark.parametrize(("key", "said"), [("provider", "USING"), ("location", "LOCATION"), ("owner", "the user")])
def test_what_is_no_property_of_a_table_is_refused(key: str, said: str) -> None:
    assert check_table_properties({"a": "b"}) == {"a": "b"}
    with pytest.raises(InvalidInputError, match=said):
        check_table_properties({key: "x"})
