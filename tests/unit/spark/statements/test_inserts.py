"""DEFAULT in the rows of an INSERT."""

import pytest

from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, STRING, NestedField
from bergline.spark.statements.inserts import source_with_defaults
from bergline.sql.queries.query import Insert
from support.fixtures.sql_statements import meaning

ID, STATE, N = (
    NestedField(1, "id", True, INT),
    NestedField(2, "state", False, STRING, None, None, "it's new"),
    NestedField(3, "n", False, INT, None, None, 7),
)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("VALUES (1, DEFAULT, default), (2, 'x', DEFAULT)", r"VALUES (1, 'it\'s new', 7), (2, 'x', 7)"),
        ("(n, id) VALUES (DEFAULT, 1)", "VALUES (7, 1)"),
        ("PARTITION (state = 'x') SELECT DEFAULT, DEFAULT FROM t", "SELECT CAST(NULL AS int), 7 FROM t"),
        ("VALUES (1, concat('a', default), DEFAULT)", "VALUES (1, concat('a', default), 7)"),
        ("SELECT 1, x.default, DEFAULT", "SELECT 1, x.default, 7"),
        ("BY NAME SELECT DEFAULT AS n", "SELECT DEFAULT AS n"),
        ("SELECT 1, 'DEFAULT', 2", "SELECT 1, 'DEFAULT', 2"),
    ],
)
def test_default_is_that_of_its_column(text: str, source: str) -> None:
    insert = meaning(f"INSERT INTO db.t {text}")
    assert isinstance(insert, Insert)
    found = source_with_defaults(insert, Schema(fields=(ID, STATE, N)))
    assert " ".join(found.text.split()) == source
