"""DESCRIBE and SHOW CREATE TABLE."""

import pytest

from bergline import Table
from bergline.errors import InvalidInputError
from bergline.sql.statements.describe import DescribeHistory, DescribeNamespace, DescribeTable, ShowCreateTable
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import Session, check_unreadable, meaning

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
        ("DESCRIBE history", DescribeTable(("history",))),
        ("DESC HISTORY db.t", DescribeHistory(T)),
        ("DESCRIBE HISTORY db.t LIMIT 3", DescribeHistory(T, 3)),
        ("DESCRIBE NAMESPACE EXTENDED db", DescribeNamespace(("db",), extended=True)),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DESCRIBE db.t a b", "expected the end of the statement, found `b`"),
        ("DESCRIBE HISTORY db.t LIMIT x", "expected a whole number, found `x`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_metadata_tables_are_described(run: Session, orders: Table) -> None:
    assert ("snapshot_id", "bigint", None) in (run("DESCRIBE EXTENDED db.orders.refs") or [])
    assert run("DESCRIBE db.orders.branch_main") == run("DESCRIBE db.orders")


def test_history_is_newest_first_and_of_one_ref_if_asked(run: Session, orders: Table) -> None:
    assert run("DESCRIBE HISTORY db.orders") == []
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_tag("v1")
    orders.append(order_rows(3), branch="dev")
    first, second, third = orders.refresh().metadata.snapshots
    shown = run("DESCRIBE HISTORY db.orders") or []
    assert [row[0] for row in shown] == [s.snapshot_id for s in (third, second, first)]
    assert [row[2:5] for row in shown] == [
        ("append", second.snapshot_id, ["dev"]),
        ("append", first.snapshot_id, ["main", "v1"]),
        ("append", None, []),
    ]
    assert dict(shown[0][5])["added-records"] == "1"
    assert run("DESCRIBE HISTORY db.orders LIMIT 1") == shown[:1]
    assert run("DESCRIBE HISTORY db.orders.tag_v1") == run("DESCRIBE HISTORY db.orders.branch_main") == shown[1:]
    with pytest.raises(InvalidInputError, match="expected a table to describe the history of"):
        run("DESCRIBE HISTORY db.orders.files")
