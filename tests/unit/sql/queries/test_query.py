"""Queries as values: what they say of the text that they are part of."""

import pytest

from bergline.sql.queries.query import Insert, Query, QueryWrapper
from bergline.sql.statements.create_table import CreateTable
from support.fixtures.sql_statements import meaning


def query_of(text: str) -> Query:
    match meaning(text):
        case Query() as query:
            return query
        case Insert(source=source):
            return source
        case CreateTable(query=Query() as query):
            return query
        case QueryWrapper(query=query):
            return query
    raise AssertionError(text)


@pytest.mark.parametrize(
    "before", ["INSERT INTO s.t ", "CREATE TABLE s.t USING iceberg AS\n", "CREATE TEMP VIEW v AS ", "CREATE TABLE s.t "]
)
def test_query_knows_where_it_stands_in_its_statement(before: str) -> None:
    text = f"{before}SELECT a FROM db.orders"
    query = query_of(text)
    statement, start = query.within
    assert statement == text
    (use,) = query.tables
    assert text[use.start + start : use.end + start] == "db.orders"
    assert query.text[use.start : use.end] == "db.orders"


def test_query_that_is_a_statement_stands_in_none() -> None:
    assert query_of("SELECT a FROM db.orders").within == ("", 0)
    assert query_of("EXPLAIN SELECT a FROM db.orders").within == ("", 0)
