"""Tables of Spark's session catalog: described, listed by partition, and taken over by lakes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from support.fixtures.rows import ORDERS

pytestmark = pytest.mark.spark

SOURCE = "spark_catalog.imports.src"


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A partitioned table outside of Spark's warehouse, one partition of it elsewhere."""
    spark.sql(f"CREATE DATABASE spark_catalog.imports LOCATION '{tmp_path}/imports'")
    spark.sql(
        f"CREATE TABLE {SOURCE} (id bigint, amount double, region string) USING parquet PARTITIONED BY (region) "
        f"LOCATION '{tmp_path}/external' TBLPROPERTIES ('note' = 'x')"
    )
    spark.sql(f"INSERT INTO {SOURCE} VALUES (1, 1.5, 'e u'), (2, 2.5, 'u:s'), (3, null, null)")
    spark.sql(f"ALTER TABLE {SOURCE} ADD PARTITION (region = 'zz') LOCATION '{tmp_path}/else where'")
    spark.sql(f"INSERT INTO {SOURCE} VALUES (4, 4.5, 'zz')")
    yield tmp_path / "external"
    spark.sql("DROP DATABASE spark_catalog.imports CASCADE")


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in spark.sql(f"SELECT id, region FROM {table} ORDER BY id").collect()]


ROWS = [(1, "e u"), (2, "u:s"), (3, None), (4, "zz")]


def test_files_are_added_by_partition(spark: SparkSession, lake: Lake, source: Path) -> None:
    lake.create_table("db.t", ORDERS, partition_by=["region"])
    call = f"CALL system.add_files('db.t', '{SOURCE}'"
    assert [tuple(r) for r in spark.sql(f"{call}, map('region', 'zz'))").collect()] == [(1, 1)]
    assert rows(spark, "db.t") == ROWS[3:]
    with pytest.raises(InvalidInputError, match="which is on branch `main` already"):
        spark.sql(f"{call})")
    lake.create_table("db.other", ORDERS)
    with pytest.raises(InvalidInputError, match="expected files partitioned as a spec of the table"):
        spark.sql(f"CALL system.add_files('db.other', '{SOURCE}')")


def test_snapshot_reads_the_files_and_the_source_stays(spark: SparkSession, lake: Lake, source: Path) -> None:
    assert spark.sql(f"CALL system.snapshot('{SOURCE}', 'db.snap', properties => map('k', 'v'))").collect()[0][0] == 4
    assert rows(spark, "db.snap") == rows(spark, SOURCE) == ROWS
    table = lake.load_table("db.snap")
    kept = {"gc.enabled": "false", "snapshot": "true", "note": "x", "k": "v"}
    assert {key: table.properties.get(key) for key in kept} == kept
    with pytest.raises(RefusedError):
        table.expire(retain_last=1)
    table.delete("id = 1")
    assert rows(spark, SOURCE) == ROWS
    with pytest.raises(AlreadyExistsError):
        spark.sql(f"CALL system.snapshot('{SOURCE}', 'db.snap')")
    with pytest.raises(InvalidInputError, match="expected a location apart from that of"):
        spark.sql(f"CALL system.snapshot('{SOURCE}', 'db.inside', location => 'file://{source}/below')")
    assert not lake.table_exists("db.inside")


def test_migrated_table_has_the_name_and_the_location(spark: SparkSession, lake: Lake, source: Path) -> None:
    lake.create_namespace("imports")
    assert spark.sql("CALL system.migrate('imports.src', backup_table_name => 'old')").collect()[0][0] == 4
    assert rows(spark, "imports.src") == rows(spark, "spark_catalog.imports.old") == ROWS
    table = lake.load_table("imports.src")
    assert table.location.endswith(str(source))
    assert table.properties["migrated"] == "true"
    assert not spark.catalog.tableExists(SOURCE)
    spark.sql("INSERT INTO imports.src VALUES (5, 1.0, 'eu')")
    assert rows(spark, "spark_catalog.imports.old") == ROWS


def test_migration_that_fails_gives_the_table_its_name_back(spark: SparkSession, lake: Lake, source: Path) -> None:
    lake.create_namespace("imports")
    (damaged,) = (source / "region=e u").glob("*.parquet")
    content = damaged.read_bytes()
    (source / "region=e u" / f".{damaged.name}.crc").unlink(missing_ok=True)
    damaged.write_bytes(b"no")
    with pytest.raises(Exception, match=r"expected a Parquet file|not a Parquet file"):
        spark.sql("CALL system.migrate('imports.src')")
    damaged.write_bytes(content)
    assert rows(spark, SOURCE) == ROWS
    assert lake.list_tables("imports") == []


def test_what_is_not_safe_is_refused(spark: SparkSession, lake: Lake, source: Path) -> None:
    lake.create_namespace("imports")
    spark.sql("CREATE TABLE spark_catalog.imports.managed (id bigint, p string) USING parquet PARTITIONED BY (p)")
    spark.sql("CREATE TABLE spark_catalog.imports.flat USING parquet AS SELECT 1L AS id")
    spark.sql("CREATE TABLE spark_catalog.imports.orc USING orc AS SELECT 1L AS id")
    spark.sql("CREATE VIEW spark_catalog.imports.v AS SELECT 1 AS id")
    refused = [
        ("migrate('imports.managed')", RefusedError, "would lose its partitions"),
        ("migrate('imports.flat', drop_backup => true)", RefusedError, "Spark manages its files, and would delete"),
        ("migrate('imports.orc')", UnsupportedError, "expected a table of Parquet files, found `orc`"),
        ("snapshot('spark_catalog.imports.v', 'db.v')", UnsupportedError, "expected a table of files, found `VIEW`"),
        ("snapshot('imports.nope', 'db.v')", NotFoundError, "no table `spark_catalog.imports.nope`"),
        ("snapshot('lake.db.t', 'db.v')", InvalidInputError, "expected a table of the session catalog"),
        ("migrate('imports.src', backup_table_name => 'flat')", AlreadyExistsError, "imports.flat` exists already"),
    ]
    for text, error, message in refused:
        with pytest.raises(error, match=message):
            spark.sql(f"CALL system.{text}")
    assert spark.sql("CALL system.migrate('imports.flat')").collect()[0][0] == 1
    assert [tuple(row) for row in spark.sql("SELECT * FROM imports.flat").collect()] == [(1,)]
    assert rows(spark, SOURCE) == ROWS
