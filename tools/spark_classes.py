"""Writes an archive of the Java classes that Spark loads as it starts: with it, sessions of the tests start sooner.

Finding each class in one of 280 jars takes most of the time in which Spark starts. A Java that finds the archive to be
of another Java or of other jars does without it. Usage: spark_classes.py ARCHIVE
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SESSION = """
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
spark.range(9).selectExpr("id", "id % 2 AS even").write.parquet("rows")
spark.read.parquet("rows").createOrReplaceTempView("rows")
spark.sql("SELECT even, count(*) FROM rows WHERE id > 1 GROUP BY even ORDER BY even").collect()
spark.createDataFrame([(1,)], "id bigint").mapInArrow(lambda rows: rows, "id bigint").collect()
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()  # it ends, and writes the archive
java.wait()
"""


def main() -> None:
    """Start Spark once, and let its Java write down what it has loaded."""
    archive = Path(sys.argv[1]).absolute()
    new = archive.with_suffix(".new")
    archive.parent.mkdir(parents=True, exist_ok=True)
    options = f"-XX:ArchiveClassesAtExit={new} -XX:+UseSerialGC -Xlog:disable"
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", SESSION],
            check=True,
            cwd=place,
            env={**os.environ, "SPARK_SUBMIT_OPTS": options, "PYSPARK_PYTHON": sys.executable},
        )
    new.replace(archive)


if __name__ == "__main__":
    main()
