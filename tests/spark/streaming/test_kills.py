"""Queries whose driver is killed in mid-batch, and started again from the checkpoint: each row arrives exactly once."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bergline.spark
from bergline import Lake, Table
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing
from support.paths import SUPPORT
from support.processes import stream_process
from support.servers.peers import needs_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def run(directory: Path, when: str, batch: int) -> int:
    """How a process ended that runs the query."""
    paths = [Path(bergline.spark.__file__).parents[2], SUPPORT.parent]
    process = subprocess.Popen(
        [sys.executable, stream_process.__file__, directory / "catalog.db", directory / "checkpoint", when, str(batch)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        cwd=directory,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # Spark's JVM, too
        process.wait()


def test_each_row_arrives_once_whenever_the_driver_is_killed(orders: Table, lake: Lake, tmp_path: Path) -> None:
    needs_java()
    for number in range(1, 5):
        orders.append(order_rows(number))
    copy = lake.create_table("db.copy", ORDERS)
    assert run(tmp_path, "before", 1) == -signal.SIGKILL
    assert ids(copy.refresh().scan().to_arrow()) == [1]
    assert run(tmp_path, "after", 2) == -signal.SIGKILL
    assert ids(copy.refresh().scan().to_arrow()) == [1, 2, 3]
    assert not (tmp_path / "checkpoint" / "commits" / "2").exists()
    orders.append(order_rows(5))
    assert run(tmp_path, "never", 0) == 0
    assert ids(copy.refresh().scan().to_arrow()) == [1, 2, 3, 4, 5]
    found = [s.summary["spark.sql.streaming.epochId"] for s in copy.metadata.snapshots]
    assert found == ["0", "1", "2", "3", "4"]
    check_nothing_is_missing(copy, merged=True)
