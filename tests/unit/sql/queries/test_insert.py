"""INSERT: what is between INSERT and the rows, and the query that gives them."""

import pytest

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.insert import InsertHead, parse_insert_head
from bergline.sql.queries.query import Insert, OtherStatement, Query
from bergline.sql.queries.rewritten import rewrite_query
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning

ORDERS = ("db", "orders")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO db.orders VALUES (1)", {}),
        ("insert into table db.orders select 1", {}),
        ("INSERT INTO `db`.orders (SELECT 1)", {}),
        ("INSERT INTO db.orders ((SELECT 1))", {}),
        ("INSERT INTO db.orders FROM x SELECT y", {}),
        ("INSERT INTO db.orders TABLE db.other", {}),
        ("INSERT INTO db.orders WITH q AS (SELECT 1) SELECT * FROM q", {}),
        ("INSERT INTO db.orders (id, `a b`) VALUES (1, 2)", {"columns": ("id", "a b")}),
        ("INSERT INTO db.orders BY NAME SELECT 1 AS id", {"by_name": True}),
        ("INSERT OVERWRITE db.orders SELECT 1", {"overwrite": True}),
        ("INSERT WITH SCHEMA EVOLUTION INTO db.orders SELECT 1", {"schema_evolution": True}),
        (
            "insert with schema evolution overwrite table db.orders by name select 1",
            {"overwrite": True, "by_name": True, "schema_evolution": True},
        ),
        (
            "INSERT OVERWRITE db.orders PARTITION (day = date('2026-01-02'), region) SELECT 1",
            {"overwrite": True, "partition": (("day", "date('2026-01-02')"), ("region", None))},
        ),
        (
            "INSERT INTO db.orders PARTITION (region = 'a,)b') (id) SELECT 1",
            {"partition": (("region", "'a,)b'"),), "columns": ("id",)},
        ),
        (
            "INSERT OVERWRITE db.orders PARTITION (p = 1) IF NOT EXISTS SELECT 1",
            {"overwrite": True, "partition": (("p", "1"),), "if_not_exists": True},
        ),
        (
            "INSERT INTO db.orders REPLACE WHERE a IS DISTINCT FROM b AND c IN (1, 2) SELECT 1",
            {"replace_where": "a IS DISTINCT FROM b AND c IN (1, 2)"},
        ),
        (
            "INSERT INTO db.orders WITH (branch = 'x', `snapshot-property.a` = 'b', 'k' true) VALUES (1)",
            {"options": {"branch": "x", "snapshot-property.a": "b", "k": "true"}},
        ),
    ],
)
def test_head_says_what_goes_where(text: str, expected: dict[str, object]) -> None:
    head = parse_insert_head(SqlText(text))
    assert isinstance(head, InsertHead)
    assert head == InsertHead(head.start, head.end, ORDERS, **({"overwrite": False} | expected))
    assert isinstance(meaning(text), Insert)


@pytest.mark.parametrize("text", ["SELECT 1", "WITH q AS (SELECT 1) SELECT * FROM q", "INSERT OVERWRITE DIRECTORY 'x'"])
def test_other_statements_have_no_head(text: str) -> None:
    assert parse_insert_head(SqlText(text)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO db.orders", "expected SELECT, VALUES, TABLE, FROM or WITH, found the end of the statement"),
        ("INSERT INTO VALUES (1)", "line 1, column 21"),
        ("INSERT INTO db.orders PARTITION (p = ) SELECT 1", "expected a value for the partition column, found `\\)`"),
        ("INSERT INTO db.orders PARTITION (p = (1 SELECT 1", "expected `\\)`"),
        ("INSERT INTO db.orders REPLACE WHERE SELECT 1", "expected a condition, found `SELECT`"),
        ("INSERT INTO db.orders REPLACE WHERE a = 1", "line 1, column 42"),
        ("INSERT INTO db.orders (id,) VALUES (1)", "expected a column name"),
        ("INSERT INTO db.orders\nWITH (branch = x)\nVALUES (1)", "a value for the option, found `x` at line 2"),
    ],
)
def test_broken_heads_say_what_was_expected_and_where(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError, match=message):
        parse_insert_head(SqlText(text))
    statement = meaning(text)
    assert isinstance(statement, OtherStatement)
    assert isinstance(statement.error, SqlSyntaxError)


def test_source_keeps_its_lines_and_the_queries_before_insert() -> None:
    insert = meaning("WITH q AS (SELECT 1)\nINSERT INTO db.orders\n  (id)\nSELECT * FROM q")
    assert isinstance(insert, Insert)
    assert [line.strip() for line in insert.source.text.splitlines()] == [
        "WITH q AS (SELECT 1)",
        "",
        "",
        "SELECT * FROM q",
    ]


def test_table_in_place_of_a_query_is_found() -> None:
    query = meaning("TABLE db.orders")
    assert isinstance(query, Query)
    assert rewrite_query(query, {query.tables[0]: "f"}).text == "TABLE {f}"
    insert = meaning("INSERT INTO s.t TABLE db.orders")
    assert isinstance(insert, Insert)
    assert rewrite_query(insert.whole, {insert.whole.tables[0]: "f"}).text == "INSERT INTO s.t TABLE {f}"


@pytest.mark.parametrize(
    ("text", "overwrite", "columns", "source"),
    [
        ("INSERT INTO db.orders VALUES (1, 'a;b')", False, None, "VALUES (1, 'a;b')"),
        ("INSERT INTO TABLE db.orders SELECT * FROM x.y;", False, None, "SELECT * FROM x.y"),
        ("INSERT OVERWRITE db.orders SELECT 1", True, None, "SELECT 1"),
        ("INSERT OVERWRITE TABLE db.orders (id, `a b`) SELECT 1, 2", True, ("id", "a b"), "SELECT 1, 2"),
        ("INSERT INTO db.orders (SELECT 1)", False, None, "(SELECT 1)"),
        (
            "WITH q AS (SELECT 1) INSERT INTO db.orders SELECT * FROM q",
            False,
            None,
            "WITH q AS (SELECT 1) SELECT * FROM q",
        ),
    ],
)
def test_insert_is_split_into_target_and_source(text: str, overwrite: bool, columns: object, source: str) -> None:
    insert = meaning(text)
    assert isinstance(insert, Insert)
    assert (insert.table, insert.overwrite, insert.columns, " ".join(insert.source.text.split())) == (
        ("db", "orders"),
        overwrite,
        columns,
        source,
    )


def test_insert_into_another_table_still_finds_what_it_reads() -> None:
    insert = meaning("INSERT INTO spark_table SELECT * FROM db.orders VERSION AS OF 'v1'")
    assert isinstance(insert, Insert | OtherStatement)
    insert = meaning("INSERT INTO s.t SELECT * FROM db.orders VERSION AS OF 'v1'")
    assert isinstance(insert, Insert)
    assert [use.name for use in insert.whole.tables] == [("db", "orders")]
    assert (
        rewrite_query(insert.whole, {insert.whole.tables[0]: "f"}).text
        == "INSERT INTO s.t SELECT * FROM {f} AS `orders`"
    )
