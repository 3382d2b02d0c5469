"""The query for the rows that a DELETE or an UPDATE is about."""

import pyarrow as pa
import pytest

from bergline import Lake
from bergline.errors import NotFoundError
from bergline.format.types.types import LONG, NestedField
from bergline.spark.query_text.assigned_fields import AssignedField
from bergline.spark.statements.row_changes import set_fields, target_rows
from bergline.sql.analyze import analyze
from bergline.sql.queries.query import RowLevel
from bergline.sql.queries.rewritten import rewrite_query
from bergline.sql.text.tokens import SqlText

NESTED = pa.schema([("id", pa.int64()), ("who", pa.struct([("name", pa.string()), ("age", pa.int32())]))])


def statement(text: str) -> RowLevel:
    found = analyze(SqlText(text))
    assert isinstance(found, RowLevel)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DELETE FROM db.t WHERE id = 1", " FROM {f0} AS `t` SELECT `_file`, `_pos` WHERE id = 1"),
        ("DELETE FROM db.t o -- gone\n;", " FROM {f0} o SELECT `_file`, `_pos` -- gone\n"),
        (
            "UPDATE db.t o SET a = 1, o.b = f(x, '{y}') WHERE c IN (SELECT d FROM db.u)",
            "FROM {f0} o SELECT `_file`, `_pos`, (1), (f(x, '{{y}}')) WHERE c IN (SELECT d FROM {f1} AS `u`)",
        ),
        ("UPDATE db.t SET a = DEFAULT, b = 2", "FROM {f0} AS `t` SELECT `_file`, `_pos`, (CAST(NULL AS bigint)), (2)"),
        (
            "UPDATE db.t SET a = 1, b = DEFAULT, c = DEFAULT WHERE d",
            "FROM {f0} AS `t` SELECT `_file`, `_pos`, (1), (CAST(NULL AS bigint)), (CAST(NULL AS bigint)) WHERE d",
        ),
        (
            "WITH q AS (SELECT 1) DELETE FROM db.t WHERE id IN (SELECT * FROM q)",
            "WITH q AS (SELECT 1)  FROM {f0} AS `t` SELECT `_file`, `_pos` WHERE id IN (SELECT * FROM q)",
        ),
    ],
)
def test_statements_become_queries(text: str, expected: str) -> None:
    found = statement(text)
    frames = {use: f"f{i}" for i, use in enumerate(found.whole.tables)}
    fields = [AssignedField(a.target, NestedField(1, "x", False, LONG)) for a in found.assignments]
    edits = target_rows(found, ["_file", "_pos"], fields)
    assert rewrite_query(found.whole, frames, edits).text == expected


def test_assignments_find_their_columns(lake: Lake) -> None:
    schema = lake.create_table("db.t", NESTED).schema
    found = set_fields(statement("UPDATE db.t o SET o.ID = 1, who.AGE = 2, o.who.name = 'x'"), schema)
    assert [assigned.path for assigned in found] == [("id",), ("who", "age"), ("who", "name")]
    with pytest.raises(NotFoundError, match=r"no column `t\.id`.* at line 2, column 6"):
        set_fields(statement("UPDATE db.t AS o\n SET t.id = 1"), schema)
