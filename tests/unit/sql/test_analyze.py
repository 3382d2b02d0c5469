"""What statements mean, and what is kept of those that cannot be read."""

import pytest

from bergline.errors import BerglineError
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import OtherStatement, QueryWrapper, RowLevel, TruncateTable
from bergline.sql.queries.rewritten import rewrite_query
from bergline.sql.queries.wrappers import ExplainedChange
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUNCATE TABLE orders", TruncateTable(("orders",))),
        ("SHOW FUNCTIONS", OtherStatement("SHOW", ())),
        ("DROP FUNCTION db.f", OtherStatement("DROP", (("db", "f"),))),
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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DELETE FROM db.t WHERE a = 1", RowLevel),
        ("UPDATE db.t SET a = 1", RowLevel),
        ("MERGE INTO db.t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", MergeInto),
    ],
)
def test_explained_change_is_the_statement_after_its_head(text: str, kind: type) -> None:
    explained = meaning(f"EXPLAIN FORMATTED {text}")
    assert isinstance(explained, ExplainedChange)
    assert explained.head.text == "EXPLAIN FORMATTED "
    assert isinstance(explained.change, kind)
    assert explained.change == meaning(text)


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
    assert isinstance(statement, CreateTable)
    assert isinstance(statement.refusal, BerglineError)
    copy = meaning("CREATE TABLE s.t USING csv CLUSTERED BY (a, b) INTO 4 BUCKETS AS SELECT * FROM db.orders")
    assert isinstance(copy, CreateTable)
    assert copy.whole is not None
    assert rewrite_query(copy.whole, {copy.whole.tables[0]: "f"}).text.endswith("AS SELECT * FROM {f} AS `orders`")


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
