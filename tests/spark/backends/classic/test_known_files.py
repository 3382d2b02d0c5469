"""Many files are handed to Spark without a look at each: it reads exactly those of the plan, however they are named."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import NotFoundError

pytestmark = pytest.mark.spark

FILES = 40
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32())])


@pytest.fixture
def many(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table of many files in a directory that is hard to spell; temporary directories are, too."""
    temporary = tmp_path / "temp ä 1%20"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    properties = {"write.data.path": f"file://{tmp_path}/dä ta 100%20+#", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.many", SCHEMA, partition_by=["part"], properties=properties)
    ids = list(range(FILES * 3))
    return table.append(pa.table({"id": ids, "part": [n % FILES for n in ids]}, SCHEMA))


def index_of(spark: SparkSession, text: str) -> str:
    leaf = spark.sql(text)._jdf.queryExecution().analyzed().collectLeaves().head()
    return str(leaf.relation().location().getClass().getSimpleName())


def ids(spark: SparkSession, where: str = "true") -> list[int]:
    return [row.id for row in spark.sql(f"SELECT id FROM db.many WHERE {where} ORDER BY id").collect()]


def test_rows_of_many_files(spark: SparkSession, many: Table, tmp_path: Path) -> None:
    pinned = f"SELECT * FROM db.many VERSION AS OF {many.metadata.current_snapshot_id}"
    assert index_of(spark, pinned) == "MetadataLogFileIndex"
    assert ids(spark) == list(range(FILES * 3))
    planned = {p.file.file_path: p.file.record_count for p in many.scan().plan().files}
    places = spark.sql("SELECT _file, max(_pos) + 1 AS n FROM db.many GROUP BY _file").collect()
    assert {row[0]: row.n for row in places} == planned
    assert list((tmp_path / "temp ä 1%20").iterdir()) == []


def test_deletes_and_renamed_columns(spark: SparkSession, many: Table) -> None:
    many.delete("id IN (5, 7)")
    spark.sql("ALTER TABLE db.many RENAME COLUMN id TO number")
    spark.sql("ALTER TABLE db.many ADD COLUMN more INT")
    rows = spark.sql("SELECT number, more FROM db.many ORDER BY number").collect()
    assert [row.number for row in rows] == [n for n in range(FILES * 3) if n not in {5, 7}]
    assert {row.more for row in rows} == {None}


def test_a_refreshed_view_has_the_files_that_there_are_now(spark: SparkSession, many: Table) -> None:
    spark.sql("CREATE TEMPORARY VIEW kept AS SELECT id FROM db.many")
    many.append(pa.table({"id": [-1], "part": [0]}, SCHEMA))
    spark.sql("REFRESH TABLE kept")
    assert spark.table("kept").count() == FILES * 3 + 1


def test_the_same_files_are_the_same_relation(spark: SparkSession, many: Table) -> None:
    assert many
    first, second = (spark.sql("SELECT * FROM db.many") for _ in range(2))
    assert first.sameSemantics(second)


def test_a_missing_file_is_named(spark: SparkSession, many: Table) -> None:
    path = many.scan().plan().files[FILES // 2].file.file_path
    many.io.delete([path])
    with pytest.raises(NotFoundError) as caught:
        ids(spark)
    assert caught.value.name == path
    assert str(many.metadata.current_snapshot_id) in str(caught.value)
