"""What statements mean, and what is kept of those that cannot be read."""

import pytest
from sql_statements import meaning

from bergline.sql.queries.query import OtherStatement, Query, QueryWrapper
from bergline.sql.rewrite.tables import rewrite_query
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.text.tokens import SqlText


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DELETE FROM db.orders WHERE id = 1", OtherStatement("DELETE", (("db", "orders"),), subject=("db", "orders"))),
        ("MERGE INTO orders USING x ON a = b", OtherStatement("MERGE", (), subject=("orders",))),
        ("TRUNCATE TABLE orders", OtherStatement("TRUNCATE", (), subject=("orders",))),
        ("SHOW FUNCTIONS", OtherStatement("SHOW", ())),
        ("DROP VIEW db.v", OtherStatement("DROP", (("db", "v"),))),
        ("CREATE VIEW v AS SELECT * FROM db.orders", OtherStatement("CREATE VIEW", (("db", "orders"),))),
        ("", OtherStatement("", ())),
    ],
)
def test_other_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


def test_explained_insert_knows_its_rows() -> None:
    explained = meaning("EXPLAIN INSERT INTO s.t SELECT id FROM db.orders")
    assert isinstance(explained, QueryWrapper)
    assert explained.source is not None
    assert (explained.target, explained.source.text.strip()) == (("s", "t"), "SELECT id FROM db.orders")
    assert explained.query.text == "INSERT INTO s.t SELECT id FROM db.orders"


def test_create_as_keeps_its_query_and_what_it_reads() -> None:
    text = "CREATE TABLE db.new USING iceberg PARTITIONED BY (a) AS WITH q AS (SELECT 1) SELECT * FROM q, db.old;"
    statement = meaning(text)
    assert isinstance(statement, CreateTable)
    assert statement.source == SqlText("WITH q AS (SELECT 1) SELECT * FROM q, db.old")
    assert statement.query is not None
    assert statement.query.within == (text, text.index("WITH"))
    assert statement.partition_by == ("a",)
    assert statement.whole is not None
    (use,) = statement.whole.tables
    assert text[use.start : use.end] == "db.old"


def test_other_formats_are_sparks_even_where_the_rest_is_not_understood() -> None:
    text = "CREATE TABLE s.t (a INTERVAL DAY) USING parquet CLUSTERED BY (a, b) SORTED BY (c) INTO 4 BUCKETS"
    statement = meaning(text)
    assert isinstance(statement, OtherStatement)
    assert statement.subject is None
    copy = meaning("CREATE TABLE s.t USING parquet AS SELECT * FROM db.orders")
    assert isinstance(copy, Query)
    assert rewrite_query(copy, {copy.tables[0]: "f"}).text.endswith("AS SELECT * FROM {f} AS `orders`")


def test_text_that_cannot_be_read_keeps_its_error_for_later() -> None:
    statement = meaning("SELECT FROM WHERE db.orders")
    assert isinstance(statement, OtherStatement)
    assert statement.tables == (("db", "orders"),)
    assert statement.error is not None
    assert (statement.error.line, statement.error.column) == (1, 17)


def test_text_without_tokens_keeps_its_error_and_its_names() -> None:
    statement = meaning("SELECT * FROM db.orders WHERE s = 'open")
    assert isinstance(statement, OtherStatement)
    assert statement.keyword == "SELECT"
    assert ("db", "orders") in statement.tables
    assert statement.error is not None
