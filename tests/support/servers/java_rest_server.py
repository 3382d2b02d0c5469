"""Iceberg's reference REST server for tests, in a process of its own on loopback; make gets it from Maven."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

import pytest

from support.servers.peers import needs_java

_JARS = Path(sys.prefix) / "tools" / "rck"


class JavaRestServer:
    """The server over an SQLite catalog and a warehouse in a directory; `uri` leads to it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.uri = ""

    def __enter__(self) -> Self:
        home = os.environ.get("JAVA_HOME")
        with (self._directory / "log.txt").open("w") as log:
            self._process = subprocess.Popen(
                [
                    f"{home}/bin/java" if home else "java",
                    "-Xmx512m",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
                    "-cp",
                    f"{_JARS}/*:{_JARS}",
                    "ReferenceServer",
                    f"uri=jdbc:sqlite:{self._directory}/catalog.db",
                    f"warehouse={self._directory}/warehouse",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout
        port = self._process.stdout.readline().strip()
        if not port:
            self.__exit__()
            pytest.fail(f"Iceberg's REST server did not start: {(self._directory / 'log.txt').read_text()[-3000:]}")
        self.uri = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.kill()
        self._process.wait(timeout=30)
        self._process.stdin.close()
        self._process.stdout.close()


def needs_java_rest() -> None:
    """Skip, by name, on a machine where make could not get the server."""
    needs_java()
    if not _JARS.is_dir():
        pytest.skip("needs Maven and a Java compiler to get Iceberg's REST server: none found when make set up .venv")
