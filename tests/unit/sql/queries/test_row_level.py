"""DELETE FROM, UPDATE and TRUNCATE TABLE as they are parsed."""

import pytest

from bergline.errors import BerglineError, InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.sql.analyze import analyze
from bergline.sql.queries.query import OtherStatement, Query, RowLevel, TruncateTable
from bergline.sql.queries.read import read_query
from bergline.sql.queries.row_level import read_row_level
from bergline.sql.text.tokens import SqlText


def parse(text: str) -> RowLevel:
    statement = analyze(SqlText(text))
    assert isinstance(statement, RowLevel), statement
    return statement


@pytest.mark.parametrize(
    ("text", "alias", "condition"),
    [
        ("DELETE FROM db.t", None, None),
        ("delete from db.t;", None, None),
        ("DELETE FROM db.t WHERE id = 1", None, "id = 1"),
        ("DELETE FROM db.t AS o WHERE o.id = 1", "o", "o.id = 1"),
        ("DELETE FROM db.t o -- all\n WHERE (a, b) IN (SELECT 1, 2) ;", "o", "(a, b) IN (SELECT 1, 2)"),
        ("WITH q AS (SELECT 1 AS id) DELETE FROM db.t WHERE id = (SELECT id FROM q)", None, "id = (SELECT id FROM q)"),
        ("DELETE FROM db.t `where` WHERE x", "where", "x"),
    ],
)
def test_delete(text: str, alias: str | None, condition: str | None) -> None:
    statement = parse(text)
    assert (statement.keyword, statement.table, statement.alias) == ("DELETE", ("db", "t"), alias)
    assert statement.target.name == ("db", "t")
    assert (statement.condition and statement.condition.text(statement.whole.sql)) == condition


def test_assignments_are_found_with_their_values() -> None:
    text = (
        "UPDATE db.t AS o SET o.a = f(1, 2), `b c`.d = CASE WHEN x THEN 1 END, e = DEFAULT, "
        "g = (SELECT max(x) FROM db.u WHERE y = 1) -- last\nWHERE h = 'WHERE'"
    )
    statement = parse(text)
    sql = statement.whole.sql
    assert [(a.target, a.value and a.value.text(sql)) for a in statement.assignments] == [
        (("o", "a"), "f(1, 2)"),
        (("b c", "d"), "CASE WHEN x THEN 1 END"),
        (("e",), None),
        (("g",), "(SELECT max(x) FROM db.u WHERE y = 1)"),
    ]
    assert statement.condition is not None
    assert statement.condition.text(sql) == "h = 'WHERE'"
    assert [use.name for use in statement.whole.tables] == [("db", "t"), ("db", "u")]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("DELETE db.t WHERE x", SqlSyntaxError, "expected `FROM`"),
        ("DELETE FROM db.t WHERE", SqlSyntaxError, "expected a condition, found the end of the statement"),
        ("DELETE FROM db.t AS o (a)", UnsupportedError, "cannot rename the columns of `db.t`"),
        ("UPDATE db.t", SqlSyntaxError, "expected `SET`"),
        ("UPDATE db.t SET", SqlSyntaxError, "expected a column"),
        ("UPDATE db.t SET a", SqlSyntaxError, "expected `=`"),
        ("UPDATE db.t SET a = ", SqlSyntaxError, "expected a value"),
        ("UPDATE db.t SET a = 1,", SqlSyntaxError, "expected a column"),
        ("UPDATE db.t SET a = 1 WHERE b, c", SqlSyntaxError, "the end of the statement, found `,`"),
        ("TRUNCATE TABLE db.t PARTITION (a)", InvalidInputError, "expected a value for partition column `a`"),
        ("TRUNCATE TABLE db.t PARTITION ()", SqlSyntaxError, "expected a partition column"),
        ("TRUNCATE TABLE db.t now", SqlSyntaxError, "expected the end of the statement, found `now`"),
    ],
)
def test_what_does_not_parse_is_an_error_about_the_table(text: str, kind: type[BerglineError], message: str) -> None:
    statement = read_row_level(SqlText(text), read_query)
    assert isinstance(statement, OtherStatement)
    assert isinstance(statement.error, kind)
    assert message in str(statement.error)
    assert statement.subject == (None if "FROM`" in message else ("db", "t"))


def test_other_texts_are_left_to_others() -> None:
    assert read_row_level(SqlText("WITH q AS (SELECT 1) SELECT * FROM q"), read_query) is None
    assert read_row_level(SqlText("SELECT 1"), read_query) is None
    assert isinstance(analyze(SqlText("WITH q AS (SELECT 1) SELECT * FROM q")), Query)
    assert analyze(SqlText("TRUNCATE TABLE db.t;")) == TruncateTable(("db", "t"))
    truncated = analyze(SqlText("TRUNCATE TABLE db.t PARTITION (a = 1, b = 'x')"))
    assert truncated == TruncateTable(("db", "t"), (("a", "1"), ("b", "'x'")))
