"""The registry of statements: what is ours, and what is not."""

import pytest
from sql_statements import meaning, rows_of

from bergline import Lake
from bergline.sql.queries.query import OtherStatement


@pytest.mark.parametrize(
    "text",
    [
        "SHOW FUNCTIONS",
        "DESCRIBE FUNCTION x",
        "COMMENT ON COLUMN db.t.a IS 'x'",
        "CREATE FUNCTION f AS 'x'",
        "CREATE EXTERNAL TABLE t (a INT)",
        "DROP FUNCTION f",
    ],
)
def test_what_we_do_not_know_stays_sparks(text: str) -> None:
    statement = meaning(text)
    assert isinstance(statement, OtherStatement)
    assert (statement.error, statement.subject) == (None, None)


def test_tables_elsewhere_are_not_ours(lake: Lake) -> None:
    assert rows_of(lake, "ALTER TABLE elsewhere.orders CREATE BRANCH b") is None
    assert rows_of(lake, "DROP TABLE elsewhere.orders") is None
    assert rows_of(lake, "CREATE TABLE elsewhere.t (id INT)") is None
