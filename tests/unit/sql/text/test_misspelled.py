"""Typos in keywords: the error is at the keyword and names the one that was meant."""

import pytest

from bergline import Lake, Table
from bergline.errors import SqlSyntaxError
from bergline.sql.names.resolve import Lakes
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.statements.registry import run_statement
from support.fixtures.sql_statements import meaning


def run(text: str, lake: Lake) -> bool:
    """Whether the statement is left to the engine."""
    lakes, statement = Lakes({"lake": lake}, "lake"), meaning(text)
    if isinstance(statement, OtherStatement):
        check_not_of_lakes(statement, lakes)
        return True
    run_statement(statement, lakes)
    return False


@pytest.mark.parametrize(
    ("text", "line", "column", "meant"),
    [
        ("ALTER TABLE db.orders CREATE BRANCHH x", 1, 30, "BRANCH"),
        ("ALTER TABLE db.orders\n  CRATE BRANCH x", 2, 3, "CREATE"),
        ("ALTER TABLE db.orders CREATE BRANCH x RETIAN 3 DAYS", 1, 39, "RETAIN"),
        ("ALTER TABLE db.orders ADD COLUM x INT", 1, 27, "COLUMN"),
        ("ALTER TABEL db.orders DROP COLUMN id", 1, 7, "TABLE"),
        ("INSER INTO db.orders VALUES (1)", 1, 1, "INSERT"),
        ("INSERT INOT db.orders VALUES (1)", 1, 8, "INTO"),
        ("INSERT INTO db.orders VALUE (1)", 1, 23, "VALUES"),
        ("SELEC * FROM db.orders", 1, 1, "SELECT"),
        ("SELECT *\nFORM db.orders", 2, 1, "FROM"),
        ("SELECT * FROM db.orders WHER id = 1", 1, 25, "WHERE"),
        ("SELECT id FROM db.orders\n\n GROP BY id", 3, 2, "GROUP"),
        ("CREATE TABEL db.t (id INT)", 1, 8, "TABLE"),
        ("CREATE TABLE db.t (id INT) PARTITIOND BY (id)", 1, 28, "PARTITIONED"),
        ("DROP TABEL db.orders", 1, 6, "TABLE"),
        ("SHOW TABELS IN lake.db", 1, 6, "TABLES"),
        ("CALL sytem.fast_forward('db.orders', 'main', 'x')", 1, 6, "system"),
        ("CALL lake.systm.fast_forward('db.orders', 'main', 'x')", 1, 11, "system"),
    ],
)
def test_error_is_at_the_keyword(lake: Lake, orders: Table, text: str, line: int, column: int, meant: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        run(text, lake)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert any(f"did you mean `{meant}`" in hint for hint in caught.value.hints)


@pytest.mark.parametrize("text", ["SELECT id FROM db.orders WHERE", "SELECT (id FROM db.orders"])
def test_names_are_not_taken_for_keywords(lake: Lake, orders: Table, text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="cannot read the statement near") as caught:
        run(text, lake)
    assert caught.value.hints == ()


@pytest.mark.parametrize(
    "text",
    [
        "INSER INTO elsewhere.t VALUES (1)",
        "SELEC 1",
        "CREATE TABEL t (id INT)",
        "SET x = db.orders",
        "LIST JARS",
        "SHOW FUNCTIONS",
        "CREATE ROLE x",
    ],
)
def test_typos_that_are_not_about_a_lake_are_left_to_the_engine(lake: Lake, orders: Table, text: str) -> None:
    assert run(text, lake)
