"""A streaming query from one lake table to another in a process of its own, which is killed where it is told to be.

Usage: stream_process.py DATABASE CHECKPOINT WHEN BATCH, where WHEN is `before` (the commit of that batch), `after` it,
or `never`. Spark reads one file in each batch.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import bergline.spark
from bergline.spark.writes.rows import TableWrite
from support.fixtures.streams import run_query


def kill_at(when: str, batch: int) -> None:
    """Kill this process with SIGKILL around a commit, when the rows of the batch are in files."""
    commit = TableWrite._commit

    def killed(self: Any, operation: Any) -> None:
        is_reached = self._write_target.batch.batch_id == batch
        if is_reached and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self, operation)
        if is_reached and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    TableWrite._commit = killed  # type: ignore[method-assign]


def main(database: Path, checkpoint: Path, when: str, batch: int) -> None:
    kill_at(when, batch)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    with bergline.connect(f"sqlite:///{database}") as lake:
        bergline.spark.attach(spark, lake)
        arriving = spark.readStream.option("streaming-max-files-per-micro-batch", 1).table("db.orders")
        writer = arriving.writeStream.option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(processingTime="0 seconds")
        run_query(lambda: writer.toTable("db.copy"), until="processAllAvailable")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
