"""Spark's own reader and writer on S3, where the session has the S3A connector: rows are as by our storage."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Table
from bergline.spark.backends.classic.files import NO_CONNECTOR, s3a_refusal
from bergline.spark.reads.evidence import FileEvidence
from bergline.spark.reads.groups import read_groups
from support.fixtures.add_deletes import add_deletes, position_deletes
from support.models.table_invariants import unneeded_files
from support.processes.cluster_driver import ClusterDriver
from support.processes.s3a_jobs import s3a_settings
from support.servers.peers import needs_java
from support.servers.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ORDERS = pa.schema([("id", pa.int64()), ("region", pa.string())])


@pytest.fixture(scope="module")
def driver(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDriver]:
    """A session that runs its tasks itself, and has the connector."""
    needs_java()
    log = tmp_path_factory.mktemp("s3a") / "log.txt"
    with ClusterDriver("local[2]", Path(sys.executable), log, s3a_settings(s3_server.properties)) as running:
        yield running


@pytest.fixture
def place(s3_server: S3Server, bucket: str, tmp_path: Path) -> dict[str, Any]:
    """How to connect to a lake on S3."""
    place = {
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"{bucket}/wh",
        "properties": s3_server.properties,
    }
    with bergline.connect(**place, create=True) as lake:
        lake.create_namespace("db")
    return place


def writers_of(table: Table) -> set[str]:
    """The libraries that wrote the files of a table."""
    paths = [planned.file.file_path for planned in table.refresh().scan().plan().files]
    footers = [pq.read_metadata(table.io.open_input(path)) for path in paths]
    return {footer.created_by.partition(" ")[0] for footer in footers}


def test_files_on_s3_go_to_sparks_reader_through_its_connector(driver: ClusterDriver, place: dict[str, Any]) -> None:
    with bergline.connect(**place) as lake:
        table = lake.create_table("db.orders", ORDERS, partition_by=["region"])
        rows = [{"id": n, "region": "a/b" if n % 2 else "north east"} for n in range(10)]
        table.append(pa.Table.from_pylist(rows, ORDERS))
        north = next(p.file for p in table.scan().plan().files if p.file.partition == ("north east",))
        add_deletes(table, position_deletes(table, {north.file_path: [1]}))
    answer = driver.run("s3a_jobs:read_orders", place)
    assert answer["rows"][0] == [["a/b", 24], ["north east", 18]]
    assert answer["rows"][1] == [[n, n // 2, north.file_path] for n in (0, 4, 6, 8)]
    assert all("native" in text and "arrow" not in text for text in answer["explained"]), answer["explained"]
    assert {path.partition(":")[0] for path in answer["files"]} == {"s3a"}


def test_rows_go_to_s3_by_sparks_writer_and_stay_where_it_put_them(
    driver: ClusterDriver, place: dict[str, Any]
) -> None:
    with bergline.connect(**place) as lake:
        table = lake.create_table("db.orders", ORDERS)
        assert driver.run("s3a_jobs:append_rows", place, files=3) == 300
        assert writers_of(table) == {"parquet-mr"}
        files = [planned.file for planned in table.refresh().scan().plan().files]
        assert [file.record_count for file in files] == [100, 100, 100]
        assert [(file.lower_bounds or {})[1][0] for file in files] == [0, 100, 200]
        assert len({file.file_path.rpartition("/")[0] for file in files}) == 1
        assert all(file.file_path.startswith(f"{table.location}/data/") for file in files)
        assert {file.file_path: file.file_size_in_bytes for file in files} == {
            file.location: file.size for file in table.io.list_files(f"{table.location}/data")
        }
        assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == list(range(300))


def test_write_to_s3_that_fails_leaves_nothing(
    driver: ClusterDriver, place: dict[str, Any], s3_server: S3Server, bucket: str
) -> None:
    with bergline.connect(**place) as lake:
        table = lake.create_table("db.orders", ORDERS)
        with pytest.raises(AssertionError, match="this row"):
            driver.run("s3a_jobs:append_rows", place, files=3, fails=True)
        assert unneeded_files(table) == set()
        assert table.refresh().current_snapshot is None
        assert s3_server.uploads_under_way(bucket.removeprefix("s3://")) == []


def test_where_the_connector_may_write_elsewhere_our_tasks_write(
    driver: ClusterDriver, place: dict[str, Any], s3_server: S3Server
) -> None:
    other = {"s3.endpoint": s3_server.endpoint.replace("127.0.0.1", "localhost")}
    with bergline.connect(**place) as lake:
        table = lake.create_table("db.orders", ORDERS)
        assert driver.run("s3a_jobs:append_rows", {**place, "properties": place["properties"] | other}, files=2) == 200
        assert writers_of(table) == {"parquet-cpp-arrow"}


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
