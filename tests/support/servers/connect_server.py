"""A Spark Connect server of this run's own, from the PySpark package."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

from support.servers.ports import free_port

_PATIENCE = 240


@contextlib.contextmanager
def running_connect_server(directory: Path) -> Iterator[str]:
    """The address of a server on a free port of this machine."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(directory / "spark-warehouse"),
        "spark.log.level": "ERROR",
    }
    home = Path(pyspark.__file__).parent
    program = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    program += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    program += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    with (directory / "server.txt").open("w") as log:
        server = subprocess.Popen(
            [*program, "spark-internal"], env=environment, cwd=directory, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait(port, server, directory / "server.txt")
            yield f"sc://127.0.0.1:{port}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the Spark Connect server did not start: {log.read_text()[-5000:]}")
