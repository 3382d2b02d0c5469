"""SHOW of what a table has."""

import pytest

from bergline import Lake
from bergline.errors import InvalidInputError, NotFoundError
from bergline.sql.statements.show_table import ShowColumns, ShowPartitions, ShowProperties, ShowTableExtended
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.sql_statements import Session, meaning

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW TABLE EXTENDED IN db LIKE 'a*'", ShowTableExtended(("db",), "a*")),
        ("SHOW TABLE EXTENDED LIKE 'a'", ShowTableExtended(None, "a")),
        ("SHOW TBLPROPERTIES db.t", ShowProperties(T)),
        ("SHOW TBLPROPERTIES db.t ('a.b')", ShowProperties(T, "a.b")),
        ("SHOW PARTITIONS db.t", ShowPartitions(T)),
        (
            "SHOW PARTITIONS db.t PARTITION (a = 'x', b = 5, c = TRUE, d = NULL)",
            ShowPartitions(T, {"a": "x", "b": "5", "c": "true", "d": None}),
        ),
        ("SHOW COLUMNS IN db.t", ShowColumns(T)),
        ("SHOW COLUMNS FROM t FROM db", ShowColumns(T)),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


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
