"""A session with Spark's S3A connector, in a process of its own: reads a lake on S3 and prints what it found as JSON.

Usage: s3a_session_process.py CATALOG WAREHOUSE PROPERTIES, the last one as JSON.
"""

import json
import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

import bergline
import bergline.spark

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


def main(catalog: str, warehouse: str, properties: dict[str, str]) -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.jars.packages", ",".join(PACKAGES))
    settings = {
        "spark.jars.excludes": ",".join(LEFT_OUT),
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "ERROR",
        "spark.hadoop.fs.s3a.endpoint": properties["s3.endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": properties["s3.region"],
        "spark.hadoop.fs.s3a.access.key": properties["s3.access-key-id"],
        "spark.hadoop.fs.s3a.secret.key": properties["s3.secret-access-key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    with bergline.connect(catalog, warehouse=warehouse, properties=properties, create=True) as lake:
        bergline.spark.attach(spark, lake)
        frames = [spark.sql(query) for query in QUERIES]
        answer = {
            "rows": [[list(row) for row in frame.collect()] for frame in frames],
            "explained": [bergline.spark.explain_read(frame) for frame in frames],
            "files": frames[0].inputFiles(),
        }
    sys.stdout.write(json.dumps(answer) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
