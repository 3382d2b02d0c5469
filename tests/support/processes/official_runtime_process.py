"""Runs the official Iceberg Spark runtime: JSON requests on stdin, JSON answers on stdout, a line each."""

import json
import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession

PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,"
    "org.xerial:sqlite-jdbc:3.51.1.0,"
    "org.postgresql:postgresql:42.7.8"
)


def open_catalog(root: SparkSession, name: str, options: dict) -> SparkSession:
    """A new session, because a session never opens a catalog of one name twice."""
    spark = root.newSession()
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in options.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    spark.sql(f"USE {name}")
    return spark


def run(spark: SparkSession, text: str) -> dict:
    frame = spark.sql(text)
    return {"columns": frame.columns, "rows": [list(row) for row in frame.collect()]}


def main() -> None:
    root = spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", ",".join([PACKAGES, *sys.argv[1:]]))
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.codegen.wholeStage", "false")  # a third of its time would go into compiling
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.ui.explainMode", "simple")  # of plans that nobody looks at
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    hadoop = root.sparkContext._jsc.hadoopConfiguration()
    # each file of checksums is another one to create, and Hadoop starts a process for the mode of each
    root._jvm.org.apache.hadoop.fs.FileSystem.getLocal(hadoop).setWriteChecksum(False)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "catalog" in request:
                spark, reply = open_catalog(root, request["catalog"], request["options"]), {"rows": []}
            elif "python" in request:
                names = {"spark": spark, "jvm": spark._jvm, "result": None, **request.get("names", {})}
                exec(request["python"], names)  # noqa: S102  (the test's own code, for Java's API)
                reply = {"result": names["result"]}
            else:
                reply = run(spark, request["sql"])
        except Exception as error:  # noqa: BLE001  (whatever it raises is the answer)
            reply = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(reply, default=str) + "\n")
        sys.stdout.flush()
    root.stop()


if __name__ == "__main__":
    main()
