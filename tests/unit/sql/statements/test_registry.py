"""The registry of statements: what is ours, and what is not."""

import pytest

from bergline import Lake, Table
from bergline.errors import RefusedError
from bergline.sql.queries.query import OtherStatement
from bergline.sql.statements.registry import HEADS, STATEMENTS, ref_move
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.text.misspelled import misspelled_head
from bergline.sql.text.tokens import SqlText
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import Session, meaning, rows_of


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


@pytest.mark.parametrize(
    "text",
    [
        "DROP TABLE `lake@staging`.db.orders",
        "DROP TABLE `lake@staging`.db.orders PURGE",
        "ALTER TABLE `lake@staging`.db.orders RENAME TO db.other",
        "ALTER TABLE db.orders RENAME TO `lake@staging`.db.other",
        "ALTER NAMESPACE `lake@staging`.db SET PROPERTIES ('a' = 'b')",
        "DROP NAMESPACE `lake@staging`.db CASCADE",
        "CALL `lake@staging`.system.register_table('db.again', '/tmp/v1.metadata.json')",
    ],
)
def test_names_are_the_same_at_all_refs(lake: Lake, orders: Table, text: str) -> None:
    orders.append(order_rows(1)).refs.create_branch("staging")
    session = Session(lake)
    session("USE `lake@staging`")
    assert session("SHOW CURRENT NAMESPACE") == [("lake@staging", "")]
    with pytest.raises(RefusedError, match="at branch `staging` of the lake") as caught:
        session(text)
    assert "do it on the lake without a ref" in caught.value.hints
    assert (lake.list_namespaces(), lake.list_tables()) == (["db"], ["db.orders"])
    assert orders.refresh().scan().to_arrow().num_rows == 1


def test_statements_at_a_ref_are_about_what_it_has(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("staging")
    lake.branches.create("staging")
    orders.append(order_rows(2))
    session = Session(lake)
    assert session("SHOW TABLES IN `lake@staging`.db") == [("db", "orders", False)]
    session("USE `lake@staging`.db")
    session("CREATE TABLE IF NOT EXISTS new (id BIGINT)")
    assert session("SHOW TABLES") == [("db", "new", False), ("db", "orders", False)]
    assert lake.list_tables() == ["db.orders"]
    session("DROP TABLE new")
    session("ALTER TABLE orders CREATE TAG here")
    session("CALL system.fast_forward('db.orders', 'copy', 'main')")
    refs = orders.refresh().refs
    assert refs["here"].snapshot_id == refs["copy"].snapshot_id == refs["staging"].snapshot_id
    assert refs["staging"].snapshot_id != refs["main"].snapshot_id


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE IF NOT EXISTS db.orders (id BIGINT)",
        "CREATE NAMESPACE IF NOT EXISTS db",
        "DROP TABLE IF EXISTS db.gone",
        "DROP TABLE IF EXISTS db.gone PURGE",
        "DROP VIEW IF EXISTS db.gone",
        "DROP NAMESPACE IF EXISTS `lake@staging`.gone",
    ],
)
def test_a_job_may_ask_for_what_is_so_at_a_ref(lake: Lake, orders: Table, text: str) -> None:
    orders.append(order_rows(1)).refs.create_branch("staging")
    lake.branches.create("staging")
    session = Session(lake)
    session("USE `lake@staging`")
    assert session(text) == []
    at = lake.at("staging")
    assert at.create_table("db.orders", orders.schema, if_not_exists=True).name == orders.name
    at.create_namespace("db", if_not_exists=True)
