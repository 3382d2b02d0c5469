"""The walk over tokens: what was expected, and where."""

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.query import OtherStatement
from support.fixtures.sql_statements import meaning


def test_errors_count_lines_and_columns() -> None:
    statement = meaning("ALTER TABLE db.t -- all of it\n  ADD COLUMN a INT,\n  b FIRST;")
    assert isinstance(statement, OtherStatement)
    broken = meaning("ALTER TABLE db.t\n  RENAME COLUMN a\n  IN b")
    assert isinstance(broken, OtherStatement)
    assert isinstance(broken.error, SqlSyntaxError)
    assert (broken.error.line, broken.error.column) == (3, 3)
