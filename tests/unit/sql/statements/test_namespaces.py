"""Statements about namespaces, and USE."""

import pytest

from bergline import Lake, Table
from bergline.errors import NotFoundError, RefusedError
from bergline.sql.statements.namespaces import AlterNamespace, CreateNamespace, DropNamespace, Use
from support.fixtures.rows import ORDERS
from support.fixtures.sql_statements import Session, check_unreadable, meaning

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE NAMESPACE IF NOT EXISTS lake.db", CreateNamespace(("lake", "db"), if_not_exists=True)),
        (
            "CREATE DATABASE db COMMENT 'c' LOCATION '/x' WITH DBPROPERTIES ('a' = 'b')",
            CreateNamespace(("db",), properties={"comment": "c", "location": "/x", "a": "b"}),
        ),
        ("DROP SCHEMA IF EXISTS db CASCADE", DropNamespace(("db",), if_exists=True, cascade=True)),
        ("DROP NAMESPACE db RESTRICT", DropNamespace(("db",))),
        ("ALTER NAMESPACE db SET PROPERTIES ('a' = 'b')", AlterNamespace(("db",), {"a": "b"})),
        ("ALTER DATABASE db UNSET DBPROPERTIES IF EXISTS (a, 'b')", AlterNamespace(("db",), removals=("a", "b"))),
        ("ALTER SCHEMA db SET LOCATION '/x'", AlterNamespace(("db",), {"location": "/x"})),
        ("COMMENT ON NAMESPACE db IS 'x'", AlterNamespace(("db",), {"comment": "x"})),
        ("USE db", Use(("db",))),
        ("USE NAMESPACE lake.db", Use(("lake", "db"))),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER NAMESPACE db SET NAME x", "expected `PROPERTIES`, `DBPROPERTIES`, `LOCATION`, found `NAME`"),
        ("CREATE NAMESPACE db OWNER me", "expected `COMMENT`, `LOCATION`, `WITH PROPERTIES`"),
        ("USE db now", "expected the end of the statement, found `now`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_cascade_drops_what_is_inside(run: Session, orders: Table, lake: Lake) -> None:
    lake.create_namespace("db.inner.most")
    lake.create_table("db.inner.most.t", ORDERS)
    with pytest.raises(RefusedError, match="not empty"):
        run("DROP NAMESPACE db")
    run("DROP NAMESPACE db CASCADE")
    assert lake.list_namespaces() == []
    assert orders.io.list(orders.location)


def test_namespaces_are_altered(run: Session, lake: Lake) -> None:
    run("ALTER NAMESPACE db SET PROPERTIES ('a' = 'b', c = 5)")
    run("ALTER NAMESPACE db UNSET PROPERTIES ('a', 'never')")
    run("COMMENT ON NAMESPACE db IS 'x'")
    assert lake.namespace_properties("db") == {"c": "5", "comment": "x"}
    run("COMMENT ON NAMESPACE db IS NULL")
    assert run("DESCRIBE NAMESPACE EXTENDED db") == [
        ("Catalog Name", "lake"),
        ("Namespace Name", "db"),
        ("Properties", "((c,5))"),
    ]


def test_names_follow_use(run: Session, orders: Table, lake: Lake) -> None:
    lake.create_namespace("other")
    assert run("SHOW TABLES") is None
    assert run("DESCRIBE orders") is None
    run("USE db")
    assert run("SHOW TABLES") == [("db", "orders", False)]
    assert run("SHOW COLUMNS IN orders") == [("id",), ("amount",), ("region",)]
    assert run("DESCRIBE orders.refs")
    run("ALTER TABLE orders RENAME TO renamed")
    assert lake.list_tables("db") == ["db.renamed"]
    run("USE lake.other")
    run("CREATE TABLE t (id INT)")
    assert lake.list_tables("other") == ["other.t"]
    with pytest.raises(NotFoundError, match="no namespace `nope`"):
        run("USE lake.nope")
    assert run("SHOW CURRENT NAMESPACE") == [("lake", "other")]
    assert run("USE elsewhere") is None
    assert run("SHOW CURRENT NAMESPACE") is None
