"""Runs the smoke set in a process of its own, and says in a line of JSON what came of each check.

`smoke_process.py LAKE` makes a classic session; with SPARK_REMOTE it is one of Spark Connect, of which more is checked.
More arguments are the names of the checks to run.
"""

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from support.processes.smoke_checks import CHECKS
from support.processes.smoke_connect_checks import CONNECT_CHECKS


def main(directory: Path, names: list[str]) -> None:
    spark = session(directory)
    expected = os.environ.get("SMOKE_SPARK_VERSION", spark.version)
    if spark.version != expected:
        sys.exit(f"expected Spark {expected}, found {spark.version}")
    with bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        bergline.spark.attach(spark, lake)
        checks = {**CHECKS, **(CONNECT_CHECKS if "SPARK_REMOTE" in os.environ else {})}
        for name in names or checks:
            started = time.monotonic()
            failure = None
            try:
                checks[name](spark, lake)
            except (Exception, pytest.fail.Exception):  # noqa: BLE001  (whatever it is, it is this check's result)
                failure = traceback.format_exc()
            found = {"name": name, "failure": failure, "seconds": time.monotonic() - started}
            sys.stdout.write(f"{json.dumps(found)}\n")
            sys.stdout.flush()
        bergline.spark.detach(spark)
    spark.stop()


def session(directory: Path) -> Any:
    builder: Any = SparkSession.builder.appName("bergline-smoke")
    if "SPARK_REMOTE" not in os.environ:
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(directory / "spark-warehouse"),
            "spark.log.level": "ERROR",
        }
        builder = builder.master("local[2]").config(map=settings)
    return builder.getOrCreate()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
