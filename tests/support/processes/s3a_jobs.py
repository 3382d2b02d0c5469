"""A session with Spark's S3A connector: its settings, and what tests let it do with a lake on S3."""

from typing import Any

from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake

HADOOP, SDK = "3.4.2", "2.29.52"  # those of the PySpark in use
PACKAGES = [
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{name}:{SDK}" for name in ("s3", "s3-transfer-manager", "sts")),
]
LEFT_OUT = ["software.amazon.awssdk:bundle", "org.slf4j:slf4j-api"]  # all of AWS in one jar; Spark has its own
QUERIES = [
    "SELECT region, sum(id) AS total FROM db.orders WHERE id > 1 GROUP BY region ORDER BY region",
    "SELECT id, _pos, _file FROM db.orders WHERE region = 'north east' ORDER BY id",
]


def s3a_settings(properties: dict[str, str]) -> dict[str, str]:
    """The settings by which a session finds what a lake with these properties has on S3."""
    return {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.jars.excludes": ",".join(LEFT_OUT),
        "spark.hadoop.fs.s3a.endpoint": properties["s3.endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": properties["s3.region"],
        "spark.hadoop.fs.s3a.access.key": properties["s3.access-key-id"],
        "spark.hadoop.fs.s3a.secret.key": properties["s3.secret-access-key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def read_orders(spark: SparkSession, lake: Lake) -> dict[str, Any]:
    """The rows of the queries, how they were read, and from which files."""
    frames = [spark.sql(query) for query in QUERIES]
    return {
        "rows": [[list(row) for row in frame.collect()] for frame in frames],
        "explained": [bergline.spark.explain_read(frame) for frame in frames],
        "files": frames[0].inputFiles(),
    }


def append_rows(spark: SparkSession, lake: Lake, files: int, *, fails: bool = False) -> int:
    """Append rows in so many files, some tasks of which have none: how many there are then."""
    wrong = f"IF(id = {files * 100 - 1}, CAST(raise_error('this row') AS STRING), 'a')" if fails else "'a'"
    rows = spark.range(0, files * 200, 1, files * 2).where(f"id < {files * 100}").selectExpr("id", f"{wrong} AS region")
    rows.writeTo("db.orders").option("distribution-mode", "none").append()
    return spark.table("db.orders").count()
