"""Statements about tables and namespaces: what they mean, and what an error says was expected."""

import datetime as dt
from decimal import Decimal

import pytest

from bergline.errors import SqlSyntaxError
from bergline.format.types.types import DOUBLE, INT, LONG, STRING, TIMESTAMPTZ, DecimalType
from bergline.sql.parse.analyze import analyze
from bergline.sql.statements.namespace_statements import AlterNamespace, CreateNamespace, DropNamespace
from bergline.sql.statements.show_statements import (
    DescribeNamespace,
    DescribeTable,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowPartitions,
    ShowProcedures,
    ShowProperties,
    ShowTableExtended,
    ShowTables,
    ShowViews,
    Use,
)
from bergline.sql.statements.statements import Moment, OtherStatement
from bergline.sql.statements.table_statements import (
    AddColumns,
    AddPartitionField,
    AlterColumns,
    AlterTable,
    ColumnDefinition,
    CreateTable,
    DropColumns,
    DropIdentifierFields,
    DropPartitionField,
    DropTable,
    IdentifierFieldsClause,
    MoveColumnClause,
    RenameColumnClause,
    RenameTable,
    ReplacePartitionField,
    SetColumnDefault,
    SetColumnDoc,
    SetColumnRequired,
    SetColumnType,
    SetTableLocation,
    SetTableProperties,
    SetWriteOrder,
)

T = ("db", "t")


def column(name: str, type_: object = INT, **options: object) -> ColumnDefinition:
    return ColumnDefinition(tuple(name.split(".")), type_, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("CREATE TABLE db.t (a INT)", CreateTable(T, None, (column("a"),))),
        (
            "create or replace table db.t (a int) using ICEBERG",
            CreateTable(T, "iceberg", (column("a"),), replaces=True),
        ),
        ("REPLACE TABLE db.t (a INT);", CreateTable(T, None, (column("a"),), creates=False, replaces=True)),
        (
            (
                "CREATE TABLE IF NOT EXISTS db.t (a BIGINT NOT NULL COMMENT 'it''s', `b c` DECIMAL(10,2) DEFAULT -1.5) "
                "USING iceberg COMMENT 'words' LOCATION '/x' TBLPROPERTIES ('a'='b', c.d = 5, e true) OPTIONS (k 'v')"
            ),
            CreateTable(
                T,
                "iceberg",
                (
                    column("a", LONG, required=True, doc="it's"),
                    column("b c", DecimalType(10, 2), default=Decimal("-1.5")),
                ),
                properties={"comment": "words", "a": "b", "c.d": "5", "e": "true", "option.k": "v"},
                location="/x",
                if_not_exists=True,
            ),
        ),
        (
            (
                "CREATE TABLE db.t (a INT, s STRING, ts TIMESTAMP) PARTITIONED BY "
                "(years(ts), Month(ts), days(ts), hours(ts), bucket(16, a), truncate(4, s), bucket(a, 8), p.`x y`, a)"
            ),
            CreateTable(
                T,
                None,
                (column("a"), column("s", STRING), column("ts", TIMESTAMPTZ)),
                (
                    "years(ts)",
                    "month(ts)",
                    "days(ts)",
                    "hours(ts)",
                    "bucket(16, a)",
                    "truncate(4, s)",
                    "bucket(a, 8)",
                    "`p.x y`",
                    "a",
                ),
            ),
        ),
        (
            "CREATE TABLE db.t (a INT) PARTITIONED BY (b STRING COMMENT 'x') CLUSTERED BY (a) INTO 4 BUCKETS",
            CreateTable(T, None, (column("a"), column("b", STRING, doc="x")), ("b", "bucket(4, a)")),
        ),
        ("DROP TABLE IF EXISTS db.t", DropTable(T, if_exists=True)),
        ("DROP TABLE db.t PURGE", DropTable(T, purge=True)),
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
        ("COMMENT ON TABLE db.t IS NULL", AlterTable(T, SetTableProperties(removals=("comment",)))),
        ("USE db", Use(("db",))),
        ("USE NAMESPACE lake.db", Use(("lake", "db"))),
        ("SHOW TABLES", ShowTables()),
        ("SHOW TABLES IN db LIKE 'a*'", ShowTables(("db",), "a*")),
        ("SHOW TABLES FROM lake.db 'x'", ShowTables(("lake", "db"), "x")),
        ("SHOW DATABASES", ShowNamespaces()),
        ("SHOW SCHEMAS LIKE 'x'", ShowNamespaces(like="x")),
        ("SHOW NAMESPACES IN db", ShowNamespaces(("db",))),
        ("SHOW TABLE EXTENDED IN db LIKE 'a*'", ShowTableExtended(("db",), "a*")),
        ("SHOW TABLE EXTENDED LIKE 'a'", ShowTableExtended(None, "a")),
        ("SHOW VIEWS FROM lake.db LIKE 'x'", ShowViews(("lake", "db"), "x")),
        ("SHOW CATALOGS LIKE 'l*'", ShowCatalogs("l*")),
        ("SHOW PROCEDURES IN lake.system", ShowProcedures(("lake", "system"))),
        ("SHOW CURRENT NAMESPACE", ShowCurrentNamespace()),
        ("SHOW CREATE TABLE db.t", ShowCreateTable(T)),
        ("SHOW TBLPROPERTIES db.t", ShowProperties(T)),
        ("SHOW TBLPROPERTIES db.t ('a.b')", ShowProperties(T, "a.b")),
        ("SHOW PARTITIONS db.t", ShowPartitions(T)),
        (
            "SHOW PARTITIONS db.t PARTITION (a = 'x', b = 5, c = TRUE, d = NULL)",
            ShowPartitions(T, {"a": "x", "b": "5", "c": "true", "d": None}),
        ),
        ("SHOW COLUMNS IN db.t", ShowColumns(T)),
        ("SHOW COLUMNS FROM t FROM db", ShowColumns(T)),
        ("DESCRIBE db.t", DescribeTable(T)),
        ("DESC TABLE EXTENDED db.t;", DescribeTable(T, extended=True)),
        ("DESCRIBE FORMATTED db.t", DescribeTable(T, extended=True)),
        ("DESCRIBE db.t a.b", DescribeTable(T, column="a.b")),
        ("DESCRIBE extended", DescribeTable(("extended",))),
        ("DESCRIBE NAMESPACE EXTENDED db", DescribeNamespace(("db",), extended=True)),
    ],
)
def test_statements_mean(text: str, meaning: object) -> None:
    assert analyze(text) == meaning


@pytest.mark.parametrize(
    ("change", "meaning"),
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
        ("RENAME TO db.u", RenameTable(("db", "u"))),
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
def test_alterations_mean(change: str, meaning: object) -> None:
    assert analyze(f"ALTER TABLE db.t {change}") == AlterTable(T, meaning)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TABLE db.t (a INT", "expected `NOT NULL`, `DEFAULT`, `COMMENT`, `,`, `)`, found the end"),
        ("CREATE TABLE db.t (a INT NOT NUL)", "expected `NOT NULL`, `DEFAULT`, `COMMENT`, `,`, `)`, found `NOT`"),
        ("CREATE TABLE db.t (a INT) LOCATION x", "expected a location in quotes, found `x` at line 1, column 36"),
        ("CREATE TABLE db.t (a INT)\n  PARTITION BY (a)", "expected `USING`, `PARTITIONED BY`.*line 2, column 3"),
        ("CREATE TABLE db.t (a INT) COMMENT 'a' COMMENT 'b'", "expected `COMMENT` once"),
        ("CREATE TABLE db.t (a INT GENERATED ALWAYS AS (1))", "cannot keep GENERATED of column `a`"),
        ("CREATE TABLE db.t (a INT, CONSTRAINT pk PRIMARY KEY (a))", "cannot keep constraints"),
        ("CREATE TABLE db.t (a INT DEFAULT now())", "expected a literal as the default of a column, found `now"),
        ("CREATE TABLE db.t (a INT) STORED AS ORC", "cannot create `db.t` with `STORED AS ORC`"),
        ("CREATE TABLE db.t (a INT) TBLPROPERTIES ('location' = 'x')", "use the LOCATION clause"),
        ("CREATE TABLE db.t (a INT) TBLPROPERTIES ('a' = 'x', a = 'y')", "expected property `a` once"),
        ("CREATE TABLE db.t (a INT) AS SELECT 1", "expected columns or a query, found both"),
        ("CREATE TABLE db.t (a INT) PARTITIONED BY (foo(a))", "expected one of the transforms identity.*found `foo`"),
        ("DROP TABLE db.t NOW", "expected `PURGE`, the end of the statement, found `NOW`"),
        ("ALTER TABLE db.t", "expected `ADD`, `DROP`, `RENAME`, .*, found the end of the statement"),
        ("ALTER TABLE db.t ADD x INT", "expected `COLUMN`, `COLUMNS`, `PARTITION FIELD`, found `x`"),
        ("ALTER TABLE db.t ADD COLUMN IF NOT EXISTS x INT", "expected a column's name, found `IF`"),
        ("ALTER TABLE db.t ALTER COLUMN a TYP INT", "expected `TYPE`, `COMMENT`, .*, found `TYP`"),
        ("ALTER TABLE db.t CHANGE COLUMN a b INT", "cannot rename column `a` with CHANGE"),
        ("ALTER TABLE db.t WRITE LOCALLY", "expected `ORDERED BY`, found the end"),
        ("ALTER TABLE db.t SET PROPERTIES ('a' = 'b')", "expected `TBLPROPERTIES`, `LOCATION`, `IDENTIFIER FIELDS`"),
        ("ALTER TABLE db.t SET TBLPROPERTIES ('a' = b)", "expected a value in quotes, a number, `TRUE`, `FALSE`"),
        ("ALTER TABLE db.t ADD COLUMN a DATE DEFAULT DATE 'today'", "expected a date like `2026-01-31`"),
        ("ALTER NAMESPACE db SET NAME x", "expected `PROPERTIES`, `DBPROPERTIES`, `LOCATION`, found `NAME`"),
        ("CREATE NAMESPACE db OWNER me", "expected `COMMENT`, `LOCATION`, `WITH PROPERTIES`"),
        ("SHOW TABLES IN db LIKE a", "expected a pattern in quotes, found `a`"),
        ("DESCRIBE db.t a b", "expected the end of the statement, found `b`"),
        ("USE db now", "expected the end of the statement, found `now`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    statement = analyze(text)
    assert isinstance(statement, OtherStatement)
    assert statement.subject in {T, ("db",)}
    assert statement.error is not None
    with pytest.raises(type(statement.error), match=message.replace("(", r"\(").replace(")", r"\)")):
        raise statement.error


def test_errors_count_lines_and_columns() -> None:
    statement = analyze("ALTER TABLE db.t -- all of it\n  ADD COLUMN a INT,\n  b FIRST;")
    assert isinstance(statement, OtherStatement)
    broken = analyze("ALTER TABLE db.t\n  RENAME COLUMN a\n  IN b")
    assert isinstance(broken, OtherStatement)
    assert isinstance(broken.error, SqlSyntaxError)
    assert (broken.error.line, broken.error.column) == (3, 3)


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
    statement = analyze(text)
    assert isinstance(statement, OtherStatement)
    assert (statement.error, statement.subject) == (None, None)
