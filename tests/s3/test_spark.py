"""Spark on a lake in S3, without any jar for it: the executors read and write through the lake's own storage."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline.datafiles.write.write_spec import write_spec
from bergline.spark.backends.choose import backend_of
from bergline.spark.writes import footers
from bergline.spark.writes.footers import read_stored, stored_files
from support.servers.s3_server import S3Server

pytestmark = pytest.mark.spark


@pytest.fixture
def spark(spark_session: SparkSession, s3_server: S3Server, bucket: str, tmp_path: Path) -> Iterator[SparkSession]:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(catalog, warehouse=f"{bucket}/wh", properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db")
        bergline.spark.attach(spark_session, lake)
        yield spark_session
        bergline.spark.detach(spark_session)


def test_rows_are_written_and_read_by_executors(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE db.orders (id BIGINT, region STRING) USING iceberg PARTITIONED BY (region)")
    spark.sql("INSERT INTO db.orders SELECT id, if(id % 2 = 0, 'north east', 'a/b') FROM range(10)")
    rows = spark.sql("SELECT region, sum(id) FROM db.orders WHERE id > 1 GROUP BY region ORDER BY region").collect()
    assert [tuple(row) for row in rows] == [("a/b", 24), ("north east", 20)]


def test_many_footers_are_read_by_tasks(
    spark_session: SparkSession, s3_server: S3Server, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("id", pa.int64()), ("region", pa.string())])
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(catalog, warehouse=f"{bucket}/wh", properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", schema)
        for first in range(5):
            table.append(pa.table({"id": list(range(first, 7)), "region": ["x"] * (7 - first)}, schema=schema))
        files = [planned.file for planned in table.scan().plan().files]
        places, spec = [(file.file_path, file.file_size_in_bytes) for file in files], write_spec(table.metadata)
        here = stored_files(table.io, spec, places)
        monkeypatch.setattr(footers, "_MOST_COLUMNS_HERE", 0)
        monkeypatch.setattr(footers, "_FILES_PER_TASK", 2)
        assert read_stored(backend_of(spark_session), table.io, spec, places) == here
        assert sorted(each.file.record_count for each in here) == [3, 4, 5, 6, 7]
