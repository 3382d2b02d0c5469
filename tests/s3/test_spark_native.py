"""Spark's own reader on S3, where the session has the S3A connector: the rows are those of the lake's own storage."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import s3a_session_process
from add_deletes import add_deletes, position_deletes
from peers import needs_java
from pyspark.sql import SparkSession
from s3_server import S3Server

import bergline
import bergline.spark
from bergline.spark.backends.classic.files import NO_CONNECTOR, s3a_refusal
from bergline.spark.reads.evidence import FileEvidence
from bergline.spark.reads.groups import read_groups

pytestmark = pytest.mark.spark

ORDERS = pa.schema([("id", pa.int64()), ("region", pa.string())])


@pytest.mark.timeout(600)
def test_files_on_s3_go_to_sparks_reader_through_its_connector(
    s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    needs_java()
    catalog, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"{bucket}/wh"
    with bergline.connect(catalog, warehouse=warehouse, properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS, partition_by=["region"])
        rows = [{"id": n, "region": "a/b" if n % 2 else "north east"} for n in range(10)]
        table.append(pa.Table.from_pylist(rows, ORDERS))
        north = next(p.file for p in table.scan().plan().files if p.file.partition == ("north east",))
        add_deletes(table, position_deletes(table, {north.file_path: [1]}))
    command = [sys.executable, s3a_session_process.__file__, catalog, warehouse, json.dumps(s3_server.properties)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    answer = json.loads(run.stdout.splitlines()[-1])
    assert answer["rows"][0] == [["a/b", 24], ["north east", 18]]
    assert answer["rows"][1] == [[n, n // 2, north.file_path] for n in (0, 4, 6, 8)]
    assert all("native" in text and "arrow" not in text for text in answer["explained"]), answer["explained"]
    assert {path.partition(":")[0] for path in answer["files"]} == {"s3a"}


def test_without_the_connector_the_reason_is_given(
    spark_session: SparkSession, s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(catalog, warehouse=f"{bucket}/wh", properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS).append(pa.table({"id": [1], "region": ["x"]}, schema=ORDERS))
        assert s3a_refusal(spark_session) == NO_CONNECTOR
        plan, look_up = table.scan().plan(), FileEvidence(table.io).look_up
        assert [(g.reader, g.reason) for g in read_groups(plan, look_up, NO_CONNECTOR)] == [("arrow", NO_CONNECTOR)]
        assert [g.reader for g in read_groups(plan, look_up, None)] == ["native"]
        assert NO_CONNECTOR in bergline.spark.explain_read(table.scan())
