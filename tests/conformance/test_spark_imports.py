"""Imports, statistics and copies by the official runtime and by bergline: the same files, rows and sketches."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.format.deletes.puffin import blob_content, parse_puffin
from bergline.format.metadata.table_metadata import StatisticsFile
from bergline.io.locations import local_path, normalized
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.spark

Sql = Callable[[str], list[tuple[Any, ...]]]
NAMES = "id, amount, note, price, at, day, ok, raw"
COLUMNS = "id bigint, amount double, note string, price decimal(9, 2), at timestamp, day date, ok boolean, raw binary"
VALUES = """
    (1, 1.5D, 'a long text that is cut off', 1.25BD, TIMESTAMP '2026-01-01 10:00:00', DATE '2026-01-01', true, X'00ff'),
    (2, -0.0D, 'é', -7.50BD, TIMESTAMP '1969-12-31 23:00:00', DATE '1960-02-03', false, X''),
    (3, null, null, null, null, null, null, null),
    (4, 0.0D, '', 0.00BD, TIMESTAMP '2026-01-01 10:00:00', DATE '2026-01-01', true, X'00'),
    (1, double('Infinity'), 'é', 1.25BD, null, null, null, null)
"""


@pytest.fixture
def both(lake: Lake, spark: SparkSession, official: Sql) -> tuple[Callable[[str], list[Any]], Sql]:
    """Runs a statement on tables of bergline's (`ours`), and of the official runtime's (`theirs`)."""
    for name in ("ours", "theirs"):
        lake.create_namespace(name)
    return (lambda text: [tuple(row) for row in spark.sql(text).collect()]), official


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Path:
    """Files that Spark wrote, partitioned in Hive's style, with a null, a space and a colon."""
    home = tmp_path / "hive"
    regions = "CASE id WHEN 1 THEN 'e u' WHEN 2 THEN 'u:s' WHEN 3 THEN NULL ELSE 'nw' END AS region"
    wanted = f"CAST(id AS bigint) AS id, {NAMES.removeprefix('id, ')}, {regions}, CAST(id % 2 AS int) AS odd"
    frame = spark.sql(f"SELECT {wanted} FROM VALUES {VALUES} AS v({NAMES})")
    frame.repartition(1).write.partitionBy("region", "odd").parquet(str(home))
    return home


def properties(version: int) -> str:
    deletes = "'write.delete.mode'='merge-on-read', 'write.delete.granularity'='partition'"
    return f"'format-version'='{version}', {deletes}"


def files(rows: list[tuple[Any, ...]]) -> list[Any]:
    return sorted(([normalized(str(row[0])), *map(repr, row[1:])] for row in rows), key=repr)


FILES = """
SELECT file_path, file_format, partition.region, partition.odd, record_count, file_size_in_bytes, column_sizes,
    value_counts, null_value_counts, nan_value_counts, lower_bounds, upper_bounds, split_offsets, sort_order_id
FROM {}.files
"""


def test_files_of_a_directory_are_the_same_in_both(both: Any, lake: Lake, source: Path) -> None:
    ours, theirs = both
    for place, run in (("ours", ours), ("theirs", theirs)):
        partitioned = f"({COLUMNS}, region string, odd int) USING iceberg PARTITIONED BY (region, odd)"
        run(f"CREATE TABLE {lake.name}.{place}.t {partitioned}")
        call = f"CALL {lake.name}.system.add_files('{place}.t', '`parquet`.`{source}`'"
        # docs/differences.md: how many partitions have changed is not known there
        assert run(f"{call}, map('region', 'e u'))")[0][0] == 1, place
        assert run(f"{call}, map('odd', '0'))")[0][0] == 2, place
    assert files(ours(FILES.format("ours.t"))) == files(ours(FILES.format("theirs.t")))
    rows = f"SELECT {NAMES}, region, odd FROM {{}}.t ORDER BY id, note"
    assert repr(ours(rows.format("ours"))) == repr(ours(rows.format("theirs")))
    assert repr(theirs(rows.format("ours"))) == repr(theirs(rows.format("theirs")))
    tables = [lake.load_table(f"{place}.t") for place in ("ours", "theirs")]
    mine, other = (json.loads(table.properties["schema.name-mapping.default"]) for table in tables)
    assert mine == other


def raw_blobs(table: Table, file: StatisticsFile) -> dict[int, bytes]:
    data = table.io.read(file.statistics_path)
    blobs = parse_puffin(data, "x").blobs
    return {b.fields[0]: blob_content(data[b.offset : b.offset + b.length], b, "x") for b in blobs}


@pytest.mark.parametrize("version", [2, 3])
def test_sketches_are_byte_for_byte_those_of_java(
    both: Any, lake: Lake, official_runtime: OfficialRuntime, version: int
) -> None:
    ours, theirs = both
    theirs(f"CREATE TABLE theirs.t ({COLUMNS}) USING iceberg TBLPROPERTIES ({properties(version)})")
    theirs(f"INSERT INTO theirs.t VALUES {VALUES}")
    theirs("DELETE FROM theirs.t WHERE id = 2")
    theirs(f"CALL {lake.name}.system.compute_table_stats('theirs.t')")
    table = lake.load_table("theirs.t")
    (java,) = table.metadata.statistics
    expected = raw_blobs(table, java)
    ours(f"CALL {lake.name}.system.compute_table_stats('theirs.t')")
    (mine,) = table.refresh().metadata.statistics
    assert mine.statistics_path != java.statistics_path
    assert {b.fields: b.properties for b in mine.blob_metadata} == {b.fields: b.properties for b in java.blob_metadata}
    assert raw_blobs(table, mine) == expected
    assert java_estimates(official_runtime, mine) == [float(b.properties["ndv"]) for b in mine.blob_metadata]
    assert theirs("SELECT count(*) FROM theirs.t") == [(4,)]


def java_estimates(runtime: OfficialRuntime, file: StatisticsFile) -> list[float]:
    """What Java's own sketches say of our blobs."""
    return runtime.python(
        """
iceberg, sketches = jvm.org.apache.iceberg, jvm.org.apache.iceberg.shaded.org.apache.datasketches
io = iceberg.hadoop.HadoopFileIO(spark._jsc.hadoopConfiguration())
reader = iceberg.puffin.Puffin.read(io.newInputFile(path)).build()
result, pairs = [], reader.readAll(reader.fileMetadata().blobs()).iterator()
while pairs.hasNext():
    buffer = pairs.next().second()
    start = buffer.arrayOffset()
    data = bytes(buffer.array())[start + buffer.position() : start + buffer.limit()]
    result.append(sketches.theta.CompactSketch.wrap(sketches.memory.Memory.wrap(data)).getEstimate())
reader.close()
""",
        path=file.statistics_path,
    )


def test_large_sketches_are_as_close_as_javas(both: Any, lake: Lake, official_runtime: OfficialRuntime) -> None:
    ours, _ = both
    table = lake.create_table("ours.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.append(pa.table({"id": list(range(50_000)), "name": [f"n{i % 20_000}" for i in range(50_000)]}))
    table.append(pa.table({"id": list(range(40_000, 90_000)), "name": ["n1"] * 50_000}))
    ours(f"CALL {lake.name}.system.compute_table_stats('ours.t', columns => array('id', 'name'))")
    (file,) = table.refresh().metadata.statistics
    found = java_estimates(official_runtime, file)
    assert found == [pytest.approx(90_000, rel=0.05), pytest.approx(20_000, rel=0.05)]
    assert [int(estimate) for estimate in found] == [int(b.properties["ndv"]) for b in file.blob_metadata]


PARTITION_STATISTICS = """
table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
names = ["specId", "dataRecordCount", "dataFileCount", "totalDataFileSizeInBytes", "positionDeleteRecordCount"]
names += ["positionDeleteFileCount", "equalityDeleteRecordCount", "equalityDeleteFileCount", "totalRecords"]
names += ["lastUpdatedAt", "lastUpdatedSnapshotId", "dvCount"]
scan = table.newPartitionStatisticsScan().scan()
result, rows = [], scan.iterator()
while rows.hasNext():
    row = rows.next()
    result.append([row.partition().toString(), *(getattr(row, name)() for name in names)])
scan.close()
"""


@pytest.mark.parametrize("version", [2, 3])
def test_partition_statistics_are_the_same_in_both(
    both: Any, lake: Lake, official_runtime: OfficialRuntime, version: int
) -> None:
    ours, theirs = both
    layout = f"(id bigint, region string) USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({properties(version)})"
    theirs(f"CREATE TABLE theirs.t {layout}")
    theirs("INSERT INTO theirs.t VALUES (1, 'eu'), (2, 'eu'), (3, null), (4, 'us'), (5, 'us')")
    theirs("DELETE FROM theirs.t WHERE id = 1")
    theirs("ALTER TABLE theirs.t ADD PARTITION FIELD bucket(4, id)")
    theirs("INSERT INTO theirs.t VALUES (6, 'eu'), (7, 'nw')")
    theirs("DELETE FROM theirs.t WHERE region = 'us'")
    theirs(f"CALL {lake.name}.system.compute_partition_stats('theirs.t')")
    expected = official_runtime.python(PARTITION_STATISTICS, name=f"{lake.name}.theirs.t")
    table = lake.load_table("theirs.t")
    assert table.current_snapshot
    table.remove_partition_statistics(table.current_snapshot.snapshot_id)
    ours(f"CALL {lake.name}.system.compute_partition_stats('theirs.t')")
    assert official_runtime.python(PARTITION_STATISTICS, name=f"{lake.name}.theirs.t") == expected
    assert len(expected) == 5


@pytest.mark.parametrize("version", [2, 3])
def test_copies_by_the_list_are_read_by_both(both: Any, lake: Lake, tmp_path: Path, version: int) -> None:
    ours, theirs = both
    layout = f"(id bigint, region string) USING iceberg PARTITIONED BY (region) TBLPROPERTIES ({properties(version)})"
    theirs(f"CREATE TABLE theirs.t {layout}")
    theirs("INSERT INTO theirs.t VALUES (1, 'eu'), (2, 'eu'), (3, null), (4, 'us')")
    theirs("INSERT INTO theirs.t VALUES (5, 'eu')")
    theirs("DELETE FROM theirs.t WHERE id IN (1, 5)")
    table = lake.load_table("theirs.t")
    found = {}
    for place, run in (("ours", ours), ("theirs", theirs)):
        new = f"{tmp_path}/copies/{place}"
        call = f"CALL {lake.name}.system.rewrite_table_path('theirs.t', '{table.location}', '{new}')"
        ((latest, listed, manifests, deletes),) = run(call)
        found[place] = (latest, manifests, deletes)
        targets = set()
        for line in Path(local_path(listed)).read_text().splitlines():
            source, target = line.split(",")
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(local_path(source), target)
            targets.add(target.removeprefix(new))
        found[place] += (targets,)
        run(f"CALL {lake.name}.system.register_table('ours.{place}', '{new}/metadata/{latest}')")
    assert found["ours"] == found["theirs"]
    shutil.rmtree(local_path(table.location))
    for place in ("ours", "theirs"):
        query = f"SELECT id, region FROM {lake.name}.ours.{place} ORDER BY id"
        assert ours(query) == theirs(query) == [(2, "eu"), (3, None), (4, "us")], place


def test_tables_of_the_session_catalog_are_taken_in_place(
    spark: SparkSession, lake: Lake, official: Sql, tmp_path: Path
) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS spark_catalog.imports LOCATION '{tmp_path}/imports'")
    try:
        spark.sql(
            "CREATE TABLE spark_catalog.imports.src (id bigint, region string) USING parquet "
            f"PARTITIONED BY (region) LOCATION '{tmp_path}/external' TBLPROPERTIES ('note' = 'x')"
        )
        spark.sql("INSERT INTO spark_catalog.imports.src VALUES (1, 'e u'), (2, 'u:s'), (3, null)")
        spark.sql(
            f"ALTER TABLE spark_catalog.imports.src ADD PARTITION (region = 'zz') LOCATION '{tmp_path}/else where'"
        )
        spark.sql("INSERT INTO spark_catalog.imports.src VALUES (4, 'zz')")
        spark.sql("CALL system.snapshot('spark_catalog.imports.src', 'db.snap')")
        query = "SELECT id, region FROM {} ORDER BY id"
        expected = [(1, "e u"), (2, "u:s"), (3, None), (4, "zz")]
        assert [tuple(row) for row in spark.sql(query.format("db.snap")).collect()] == expected
        assert official(query.format("db.snap")) == expected
        table = lake.load_table("db.snap")
        assert {k: table.properties[k] for k in ("gc.enabled", "snapshot", "note")} == {
            "gc.enabled": "false",
            "snapshot": "true",
            "note": "x",
        }
    finally:
        spark.sql("DROP DATABASE spark_catalog.imports CASCADE")
