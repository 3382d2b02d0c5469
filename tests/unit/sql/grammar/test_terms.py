"""Partition and sort terms, as the text that tables take."""

import pytest

from bergline.errors import SqlSyntaxError, UnsupportedError
from bergline.format.partition.terms import parse_term
from bergline.sql.grammar.terms import column_term, parse_partition_term, parse_sort_terms
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("id", "id"),
        ("a.`b c`", "`a.b c`"),
        ("Bucket(16, id)", "bucket(16, id)"),
        ("truncate(name, 4)", "truncate(name, 4)"),
        ("date(ts)", "days(ts)"),
        ("date_hour(ts)", "hours(ts)"),
    ],
)
def test_term_is_what_tables_take(text: str, term: str) -> None:
    assert parse_partition_term(Cursor(SqlText(text))) == term
    parse_term(term)


def test_sort_terms_have_a_direction_and_a_place_for_nulls() -> None:
    sql = SqlText("(a DESC NULLS LAST, days(b) ASC, c)")
    assert parse_sort_terms(Cursor(sql)) == ("a desc nulls last", "days(b) asc", "c")


@pytest.mark.parametrize("name", ["a", "a b", "a`b", "day(ts)", "a.b"])
def test_column_of_any_name_is_read_again(name: str) -> None:
    assert parse_term(column_term((name,)))[1] == name


@pytest.mark.parametrize(("text", "error"), [("foo(a)", UnsupportedError), ("bucket(4 a)", SqlSyntaxError)])
def test_what_is_no_term_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_partition_term(Cursor(SqlText(text)))
