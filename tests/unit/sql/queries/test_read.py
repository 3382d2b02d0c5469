"""Which names in a query are tables."""

from bergline.sql.queries.query import OtherStatement, Query
from support.fixtures.sql_statements import meaning


def names_read(text: str) -> list[tuple[str, ...]]:
    query = meaning(text)
    assert isinstance(query, Query)
    return [use.name for use in query.tables]


def test_names_of_one_part_are_tables_unless_with_named_them() -> None:
    assert names_read("SELECT * FROM orders o JOIN items ON true") == [("orders",), ("items",)]
    assert names_read("WITH orders AS (SELECT * FROM orders) SELECT * FROM Orders") == [("orders",)]
    assert names_read("WITH a AS (SELECT 1), b AS (SELECT * FROM a JOIN c) SELECT * FROM b, c") == [("c",), ("c",)]
    assert names_read("WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM a") == [("a",)]
    assert names_read("SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q) JOIN q") == [("q",)]
    assert names_read("SELECT * FROM range(5)") == []


def test_query_that_is_nested_too_deeply_could_not_be_read() -> None:
    found = meaning(f"SELECT {'(' * 3000}1{')' * 3000} FROM db.orders")
    assert isinstance(found, OtherStatement)
    assert "expected a query with less nesting" in str(found.error)
    assert ("db", "orders") in found.tables
