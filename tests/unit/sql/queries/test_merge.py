"""MERGE: every clause of Spark's grammar, and where its parts stand."""

import pytest

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.assignments import Expression
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import OtherStatement
from support.fixtures.sql_statements import meaning

HEAD = "MERGE INTO db.t AS t USING db.s AS s ON t.id = s.id "


def _merge(text: str) -> MergeInto:
    found = meaning(text)
    assert isinstance(found, MergeInto), found
    return found


def _error(text: str) -> SqlSyntaxError:
    found = meaning(text)
    assert isinstance(found, OtherStatement), found
    assert found.subject == ("db", "t")
    assert isinstance(found.error, SqlSyntaxError)
    return found.error


def _clauses(merge: MergeInto) -> list[tuple[object, ...]]:
    def text(place: Expression | None) -> str | None:
        return None if place is None else place.text(merge.sql)

    return [
        (
            clause.when,
            clause.action,
            text(clause.condition),
            "*" if clause.has_star else [(".".join(a.target), text(a.value)) for a in clause.values or ()],
        )
        for clause in merge.clauses
    ]


def test_all_clauses_with_and_without_conditions() -> None:
    merge = _merge(
        HEAD + "WHEN MATCHED AND s.op = 'd' THEN DELETE\n"
        "WHEN MATCHED AND CASE WHEN s.op = 'x' THEN true ELSE false END THEN UPDATE SET *\n"
        "WHEN MATCHED THEN UPDATE SET t.a = s.a + 1, b.c = CASE WHEN s.b THEN 1 END, d = DEFAULT\n"
        "WHEN NOT MATCHED AND s.n > (SELECT max(n) FROM db.x) THEN INSERT *\n"
        "WHEN NOT MATCHED BY TARGET THEN INSERT (id, t.a, `b c`) VALUES (s.id, f(s.a, 1), DEFAULT)\n"
        "WHEN NOT MATCHED BY SOURCE AND a IS NULL THEN DELETE\n"
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = a + 1;"
    )
    assert _clauses(merge) == [
        ("matched", "delete", "s.op = 'd'", []),
        ("matched", "update", "CASE WHEN s.op = 'x' THEN true ELSE false END", "*"),
        ("matched", "update", None, [("t.a", "s.a + 1"), ("b.c", "CASE WHEN s.b THEN 1 END"), ("d", None)]),
        ("not matched", "insert", "s.n > (SELECT max(n) FROM db.x)", "*"),
        ("not matched", "insert", None, [("id", "s.id"), ("t.a", "f(s.a, 1)"), ("b c", None)]),
        ("not matched by source", "delete", "a IS NULL", []),
        ("not matched by source", "update", None, [("a", "a + 1")]),
    ]
    assert merge.condition.text(merge.sql) == "t.id = s.id"


@pytest.mark.parametrize(
    ("text", "table", "alias", "source", "name", "source_alias"),
    [
        ("db.t USING db.s ON", ("db", "t"), None, "db.s", ("db", "s"), None),
        ("lake.db.t x USING s y ON", ("lake", "db", "t"), "x", "s", ("s",), "y"),
        ("db.t.branch_b AS x USING (SELECT 1 AS id) ON", ("db", "t", "branch_b"), "x", "(SELECT 1 AS id)", None, None),
        ("db.t USING (TABLE db.s) AS `a b` ON", ("db", "t"), None, "(TABLE db.s)", None, "a b"),
        ("db.t USING db.s VERSION AS OF 'v1' s ON", ("db", "t"), None, "db.s VERSION AS OF 'v1'", ("db", "s"), "s"),
        (
            "db.t USING db.s FOR TIMESTAMP AS OF now() - INTERVAL 1 DAY AS s ON",
            ("db", "t"),
            None,
            "db.s FOR TIMESTAMP AS OF now() - INTERVAL 1 DAY",
            ("db", "s"),
            "s",
        ),
    ],
)
def test_target_and_source_have_names_and_aliases(
    text: str, table: object, alias: object, source: str, name: object, source_alias: object
) -> None:
    merge = _merge(f"merge into {text} true WHEN MATCHED THEN DELETE")
    assert (merge.table, merge.alias) == (table, alias)
    found = merge.source
    assert (found.place.text(merge.sql), found.name, found.alias) == (source, name, source_alias)


def test_with_and_schema_evolution() -> None:
    merge = _merge(
        "WITH q AS (SELECT 1 AS id) MERGE WITH SCHEMA EVOLUTION INTO db.t USING q ON true WHEN MATCHED THEN DELETE"
    )
    assert merge.schema_evolution
    assert merge.named_queries is not None
    assert merge.named_queries.text(merge.sql) == "WITH q AS (SELECT 1 AS id)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MERGE INTO db.t USING db.s WHEN MATCHED THEN DELETE", "expected `ON`, found `WHEN`"),
        ("MERGE INTO db.t WHEN MATCHED THEN DELETE", "expected `USING`, found `WHEN`"),
        (HEAD, "expected `WHEN`, found the end of the statement"),
        ("MERGE INTO db.t USING db.s ON WHEN MATCHED THEN DELETE", "expected a condition, found `WHEN`"),
        (HEAD + "WHEN MATCHED THEN INSERT *", "expected `UPDATE` or `DELETE`, found `INSERT`"),
        (HEAD + "WHEN NOT MATCHED THEN DELETE", "expected `INSERT`, found `DELETE`"),
        (HEAD + "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", "expected a column name, found `*`"),
        (HEAD + "WHEN NOT MATCHED BY x THEN INSERT *", "expected `TARGET`, found `x`"),
        (HEAD + "WHEN MATCHED AND THEN DELETE", "expected a condition, found `THEN`"),
        (HEAD + "WHEN MATCHED THEN UPDATE SET a =", "expected a value, found the end of the statement"),
        (HEAD + "WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "expected 2 values, as many as columns, found 1"),
        (HEAD + "WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)", "expected 1 values, as many as columns, found 2"),
        (
            HEAD + "WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET *",
            "expected a condition in every `WHEN MATCHED` but the last, found none",
        ),
        ("MERGE INTO db.t (a) USING db.s ON true WHEN MATCHED THEN DELETE", "expected `USING`, found `(`"),
        ("MERGE INTO db.t AS t (a) USING db.s ON true WHEN MATCHED THEN DELETE", "expected an alias without columns"),
        ("MERGE INTO db.t USING (SELECT 1 ON true", "expected `)`"),
        (HEAD + "WHEN MATCHED THEN DELETE garbage", "expected `WHEN`, found `garbage`"),
    ],
)
def test_what_is_broken_is_one_error(text: str, message: str) -> None:
    assert message in str(_error(text))


def test_error_says_line_and_column() -> None:
    error = _error(HEAD + "\n  WHEN NOT MATCHED THEN INSERT (a, b)\n  VALUES (1)")
    assert (error.line, error.column) == (3, 10)
