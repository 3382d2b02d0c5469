"""ALTER TABLE: what its changes mean, and that each is one commit."""

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.sql.statements.alter_table import (
    AddPartitionField,
    AlterTable,
    DropIdentifierFields,
    DropPartitionField,
    IdentifierFieldsClause,
    RenameTable,
    ReplacePartitionField,
    SetTableLocation,
    SetTableProperties,
    SetWriteOrder,
)
from support.fixtures.sql_statements import Session, check_unreadable, meaning

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("COMMENT ON TABLE db.t IS NULL", AlterTable(T, SetTableProperties(removals=("comment",)))),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("RENAME TO db.u", RenameTable(("db", "u"))),
        ("SET TBLPROPERTIES ('a' = 'b')", SetTableProperties({"a": "b"})),
        ("UNSET TBLPROPERTIES IF EXISTS ('a', b)", SetTableProperties(removals=("a", "b"))),
        ("SET LOCATION '/x'", SetTableLocation("/x")),
        ("ADD PARTITION FIELD bucket(16, id) AS shard", AddPartitionField("bucket(16, id)", "shard")),
        ("DROP PARTITION FIELD `a b`", DropPartitionField("a b")),
        ("DROP PARTITION FIELD days(ts)", DropPartitionField("days(ts)")),
        ("REPLACE PARTITION FIELD ts_day WITH hours(ts)", ReplacePartitionField("ts_day", "hours(ts)")),
        ("WRITE ORDERED BY a, days(b) DESC NULLS FIRST", SetWriteOrder(("a", "days(b) desc nulls first"), "range")),
        ("WRITE LOCALLY ORDERED BY (a ASC)", SetWriteOrder(("a asc",), None)),
        ("WRITE UNORDERED", SetWriteOrder((), "none")),
        ("WRITE DISTRIBUTED BY PARTITION", SetWriteOrder((), "hash")),
        ("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a", SetWriteOrder(("a",), "hash")),
        ("WRITE ORDERED BY a DISTRIBUTED BY PARTITION", SetWriteOrder(("a",), "hash")),
        ("SET IDENTIFIER FIELDS a, b.c", IdentifierFieldsClause(("a", "b.c"))),
        ("DROP IDENTIFIER FIELDS a", DropIdentifierFields(("a",))),
    ],
)
def test_alterations_mean(change: str, expected: object) -> None:
    assert meaning(f"ALTER TABLE db.t {change}") == AlterTable(T, expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER TABLE db.t", "expected `ADD`, `DROP`, `RENAME`, .*, found the end of the statement"),
        ("ALTER TABLE db.t ADD x INT", "expected `COLUMN`, `COLUMNS`, `PARTITION FIELD`, found `x`"),
        ("ALTER TABLE db.t WRITE LOCALLY", "expected `ORDERED BY`, found the end"),
        ("ALTER TABLE db.t SET PROPERTIES ('a' = 'b')", "expected `TBLPROPERTIES`, `LOCATION`, `IDENTIFIER FIELDS`"),
        ("ALTER TABLE db.t SET TBLPROPERTIES ('a' = b)", "expected a value in quotes, a number, `TRUE`, `FALSE`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_each_alteration_is_one_commit(run: Session, orders: Table) -> None:
    for statement in (
        "ADD COLUMNS (a INT, b INT)",
        "ALTER COLUMN a TYPE BIGINT, b COMMENT 'x', b FIRST",
        "DROP COLUMNS a, b",
        "WRITE ORDERED BY region",
        "SET TBLPROPERTIES ('format-version' = '3', 'a' = 'b')",
        "REPLACE PARTITION FIELD region WITH bucket(4, id)",
    ):
        if statement.startswith("REPLACE"):
            run("ALTER TABLE db.orders ADD PARTITION FIELD region")
        before = len(orders.refresh().metadata.metadata_log)
        run(f"ALTER TABLE db.orders {statement}")
        assert len(orders.refresh().metadata.metadata_log) == before + 1, statement
    assert (orders.metadata.format_version, orders.properties["a"]) == (3, "b")


def test_tables_are_renamed_inside_their_lake(run: Session, orders: Table, lake: Lake) -> None:
    run("ALTER TABLE db.orders RENAME TO lake.db.t")
    assert lake.list_tables("db") == ["db.t"]
    with pytest.raises(NotFoundError, match="no namespace `nope`"):
        run("ALTER TABLE db.t RENAME TO nope.t")


@pytest.mark.parametrize("key", ["format", "sort-order", "current-snapshot-id", "uuid"])
def test_properties_that_show_a_state_are_not_set(run: Session, orders: Table, key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"found `{key}`, which only shows a state"):
        run(f"ALTER TABLE db.orders SET TBLPROPERTIES ('{key}' = 'x')")


def test_identifier_fields_are_dropped_one_by_one(run: Session, lake: Lake) -> None:
    run("CREATE TABLE db.t (a INT NOT NULL, b INT NOT NULL)")
    run("ALTER TABLE db.t SET IDENTIFIER FIELDS a, b")
    run("ALTER TABLE db.t DROP IDENTIFIER FIELDS a")
    assert ("identifier-fields", "[b]") in (run("SHOW TBLPROPERTIES db.t") or [])
    with pytest.raises(InvalidInputError, match="found `a`, which is none"):
        run("ALTER TABLE db.t DROP IDENTIFIER FIELDS a")
