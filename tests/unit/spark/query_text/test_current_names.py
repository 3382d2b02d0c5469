"""The calls of the current catalog and schema."""

import pytest

from bergline import Lake
from bergline.spark.query_text.current_names import with_current_names
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.text.tokens import SqlText

CATALOG, SCHEMA = "'lake' AS `current_catalog()`", "'db' AS `current_schema()`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT current_catalog(), CURRENT_DATABASE ( )", f"SELECT {CATALOG}, {SCHEMA}"),
        ("SELECT DISTINCT current_schema() FROM t", f"SELECT DISTINCT {SCHEMA} FROM t"),
        ("SELECT current_schema() s, current_schema() AS t", "SELECT 'db' s, 'db' AS t"),
        ("SELECT concat(a, current_schema()), b", "SELECT concat(a, 'db'), b"),
        ("SELECT (SELECT current_schema()) = 'db'", f"SELECT (SELECT {SCHEMA}) = 'db'"),
        ("SELECT * EXCEPT (a), current_schema() FROM t", f"SELECT * EXCEPT (a), {SCHEMA} FROM t"),
        (
            "SELECT a FROM t WHERE b IN (c, current_schema()) GROUP BY a, current_schema()",
            "SELECT a FROM t WHERE b IN (c, 'db') GROUP BY a, 'db'",
        ),
        ("SELECT 'current_schema()', x.current_schema(), current_schema FROM t -- current_schema()", None),
        ("VALUES (current_schema(), 1)", "VALUES ('db', 1)"),
    ],
)
def test_calls_are_replaced_and_columns_keep_their_names(lake: Lake, text: str, expected: str | None) -> None:
    used = Lakes({"lake": lake}, "lake", Current("lake", ("db",)))
    assert with_current_names(SqlText(text), used) == SqlText(expected or text)
    assert with_current_names(SqlText(text), Lakes({"lake": lake}, "lake")) == SqlText(text)


def test_names_are_written_as_text(lake: Lake) -> None:
    used = Lakes({"it's": lake}, "it's", Current("it's", ("a b", "c")))
    found = with_current_names(SqlText("SELECT current_catalog() AS c, current_schema() AS s"), used)
    assert found.text == "SELECT 'it\\'s' AS c, '`a b`.c' AS s"
