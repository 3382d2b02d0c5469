"""SQL without Spark: what runs on DuckDB and on polars gives the rows of the table, the rest is refused by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline import Lake
from bergline.cli.sql_shell.local_sql import LocalSql
from bergline.errors import NotFoundError, SqlSyntaxError, UnsupportedError
from support.fixtures.damaged_tables import new_table, open_lake, rows

ENGINES = ["duckdb", "polars"]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A table with the ids 0 to 2 and 10 to 12, and a branch that has three more."""
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
        table.refs.create_branch("audit")
        table.append(rows(90), branch="audit")
        yield lake


def select(lake: Lake, engine: str, text: str) -> list[tuple[object, ...]]:
    found = LocalSql(lake, "lake", engine).run(text)
    assert found is not None
    return [tuple(row.values()) for row in found.read_all().to_pylist()]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT count(*) AS n, max(id) AS m FROM db.orders", [(6, 12)]),
        ("SELECT * FROM db.orders.branch_audit WHERE id > 91", [(92, "south")]),
        ("SELECT count(*) FROM db.orders VERSION AS OF 'audit'", [(9,)]),
        (
            "SELECT o.id FROM db.orders o JOIN lake.db.orders p ON o.id = p.id WHERE `o`.`region` = 'south' ORDER BY 1",
            [(2,), (12,)],
        ),
        ("WITH x AS (SELECT id FROM db.orders) SELECT count(*) FROM x, x AS y", [(36,)]),
        ("SELECT name FROM db.orders.refs ORDER BY name", [("audit",), ("main",)]),
        ("SELECT '{a} db.orders' AS x", [("{a} db.orders",)]),
        ("SHOW TABLES IN db", [("db", "orders", False)]),
    ],
)
def test_queries_and_statements(lake: Lake, engine: str, text: str, expected: list[tuple[object, ...]]) -> None:
    assert select(lake, engine, text) == expected


def test_use_is_kept_and_statements_change_the_lake(lake: Lake) -> None:
    local = LocalSql(lake, "lake", "duckdb")
    assert local.run("USE db") is None
    found = local.run("SELECT count(*) FROM orders")
    assert found is not None
    assert found.read_all().to_pylist() == [{"count_star()": 6}]
    local.run("ALTER TABLE orders CREATE TAG v1")
    assert "v1" in lake.load_table("db.orders").refs


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("INSERT INTO db.orders VALUES (1, 'x')", UnsupportedError),
        ("DELETE FROM db.orders", UnsupportedError),
        ("CREATE TABLE db.copy AS SELECT * FROM db.orders", UnsupportedError),
        ("CREATE VIEW db.v AS SELECT 1 AS one", UnsupportedError),
        ("SELECT nope FROM db.orders", UnsupportedError),
        ("SELECT * FROM 'catalog.db'", UnsupportedError),
        ("SELECT * FROM lake", UnsupportedError),
        ("SELECT * FROM db.none", NotFoundError),
        ("SELEC 1", SqlSyntaxError),
    ],
)
def test_what_cannot_be_run_is_refused_and_changes_nothing(
    lake: Lake, engine: str, text: str, error: type[Exception]
) -> None:
    before = lake.load_table("db.orders").metadata_location
    with pytest.raises(error) as refused:
        LocalSql(lake, "lake", engine).run(text)
    assert "\n" not in str(refused.value)
    assert lake.load_table("db.orders").metadata_location == before
    assert lake.list_tables() == ["db.orders"]
