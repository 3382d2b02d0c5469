"""Statements that are refused on lake tables."""

import pytest

from bergline import Lake, Table
from bergline.errors import NotFoundError, SqlSyntaxError, UnsupportedError
from bergline.sql.names.resolve import Lakes
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.other import check_not_of_lakes
from support.fixtures.sql_statements import meaning


def check(lake: Lake, text: str) -> None:
    statement = meaning(text)
    assert isinstance(statement, OtherStatement)
    check_not_of_lakes(statement, Lakes({"lake": lake}, "lake"))


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("text", "keyword", "instead"),
    [
        ("REPAIR TABLE db.orders", "REPAIR", "docs/reference/statements.md"),
        ("MSCK REPAIR TABLE db.orders", "MSCK", "docs/reference/statements.md"),
    ],
)
def test_statement_on_a_lake_table_is_refused_with_what_to_do(
    lake: Lake, text: str, keyword: str, instead: str
) -> None:
    with pytest.raises(UnsupportedError, match=f"cannot run {keyword} with") as caught:
        check(lake, text)
    assert instead in caught.value.hints[0]


def test_table_that_is_not_there_is_said_before_the_statement_is_refused(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError, match=r"db\.order"):
        check(lake, f"REFRESH {str(orders.name)[:-1]}")


@pytest.mark.usefixtures("orders")
def test_statement_that_does_not_parse_is_an_error_only_where_it_is_about_a_lake(lake: Lake) -> None:
    with pytest.raises(SqlSyntaxError):
        check(lake, "ALTER TABLE db.orders CREATE BRANCH")
    check(lake, "ALTER TABLE elsewhere.orders CREATE BRANCH")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("text", ["DELETE FROM elsewhere.orders LIMIT 1", "REFRESH orders", "SET a = 1"])
def test_statement_on_what_is_not_ours_is_left_to_the_engine(lake: Lake, text: str) -> None:
    check(lake, text)
