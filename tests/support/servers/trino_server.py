"""Trino for tests, in a process of its own on loopback; `make trino` gets it, and says where its Java is."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from support.servers.ports import free_port

_HOME = Path(sys.prefix) / "tools" / "trino"
_START_SECONDS = 240
_HEADERS = {"X-Trino-User": "test", "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME"}
_JVM_OPTIONS = (
    "-Xmx1200m",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    "-Djdk.attach.allowAttachSelf=true",
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-XX:+EnableDynamicAgentLoading",
)


needs_trino = pytest.mark.skipif(
    not os.environ.get("BERGLINE_TRINO_JAVA"),
    reason="runs with make trino: it is too large for every run, and wants a newer Java than the rest",
)


class TrinoError(Exception):
    """What Trino answered to a statement that failed: the name of the error and its message."""


class TrinoServer:
    """A coordinator that does its own work, without catalogs until `add_catalog`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._url = f"http://127.0.0.1:{free_port()}"

    def __enter__(self) -> Self:
        self._write_settings()
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    f"{os.environ['BERGLINE_TRINO_JAVA']}/bin/java",
                    *_JVM_OPTIONS,
                    f"-Dconfig={self._directory}/config.properties",
                    f"-Dlog.levels-file={self._directory}/log.properties",
                    "-cp",
                    f"{_HOME}/lib/*",
                    "io.trino.server.TrinoServer",
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._has_started():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                pytest.fail(f"Trino did not start: {self._log.read_text()[-3000:]}")
            time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=30)

    def add_catalog(self, name: str, lines: str, **secrets: str) -> None:
        """Open a catalog by the lines of its file in `etc/catalog`; secrets stand in them in capital letters."""
        settings = dict(line.strip().split("=", 1) for line in lines.splitlines())
        connector = settings.pop("connector.name")
        pairs = ", ".join(f"\"{key}\" = '{secrets.get(value, value)}'" for key, value in settings.items())
        self.sql(f"CREATE CATALOG {name} USING {connector} WITH ({pairs})")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return [row for page in self._pages(text) for row in page]

    def _pages(self, text: str) -> Iterator[list[tuple[Any, ...]]]:
        answer = self._ask(f"{self._url}/v1/statement", text)
        while True:
            if error := answer.get("error"):
                raise TrinoError(f"{error['errorName']}: {error['message']}")
            yield [tuple(row) for row in answer.get("data", [])]
            if "nextUri" not in answer:
                return
            answer = self._ask(answer["nextUri"])

    def _ask(self, url: str, text: str | None = None) -> dict[str, Any]:
        request = urllib.request.Request(url, data=text and text.encode(), headers=_HEADERS)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            answer: dict[str, Any] = json.load(response)
            return answer

    def _has_started(self) -> bool:
        try:
            return not self._ask(f"{self._url}/v1/info")["starting"] and self.sql("SELECT 1") == [(1,)]
        except (OSError, TrinoError):
            return False

    def _write_settings(self) -> None:
        settings = {
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "node.environment": "test",
            "node.id": "test",
            "node.internal-address": "127.0.0.1",
            "node.bind-ip": "127.0.0.1",
            "http-server.http.port": self._url.rpartition(":")[2],
            "discovery.uri": self._url,
            "plugin.dir": _HOME / "plugin",
            "catalog.management": "dynamic",
            "catalog.store": "memory",
            "query.max-memory-per-node": "300MB",
            "memory.heap-headroom-per-node": "300MB",
        }
        lines = [f"{key}={value}" for key, value in settings.items()]
        (self._directory / "config.properties").write_text("\n".join(lines))
        (self._directory / "log.properties").write_text("io.trino=WARN\nio.airlift=WARN\n")

    @property
    def _log(self) -> Path:
        return self._directory / "log.txt"
