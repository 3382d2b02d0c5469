"""Statements around a query."""

import msgspec
import pytest

from bergline.sql.queries.query import Query, QueryWrapper
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("CREATE TEMP VIEW v AS ", "CREATE VIEW"),
        ("create or replace global temporary view v (a comment 'AS', b) COMMENT 'x' AS\n", "CREATE VIEW"),
        ("EXPLAIN ", "EXPLAIN"),
        ("/* why */ EXPLAIN FORMATTED ", "EXPLAIN"),
        ("DESCRIBE QUERY ", "DESCRIBE QUERY"),
        ("DESC ", "DESCRIBE QUERY"),
        ("CACHE TABLE v AS ", "CACHE TABLE"),
        ("CACHE LAZY TABLE v OPTIONS ('a' = 'AS') ", "CACHE TABLE"),
    ],
)
def test_query_is_found_behind_the_words_of_a_statement(head: str, kind: str) -> None:
    text, query = f"{head}SELECT id FROM db.orders", meaning("SELECT id FROM db.orders")
    assert isinstance(query, Query)
    placed = msgspec.structs.replace(query, within=(text, len(head)) if kind == "CREATE VIEW" else ("", 0))
    assert meaning(text) == QueryWrapper(kind, SqlText(head), placed)  # type: ignore[arg-type]
