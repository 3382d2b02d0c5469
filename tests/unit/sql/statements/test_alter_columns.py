"""ALTER TABLE on columns."""

import datetime as dt

import pytest

from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
)
from bergline.format.types.types import DOUBLE, INT, LONG, STRING
from bergline.sql.grammar.columns import ColumnDefinition
from bergline.sql.statements.alter_columns import (
    AddColumns,
    AlterColumns,
    DropColumns,
    MoveColumnClause,
    RenameColumnClause,
    SetColumnDefault,
    SetColumnDoc,
    SetColumnRequired,
    SetColumnType,
)
from bergline.sql.statements.alter_table import (
    AlterTable,
)
from bergline.sql.text.timestamps import Moment
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import Session, check_unreadable, meaning

T = ("db", "t")


def column(name: str, type_: object = INT, **options: object) -> ColumnDefinition:
    return ColumnDefinition(tuple(name.split(".")), type_, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("ADD COLUMN a INT", AddColumns((column("a"),))),
        (
            "ADD COLUMNS (a.b INT COMMENT 'x' AFTER c, d STRING NOT NULL DEFAULT 'y' FIRST)",
            AddColumns(
                (
                    column("a.b", doc="x", position=("after", "c")),
                    column("d", STRING, required=True, default="y", position=("first",)),
                )
            ),
        ),
        ("ADD COLUMNS a INT, b INT", AddColumns((column("a"), column("b")))),
        ("DROP COLUMN a.b", DropColumns((("a", "b"),))),
        ("DROP COLUMNS IF EXISTS (a, b)", DropColumns((("a",), ("b",)), if_exists=True)),
        ("RENAME COLUMN a.b TO c", RenameColumnClause(("a", "b"), "c")),
        ("ALTER COLUMN a TYPE BIGINT", AlterColumns((SetColumnType(("a",), LONG),))),
        (
            "ALTER COLUMN a COMMENT 'x', b.c SET NOT NULL, d DROP NOT NULL, e FIRST, f AFTER g",
            AlterColumns(
                (
                    SetColumnDoc(("a",), "x"),
                    SetColumnRequired(("b", "c"), required=True),
                    SetColumnRequired(("d",), required=False),
                    MoveColumnClause(("e",), ("first",)),
                    MoveColumnClause(("f",), ("after", "g")),
                )
            ),
        ),
        ("ALTER a SET DEFAULT 5L", AlterColumns((SetColumnDefault(("a",), 5),))),
        (
            "ALTER COLUMN a SET DEFAULT DATE'2026-01-31'",
            AlterColumns((SetColumnDefault(("a",), dt.date(2026, 1, 31)),)),
        ),
        ("ALTER COLUMN a SET DEFAULT X'00ff'", AlterColumns((SetColumnDefault(("a",), b"\x00\xff"),))),
        (
            "ALTER COLUMN a SET DEFAULT TIMESTAMP '2026-01-31 12:00:00'",
            AlterColumns((SetColumnDefault(("a",), Moment(dt.datetime(2026, 1, 31, 12))),)),  # noqa: DTZ001
        ),
        ("ALTER COLUMN a DROP DEFAULT", AlterColumns((SetColumnDefault(("a",), None),))),
        (
            "CHANGE COLUMN a a DOUBLE COMMENT 'x' FIRST",
            AlterColumns(
                (SetColumnType(("a",), DOUBLE), SetColumnDoc(("a",), "x"), MoveColumnClause(("a",), ("first",)))
            ),
        ),
    ],
)
def test_alterations_mean(change: str, expected: object) -> None:
    assert meaning(f"ALTER TABLE db.t {change}") == AlterTable(T, expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER TABLE db.t ADD COLUMN IF NOT EXISTS x INT", "expected a column's name, found `IF`"),
        ("ALTER TABLE db.t ALTER COLUMN a TYP INT", "expected `TYPE`, `COMMENT`, .*, found `TYP`"),
        ("ALTER TABLE db.t CHANGE COLUMN a b INT", "cannot rename column `a` with CHANGE"),
        ("ALTER TABLE db.t ADD COLUMN a DATE DEFAULT DATE 'today'", "expected a date like `2026-01-31`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_columns_are_found_in_any_case_and_keep_their_spelling(run: Session, lake: Lake) -> None:
    run("CREATE TABLE db.t (Id INT NOT NULL, Point STRUCT<X: INT>)")
    run("ALTER TABLE db.t ALTER COLUMN POINT.x TYPE BIGINT")
    run("ALTER TABLE db.t RENAME COLUMN point TO place")
    run("ALTER TABLE db.t SET IDENTIFIER FIELDS ID")
    assert list(lake.load_table("db.t").schema.names) == ["Id", "place", "place.X"]
    for change in ("ADD COLUMN ID INT", "ADD COLUMN place.x INT", "RENAME COLUMN id TO Place"):
        with pytest.raises(AlreadyExistsError):
            run(f"ALTER TABLE db.t {change}")
    run("ALTER TABLE db.t RENAME COLUMN ID TO id")
    run("ALTER TABLE db.t RENAME COLUMN id TO Id")
    assert ("identifier-fields", "[Id]") in (run("SHOW TBLPROPERTIES db.t") or [])


def test_replaced_columns_are_new_ones(run: Session, orders: Table) -> None:
    orders.append(order_rows(1))
    run("ALTER TABLE db.orders REPLACE COLUMNS (id BIGINT, note STRING COMMENT 'words')")
    fields = orders.refresh().schema.fields
    assert [(f.id > 3, f.name, f.doc) for f in fields] == [(True, "id", None), (True, "note", "words")]
    assert orders.scan().to_arrow().to_pylist() == [{"id": None, "note": None}]
