"""The registry of statements: what is ours, and what is not."""

import pytest

from bergline import Lake
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.registry import HEADS, STATEMENTS, ref_move
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.text.misspelled import misspelled_head
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning, rows_of


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CALL system.fast_forward('db.orders', 'main', 'b')", "CALL fast_forward"),
        ("CALL lake.system.MERGE('db.orders', 'b', 'main')", "CALL MERGE"),
        ("ALTER TABLE db.orders REPLACE BRANCH main", "ALTER TABLE with branch `main`"),
        ("ALTER TABLE db.orders CREATE OR REPLACE BRANCH main", "ALTER TABLE with branch `main`"),
        ("ALTER TABLE db.orders DROP TAG v1", "ALTER TABLE with tag `v1`"),
        ("ALTER TABLE db.orders CREATE BRANCH b", None),
        ("CALL system.diff('db.orders', 'main', 'b')", None),
        ("CALL system.nothing()", None),
        ("CALL", None),
        ("ALTER TABLE db.orders ADD COLUMN a INT", None),
    ],
)
def test_statements_that_move_refs_say_so(text: str, said: str | None) -> None:
    statement = meaning(text)
    assert isinstance(statement, LakeStatement)
    assert ref_move(statement) == said


def test_every_statement_has_one_kind_that_runs_it() -> None:
    variants = [variant for kind in STATEMENTS for variant in kind.variants]
    assert len(variants) == len(set(variants))
    ours = {c for c in LakeStatement.__subclasses__() if c.__module__.startswith("bergline.")}
    assert set(variants) == ours


@pytest.mark.parametrize("head", HEADS)
def test_words_of_every_statement_are_known_to_the_search_for_typos(head: str) -> None:
    assert misspelled_head(SqlText(head), HEADS) is None
    first, *rest = head.split()
    typo = misspelled_head(SqlText(f"{first[0]}{first}{first[-1]} {' '.join(rest)}"), HEADS)
    assert typo is not None
