"""Statements on tables and namespaces, run on a lake without an engine."""

import pytest
from rows import ORDERS, order_rows

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.types.defaults import write_value
from bergline.sql.names.resolve import Current, Lakes
from bergline.sql.parse.analyze import analyze
from bergline.sql.run.run import run_statement
from bergline.sql.run.show_names import matching


class Session:
    """Runs statements one after the other; USE counts for those after it."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._current = Current()

    def __call__(self, text: str) -> list[tuple[object, ...]] | None:
        lakes = Lakes({"lake": self._lake}, "lake", self._current)
        rows = run_statement(analyze(text), lakes, time_zone="Europe/Berlin")  # type: ignore[arg-type]
        return None if rows is None else [tuple(row.values()) for row in rows.to_pylist()]


@pytest.fixture
def run(lake: Lake) -> Session:
    return Session(lake)


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


def test_replacing_keeps_tags_and_needs_a_table(run: Session, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    run("REPLACE TABLE db.orders (a INT)")
    assert (set(orders.refresh().refs), list(orders.schema.names)) == ({"v1"}, ["a"])
    run("CREATE OR REPLACE TABLE db.new (a INT)")
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        run("REPLACE TABLE db.nope (a INT)")
    with pytest.raises(AlreadyExistsError):
        run("CREATE TABLE db.new (a INT)")


def test_purge_deletes_the_files(run: Session, orders: Table) -> None:
    orders.append(order_rows(1))
    run("DROP TABLE db.orders PURGE")
    assert not orders.io.list(orders.location)
    run("DROP TABLE IF EXISTS db.orders PURGE")


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


def test_partitions_are_shown_as_paths_of_any_version(run: Session, lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region", "bucket(2, id)"])
    table.append(order_rows(1)).refs.create_tag("v1")
    table.append(order_rows(1, region="us west"))
    assert run("SHOW PARTITIONS db.parts.tag_v1") == [("region=eu/id_bucket=0",)]
    assert run("SHOW PARTITIONS db.parts") == [("region=eu/id_bucket=0",), ("region=us+west/id_bucket=0",)]
    assert run("SHOW PARTITIONS db.parts PARTITION (region = 'eu')") == [("region=eu/id_bucket=0",)]
    assert run("SHOW PARTITIONS db.parts PARTITION (region = 'us west')") == [("region=us+west/id_bucket=0",)]
    assert run("SHOW PARTITIONS db.parts PARTITION (region = NULL)") == []
    with pytest.raises(NotFoundError, match="no partition field `regoin`") as caught:
        run("SHOW PARTITIONS db.parts PARTITION (regoin = 'eu')")
    assert caught.value.near == ("region",)
    lake.create_table("db.plain", ORDERS)
    with pytest.raises(InvalidInputError, match="expected a partitioned table"):
        run("SHOW PARTITIONS db.plain")


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


def test_metadata_tables_are_described(run: Session, orders: Table) -> None:
    assert ("snapshot_id", "bigint", None) in (run("DESCRIBE EXTENDED db.orders.refs") or [])
    assert run("DESCRIBE db.orders.branch_main") == run("DESCRIBE db.orders")


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


def test_tables_are_shown_with_all_about_them(run: Session, lake: Lake) -> None:
    run(
        "CREATE TABLE db.t (id BIGINT NOT NULL, p STRUCT<x: DOUBLE, l: ARRAY<INT>>, m MAP<STRING, STRUCT<a: DATE>>) "
        "COMMENT 'words'"
    )
    run("CREATE TABLE db.other (id INT)")
    ((namespace, name, temporary, text),) = run("SHOW TABLE EXTENDED IN db LIKE 'T*|x'") or []
    assert (namespace, name, temporary) == ("db", "t", False)
    location = lake.load_table("db.t").location
    assert text == (
        "Catalog: lake\nNamespace: db\nTable: t\nType: MANAGED\nComment: words\n"
        f"Location: {location}\nProvider: iceberg\nTable_type: EXTERNAL\n"
        "Table Properties: [current-snapshot-id=none,format=iceberg/parquet,format-version=2,"
        "write.parquet.compression-codec=zstd]\n"
        "Schema: root\n"
        " |-- id: long (nullable = false)\n"
        " |-- p: struct (nullable = true)\n"
        " |    |-- x: double (nullable = true)\n"
        " |    |-- l: array (nullable = true)\n"
        " |    |    |-- element: integer (containsNull = true)\n"
        " |-- m: map (nullable = true)\n"
        " |    |-- key: string\n"
        " |    |-- value: struct (valueContainsNull = true)\n"
        " |    |    |-- a: date (nullable = true)\n\n"
    )
    run("USE db")
    assert len(run("SHOW TABLE EXTENDED LIKE '*'") or []) == 2
    assert run("SHOW TABLE EXTENDED IN elsewhere LIKE '*'") is None


def test_catalogs_views_and_procedures_are_shown(run: Session) -> None:
    assert run("SHOW CATALOGS") == [("lake",)]
    assert run("SHOW CATALOGS LIKE 'x*'") == []
    assert run("SHOW VIEWS IN db") == []
    assert run("SHOW VIEWS") is None
    shown = run("SHOW PROCEDURES IN lake.system") or []
    assert ("lake", ["system"], "system", "fast_forward") in shown
    assert run("SHOW PROCEDURES IN system") == shown
    assert run("SHOW PROCEDURES IN db") == []
    assert run("SHOW PROCEDURES IN elsewhere.system") is None
    assert run("SHOW PROCEDURES") == shown
    assert [row[3] for row in run("SHOW PROCEDURES LIKE 'roll*|diff'") or []] == [
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "diff",
    ]
    assert run("SHOW PROCEDURES IN system LIKE 'x*'") == []


def test_replaced_columns_are_new_ones(run: Session, orders: Table) -> None:
    orders.append(order_rows(1))
    run("ALTER TABLE db.orders REPLACE COLUMNS (id BIGINT, note STRING COMMENT 'words')")
    fields = orders.refresh().schema.fields
    assert [(f.id > 3, f.name, f.doc) for f in fields] == [(True, "id", None), (True, "note", "words")]
    assert orders.scan().to_arrow().to_pylist() == [{"id": None, "note": None}]


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


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["alpha", "beta", "a.b"]),
        ("A*", ["alpha", "a.b"]),
        ("beta|alpha", ["alpha", "beta"]),
        ("a.b", ["a.b"]),
        ("al.ha", []),
        ("", []),
        ("(", []),
        (None, ["alpha", "beta", "a.b"]),
    ],
)
def test_patterns_know_stars_and_bars(pattern: str | None, found: list[str]) -> None:
    assert matching(["alpha", "beta", "a.b"], pattern) == found
