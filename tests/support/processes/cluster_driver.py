"""A Spark driver in a process of its own: JSON requests on stdin, JSON answers on stdout, a line each.

A request names a function, `module:function`, which is called with the session and the lake that is attached to it.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

import bergline.spark
from support.paths import SUPPORT


class ClusterDriver:
    """The other end: starts the driver for a master, and asks."""

    def __init__(self, master: str, python: Path, log: Path, settings: Mapping[str, str] | None = None) -> None:
        self._master = master
        self._python = python
        self._log = log
        self._settings = dict(settings or {})

    def __enter__(self) -> Self:
        self.launch()
        return self

    def launch(self) -> None:
        """Start the driver; another one, if it was killed."""
        paths = [Path(bergline.spark.__file__).parents[2], SUPPORT.parent]
        self._errors = self._log.open("a")
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._master, json.dumps(self._settings)],
            env={**os.environ, "PYSPARK_PYTHON": str(self._python), "PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=self._log.parent,
            start_new_session=True,  # its JVM is killed with it
        )

    def kill(self) -> None:
        """Kill the driver, both its Python process and its JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._errors.close()

    def __exit__(self, *_: object) -> None:
        try:
            self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:  # it has told all that it was asked; how it ends is not what is tested
            self.kill()
        self._errors.close()

    def run(self, function: str, lake: dict[str, Any], **arguments: Any) -> Any:
        """What a function returns, through JSON; AssertionError if it raised. `lake` is how to connect to one."""
        self.start(function, lake, **arguments)
        return self.answer()

    def start(self, function: str, lake: dict[str, Any], **arguments: Any) -> None:
        """Call a function, and go on."""
        assert self._process.stdin
        request = {"function": function, "lake": lake, "arguments": arguments}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def check_alive(self) -> None:
        """AssertionError if the driver has ended."""
        assert self._process.poll() is None, f"the driver ended: {self._log.read_text()[-3000:]}"

    def answer(self) -> Any:
        """What the function that was started returns."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"the driver ended: {self._log.read_text()[-3000:]}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]


def _session(master: str, more: Mapping[str, str]) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        # what a lost machine had is given up soon
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "200ms",
        # a task that takes long is run a second time beside itself
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "3s",
        **more,
    }
    return SparkSession.builder.master(master).appName("bergline-tests").config(map=settings).getOrCreate()


def _answer(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    module, _, name = request["function"].partition(":")
    with bergline.connect(**request["lake"], create=True) as lake:
        bergline.spark.attach(spark, lake)
        try:
            return {
                "result": getattr(importlib.import_module(f"support.processes.{module}"), name)(
                    spark, lake, **request["arguments"]
                )
            }
        except Exception:  # noqa: BLE001  (whatever it raises is the answer)
            return {"error": traceback.format_exc()}
        finally:
            bergline.spark.detach(spark)


def main() -> None:
    spark = _session(sys.argv[1], json.loads(sys.argv[2]))
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(spark, json.loads(line))) + "\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
