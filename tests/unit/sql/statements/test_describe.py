"""DESCRIBE and SHOW CREATE TABLE."""

import pytest
from sql_statements import Session, check_unreadable, meaning

from bergline import Table
from bergline.sql.statements.describe import DescribeNamespace, DescribeTable, ShowCreateTable

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW CREATE TABLE db.t", ShowCreateTable(T)),
        ("DESCRIBE db.t", DescribeTable(T)),
        ("DESC TABLE EXTENDED db.t;", DescribeTable(T, extended=True)),
        ("DESCRIBE FORMATTED db.t", DescribeTable(T, extended=True)),
        ("DESCRIBE db.t a.b", DescribeTable(T, column="a.b")),
        ("DESCRIBE extended", DescribeTable(("extended",))),
        ("DESCRIBE NAMESPACE EXTENDED db", DescribeNamespace(("db",), extended=True)),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DESCRIBE db.t a b", "expected the end of the statement, found `b`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_metadata_tables_are_described(run: Session, orders: Table) -> None:
    assert ("snapshot_id", "bigint", None) in (run("DESCRIBE EXTENDED db.orders.refs") or [])
    assert run("DESCRIBE db.orders.branch_main") == run("DESCRIBE db.orders")
