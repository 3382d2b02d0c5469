"""Spark on a table whose REST catalog restricts its readers: nothing reads its rows, whatever it is called."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from support.proxies.restricted_server import restricted_server
from support.proxies.restricting_proxy import MASKS, ROW_FILTER, RestrictingProxy

REFUSED = "cannot read table `db.people`: its catalog demands a row filter and column masks of its readers"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestrictingProxy]:
    with restricted_server(tmp_path_factory.mktemp("restricted")) as running:
        yield running


@pytest.fixture
def session(spark_session: SparkSession, proxy: RestrictingProxy) -> Iterator[SparkSession]:
    """A session that has read the table before it was restricted, and keeps what it knows of it."""
    proxy.restrictions = None
    with bergline.connect(proxy.uri) as lake:
        bergline.spark.attach(spark_session, lake)
        assert spark_session.table("db.people").count() == 4
        proxy.restrictions = ROW_FILTER | MASKS
        yield spark_session
        bergline.spark.detach(spark_session)


def _stream(spark: SparkSession, directory: Path) -> None:
    writer = spark.readStream.table("db.people").writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{directory}/check").start(f"{directory}/rows")
    try:
        query.awaitTermination(60)
    finally:
        query.stop()


MERGE = (
    "MERGE INTO db.people t USING (SELECT 1 AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = 'x' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
)
READS: dict[str, Callable[[SparkSession, Path], Any]] = {
    **{
        text: (lambda spark, _, sql=text: spark.sql(sql).collect())
        for text in (
            "SELECT * FROM db.people",
            "SELECT count(*) FROM db.people",
            "SELECT max(id) FROM db.people WHERE region = 'EU-secret'",
            "SELECT * FROM db.people VERSION AS OF 'work'",
            "SELECT * FROM db.people.files",
            "SELECT * FROM db.people.partitions",
            "SELECT * FROM db.people.all_manifests",
            "SHOW PARTITIONS db.people",
            "UPDATE db.people SET name = 'x' WHERE id = 1",
            "DELETE FROM db.people WHERE id = 1",
            MERGE,
            "INSERT INTO db.copy SELECT * FROM db.people",
            "INSERT OVERWRITE db.people SELECT * FROM db.people",
            "CREATE TABLE db.other AS SELECT * FROM db.people",
            "CALL system.rewrite_data_files(table => 'db.people', options => map('rewrite-all', 'true'))",
            "CALL system.create_changelog_view(table => 'db.people')",
            "CALL system.compute_table_stats(table => 'db.people')",
            "ANALYZE TABLE db.people COMPUTE STATISTICS FOR ALL COLUMNS",
            "SELECT c.id FROM db.copy c JOIN db.people p ON c.id = p.id",
        )
    },
    "table": lambda spark, _: spark.table("db.people").collect(),
    "filtered": lambda spark, _: spark.table("db.people").where("id = 1").select("name").toPandas(),
    "read.table": lambda spark, _: spark.read.table("db.people").show(),
    "read.format": lambda spark, _: spark.read.format("iceberg").load("db.people").count(),
    "of a branch": lambda spark, _: spark.read.option("branch", "work").table("db.people").collect(),
    "changes": lambda spark, _: (
        spark.read.format("iceberg").option("start-timestamp", "0").load("db.people.changes").collect()
    ),
    "stream": _stream,
}


@pytest.mark.parametrize("read", READS)
def test_nothing_is_read(read: str, session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=REFUSED):
        READS[read](session, tmp_path)


def test_metadata_is_shown_and_rows_are_appended(session: SparkSession) -> None:
    assert session.table("db.people").columns == ["id", "name", "region"]
    assert session.sql("SELECT * FROM db.people.snapshots").count() >= 3
    assert session.sql("DESCRIBE TABLE db.people").count() >= 3
    session.sql("INSERT INTO db.people VALUES (3, 'Cy', 'EU')")
    with pytest.raises(Exception, match=REFUSED):
        session.table("db.people").collect()
