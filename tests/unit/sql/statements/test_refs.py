"""Ref statements: text, what it means, what is said when it does not parse, and what it does."""

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, SqlSyntaxError
from bergline.format.metadata.refs import SnapshotRefType
from bergline.sql.statements.refs import CreateRef, DropRef, ReplaceRef, parse_ref_statement
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText
from bergline.table.references.ref_changes import Retention
from support.fixtures.rows import ids, order_rows
from support.fixtures.sql_statements import rows_of

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG
ORDERS = ("db", "orders")
DAY, HOUR, MINUTE = 86_400_000, 3_600_000, 60_000


def ref_statement(text: str) -> CreateRef | DropRef | ReplaceRef | None:
    cursor = Cursor(SqlText(text))
    return parse_ref_statement(cursor) if cursor.accept("ALTER", "TABLE") else None


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (
            "ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS;",
            CreateRef(ORDERS, "staging", BRANCH, retention=Retention(3)),
        ),
        ("alter table db.orders create branch b", CreateRef(ORDERS, "b", BRANCH)),
        ("ALTER TABLE db.orders CREATE TAG `v2-release`;", CreateRef(ORDERS, "v2-release", TAG)),
        (
            "ALTER TABLE db.orders CREATE TAG `2026-q1-final`\nAS OF VERSION 8027658604211071520;",
            CreateRef(ORDERS, "2026-q1-final", TAG, 8027658604211071520),
        ),
        ("ALTER TABLE db.orders DROP BRANCH staging;", DropRef(ORDERS, "staging", BRANCH)),
        ("ALTER TABLE db.orders DROP TAG IF EXISTS `v2-release`", DropRef(ORDERS, "v2-release", TAG, if_exists=True)),
        (
            "ALTER TABLE t CREATE BRANCH b AS OF VERSION 7\nRETAIN 10 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS",
            CreateRef(("t",), "b", BRANCH, 7, Retention(2, 3 * HOUR, 10 * DAY)),
        ),
        (
            "ALTER TABLE db.orders CREATE BRANCH b WITH SNAPSHOT RETENTION 4 MINUTES",
            CreateRef(ORDERS, "b", BRANCH, retention=Retention(max_snapshot_age_ms=4 * MINUTE)),
        ),
        (
            "ALTER TABLE db.orders CREATE TAG t RETAIN 7 HOURS",
            CreateRef(ORDERS, "t", TAG, retention=Retention(max_ref_age_ms=7 * HOUR)),
        ),
        ("ALTER TABLE db.orders CREATE OR REPLACE TAG t", CreateRef(ORDERS, "t", TAG, or_replace=True)),
        ("ALTER TABLE db.orders CREATE BRANCH IF NOT EXISTS b", CreateRef(ORDERS, "b", BRANCH, if_not_exists=True)),
        ("ALTER TABLE db.orders REPLACE BRANCH b AS OF VERSION 1", ReplaceRef(ORDERS, "b", BRANCH, 1)),
        ("ALTER TABLE a.`b.c`.d DROP TAG `x``y`", DropRef(("a", "b.c", "d"), "x`y", TAG)),
        ("-- why\nALTER TABLE /* what */ db.orders DROP TAG t -- done", DropRef(ORDERS, "t", TAG)),
    ],
)
def test_ref_statement_means(text: str, meaning: CreateRef | DropRef | ReplaceRef) -> None:
    assert ref_statement(text) == meaning


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "ALTER TABLE db.orders ADD COLUMN x INT",
        "ALTER TABLE db.orders DROP COLUMN x",
        "ALTER TABLE db.orders REPLACE COLUMNS (x INT)",
        "ALTER VIEW v AS SELECT 1",
    ],
)
def test_other_statements_are_left_alone(text: str) -> None:
    assert ref_statement(text) is None


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("ALTER TABLE t CREATE BRANCH", "expected a name", 1, 28),
        ("ALTER TABLE t CREATE BRANCH b RETAIN 3 WEEKS", "`MINUTES`, `SNAPSHOTS`, found `WEEKS`", 1, 40),
        ("ALTER TABLE t CREATE TAG g RETAIN 3 SNAPSHOTS", "`DAYS`, `HOURS`, `MINUTES`, found `SNAPSHOTS`", 1, 37),
        ("ALTER TABLE t CREATE TAG v2-release", "found `-`", 1, 28),
        ("ALTER TABLE t\nCREATE TAG 2026-q1", "found `2026`", 2, 12),
        ("ALTER TABLE t CREATE OR REPLACE BRANCH IF NOT EXISTS b", "found `NOT`", 1, 43),
        ("ALTER TABLE t CREATE BRANCH b WITH SNAPSHOT RETENTION 3 DAYS 2 SNAPSHOTS", "found `2`", 1, 62),
        ("ALTER TABLE t CREATE BRANCH b RETAIN 1.5 DAYS", "expected a whole number, found `1.5`", 1, 38),
        ("ALTER TABLE t CREATE TAG g AS OF VERSION x", "expected a whole number, found `x`", 1, 42),
        ("ALTER TABLE t CREATE TAG g AS OF 12", "expected `VERSION`, found `12`", 1, 34),
        ("ALTER TABLE t CREATE BRACH b", "expected `BRANCH`, `TAG`, `OR REPLACE`, found `BRACH`", 1, 22),
        ("ALTER TABLE t DROP BRANCH b c", "expected the end of the statement, found `c`", 1, 29),
        ("ALTER TABLE t DROP BRANCH `b", "left open", 1, 27),
        ("ALTER TABLE t DROP BRANCH b /* oops", "a comment left open", 1, 29),
    ],
)
def test_what_does_not_parse_says_what_was_expected_and_where(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        ref_statement(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("text", ["RETAIN 0 DAYS", "RETAIN 0 SNAPSHOTS", "WITH SNAPSHOT RETENTION 0 SNAPSHOTS"])
def test_zero_retention_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="above 0, found 0"):
        ref_statement(f"ALTER TABLE t CREATE BRANCH b {text}")


def test_ref_statements_change_the_table(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    rows_of(lake, "ALTER TABLE db.orders CREATE BRANCH staging RETAIN 3 SNAPSHOTS;")
    orders.refresh().append(order_rows(2), branch="staging")
    before, after = orders.refs["main"].snapshot_id, orders.refs["staging"].snapshot_id
    assert rows_of(lake, "CALL system.fast_forward('db.orders', 'main', 'staging');") == [
        {"branch_updated": "main", "previous_ref": before, "updated_ref": after}
    ]
    rows_of(lake, "ALTER TABLE db.orders DROP BRANCH staging;")
    rows_of(lake, f"ALTER TABLE db.orders CREATE TAG `2026-q1-final` AS OF VERSION {before};")
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]
    assert ids(orders.scan(ref="2026-q1-final").to_arrow()) == [1]
    assert set(orders.refs) == {"main", "2026-q1-final"}
