"""CREATE and REPLACE TABLE: what they mean, what an error says was expected, and what they do."""

from decimal import Decimal

import pytest

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.types.defaults import write_value
from bergline.format.types.types import INT, LONG, STRING, TIMESTAMPTZ, DecimalType
from bergline.sql.grammar.columns import ColumnDefinition
from bergline.sql.statements.create_table import CreateTable
from support.fixtures.rows import order_rows
from support.fixtures.sql_statements import Session, check_unreadable, meaning

T = ("db", "t")


def column(name: str, type_: object = INT, **options: object) -> ColumnDefinition:
    return ColumnDefinition(tuple(name.split(".")), type_, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
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
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


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
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_defaults_are_kept_with_the_columns_type_and_the_sessions_zone(run: Session, lake: Lake) -> None:
    run(
        "CREATE TABLE db.t (i INT DEFAULT 3, l BIGINT DEFAULT -4L, f FLOAT DEFAULT 1.5, d DECIMAL(9, 2) DEFAULT 1.25, "
        "s STRING DEFAULT 'it''s', ts TIMESTAMP DEFAULT TIMESTAMP '2026-01-01 01:00:00', "
        "n TIMESTAMP_NTZ DEFAULT TIMESTAMP '2026-01-01 01:00:00', b BINARY DEFAULT X'00ff', t BOOLEAN DEFAULT true, "
        "day DATE DEFAULT DATE '1970-01-02', none INT DEFAULT NULL) TBLPROPERTIES ('format-version' = '3')"
    )
    schema = lake.load_table("db.t").schema
    wire = {f.name: f.write_default for f in schema.fields}
    assert wire == {
        "i": 3,
        "l": -4,
        "f": 1.5,
        "d": "1.25",
        "s": "it's",
        "ts": "2026-01-01T00:00:00+00:00",
        "n": "2026-01-01T01:00:00",
        "b": "00ff",
        "t": True,
        "day": "1970-01-02",
        "none": None,
    }
    run("ALTER TABLE db.t ADD COLUMN e INT DEFAULT 7 FIRST")
    run("ALTER TABLE db.t ALTER COLUMN i SET DEFAULT 8, l DROP DEFAULT")
    schema = lake.load_table("db.t").schema
    assert [write_value(schema.find(n)) for n in ("e", "i", "l")] == [7, 8, None]
    ((text,),) = run("SHOW CREATE TABLE db.t") or []
    assert "e INT DEFAULT 7,\n  i INT DEFAULT 8,\n  l BIGINT,\n" in str(text)
    run("DROP TABLE db.t")
    run(str(text).partition("\nLOCATION")[0] + " TBLPROPERTIES ('format-version' = '3')")
    assert {f.name: f.write_default for f in lake.load_table("db.t").schema.fields}["ts"] == wire["ts"]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE db.t (i INT DEFAULT 3)",
        "CREATE TABLE db.t (i INT DEFAULT 'x') TBLPROPERTIES ('format-version' = '3')",
        "CREATE TABLE db.t (i INT DEFAULT 1.5) TBLPROPERTIES ('format-version' = '3')",
        "ALTER TABLE db.orders ADD COLUMN i INT DEFAULT 3",
        "ALTER TABLE db.orders ALTER COLUMN amount SET DEFAULT 1.5",
    ],
)
def test_defaults_that_cannot_be_are_refused(run: Session, orders: Table, lake: Lake, statement: str) -> None:
    with pytest.raises(InvalidInputError):
        run(statement)
    assert orders.metadata_location == lake.load_table("db.orders").metadata_location
    assert lake.list_tables("db") == ["db.orders"]


def test_replacing_keeps_tags_and_needs_a_table(run: Session, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    run("REPLACE TABLE db.orders (a INT)")
    assert (set(orders.refresh().refs), list(orders.schema.names)) == ({"v1"}, ["a"])
    run("CREATE OR REPLACE TABLE db.new (a INT)")
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        run("REPLACE TABLE db.nope (a INT)")
    with pytest.raises(AlreadyExistsError):
        run("CREATE TABLE db.new (a INT)")


@pytest.mark.parametrize("column", ["a`b", "a,b", "(p)", "a.b", "day(ts)"])
def test_columns_of_any_name_partition_and_sort(run: Session, lake: Lake, column: str) -> None:
    name = f"`{column.replace('`', '``')}`"
    run(f"CREATE TABLE db.t (id BIGINT, {name} INT) USING iceberg PARTITIONED BY ({name})")
    run(f"ALTER TABLE db.t ADD PARTITION FIELD bucket(4, {name})")
    run(f"ALTER TABLE db.t WRITE ORDERED BY truncate(2, {name}) DESC, {name}")
    table = lake.load_table("db.t")
    source = table.schema.find(column).id
    assert [(str(f.transform), f.source_id) for f in table.spec.fields] == [("identity", source), ("bucket[4]", source)]
    assert [f.source_id for f in table.metadata.sort_order.fields] == [source, source]


def test_a_table_like_another_has_its_columns_and_partitions(run: Session, lake: Lake) -> None:
    run("CREATE TABLE db.a (id BIGINT NOT NULL COMMENT 'key', s STRUCT<x: INT>) PARTITIONED BY (bucket(4, id))")
    run("CREATE TABLE IF NOT EXISTS db.b LIKE db.a TBLPROPERTIES ('p' = '1')")
    first, second = lake.load_table("db.a"), lake.load_table("db.b")
    assert (second.schema.fields, second.spec.fields) == (first.schema.fields, first.spec.fields)
    assert second.properties["p"] == "1"
    assert run("CREATE TABLE IF NOT EXISTS db.B LIKE db.a") == []
    with pytest.raises(AlreadyExistsError, match=r"`db\.b`"):
        run("CREATE TABLE DB.B LIKE db.a")
    with pytest.raises(UnsupportedError, match="one of them is not a lake's table"):
        run("CREATE TABLE db.c LIKE elsewhere.t")


def test_tables_of_other_formats_are_not_a_lakes(run: Session, lake: Lake) -> None:
    run("CREATE TABLE db.p (id BIGINT) USING parquet")
    assert lake.load_table("db.p").schema.names.keys() == {"id"}
    for provider in ("orc", "csv", "delta"):
        with pytest.raises(
            InvalidInputError, match=f"expected `USING iceberg` for a table of a lake, found `{provider}`"
        ):
            run(f"CREATE TABLE db.q (id BIGINT) USING {provider} OPTIONS (a 'b') COMMENT 'c'")
    with pytest.raises(UnsupportedError, match="Iceberg has no such thing"):
        run("CREATE TABLE db.q (id BIGINT) USING parquet SORTED BY (id)")
    assert not lake.table_exists("db.q")
