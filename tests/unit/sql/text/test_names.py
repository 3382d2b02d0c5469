"""Names in SQL text."""

import pytest

from bergline.errors import SqlSyntaxError
from bergline.sql.text.names import dotted_names, loose_names, parse_name
from bergline.sql.text.tokens import SqlText


def test_name_is_split_into_its_parts() -> None:
    assert parse_name("lake.`a.b`.`c``d`", "a name") == ("lake", "a.b", "c`d")


@pytest.mark.parametrize("text", ["", "a.", "a b", "'a'", "a..b", "`a"])
def test_what_is_no_name_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_name(text, "a name")


def test_names_of_two_or_more_parts_are_found() -> None:
    sql = SqlText("MERGE INTO db.t USING (SELECT x.*, 'a.b' FROM `c d`.e) ON t.id = 1.5 AND single")
    assert dotted_names(sql) == (("db", "t"), ("c d", "e"), ("t", "id"))


def test_names_are_found_in_text_that_has_no_tokens() -> None:
    assert loose_names("SELECT * FROM db.t JOIN `a b`.c WHERE s = 'open") == (("db", "t"), ("a b", "c"))
