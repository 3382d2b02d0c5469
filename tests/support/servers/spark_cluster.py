"""A standalone Spark cluster on loopback: a master and workers in processes of their own, and a Python for executors.

Workers have addresses of their own, because Spark takes each for a machine.
"""

import contextlib
import importlib.metadata
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import pyspark
import pytest

from support.servers.ports import free_port

_HOME = Path(pyspark.__file__).parent
_KEPT_VARIABLES = ("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR")
_START_SECONDS = 120


class SparkCluster:
    """The master and two workers of one core each; what they say is in files in the directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.master = f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        try:
            self._start("master.Master", "127.0.0.1", "--port", str(self._port))
            self._wait_for_master()
            for host in ("127.0.0.2", "127.0.0.3"):
                work = self._directory / host
                self._start("worker.Worker", host, "-c", "1", "-m", "1g", "-d", str(work), self.master)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            _kill(process)

    def kill_worker(self) -> None:
        """Let one of the machines lose its power: the worker and its executors end at once."""
        _kill(self._processes.pop())

    def kill_executor(self) -> None:
        """Kill the executors of one of the machines, whose worker starts others."""
        self._kill_all(b"CoarseGrainedExecutorBackend")

    def kill_python_workers(self) -> None:
        """Kill the Python processes that run the tasks of one of the machines."""
        self._kill_all(b"pyspark.daemon", children=True)

    def _kill_all(self, word: bytes, *, children: bool = False) -> None:
        """Kill the processes of the last machine that have a word in their command, or only those started by such."""
        machine = self._processes[-1].pid
        parents = {pid: parent for pid, (parent, session) in _running(word).items() if session == machine}
        killed = [pid for pid, parent in parents.items() if not children or parent in parents]
        assert killed, f"{machine} runs nothing with {word!r}"
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

    def _start(self, daemon: str, host: str, *arguments: str) -> None:
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        spark = {"SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
        with (self._directory / f"{daemon}-{host}.txt").open("w") as log:
            process = subprocess.Popen(
                [
                    _HOME / "bin/spark-class",
                    f"org.apache.spark.deploy.{daemon}",
                    "-h",
                    host,
                    "--webui-port",
                    "0",
                    *arguments,
                ],
                env=kept | spark,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # its executors end with it
            )
        self._processes.append(process)

    def _wait_for_master(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while self._processes[0].poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return
            time.sleep(0.1)
        pytest.fail(f"the Spark master did not start: see {self._directory}")


def executor_python(directory: Path, packages: Iterable[str]) -> Path:
    """A Python that has the named packages, and nothing else of those that this one has."""
    site = directory / "packages"
    site.mkdir(parents=True)
    installed = Path(sysconfig.get_path("purelib"))
    for package in packages:
        files = importlib.metadata.distribution(package).files or []
        for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (site / name).symlink_to(installed / name)
    program = directory / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{site}" exec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    return program


def _running(word: bytes) -> dict[int, tuple[int, int]]:
    """The processes that have a word in their command: the parent and the session of each."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if word in (process / "cmdline").read_bytes():
                _, parent, _, session, *_ = (process / "stat").read_text().rpartition(")")[2].split()
                found[int(process.name)] = int(parent), int(session)
    return found


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
