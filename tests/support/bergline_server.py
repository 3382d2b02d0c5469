"""`bergline serve` for tests, in a process of its own on a free loopback port."""

import os
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import IO, Self

import pytest

_ENGINE = re.compile(r"^  (?P<engine>\w+) +(?P<lines>.*(\n    .*)*)", re.MULTILINE)
_URL = re.compile(r"^serving .* at (?P<url>http://\S+)$")


class BerglineServer:
    """The server over an SQLite catalog and a warehouse in a directory; `kill` and `start` to see what happens."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = options
        self._port = "0"
        self.uri = ""
        self.introduction: dict[str, str] = {}
        """What users of each engine type, as the server printed it."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start, and wait until it listens; again on the same port as before."""
        command = [f"{sys.prefix}/bin/bergline", "serve", "--catalog", f"sqlite:///{self._directory}/catalog.db"]
        with (self._directory / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--port", self._port, *self._options],
                stdout=log,
                stderr=subprocess.PIPE,
                text=True,
                env={k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"},
            )
        assert self._process.stderr
        said = self._process.stderr.readline()
        found = _URL.match(said)
        if found is None:
            said += self._process.stderr.read()
            self.kill()
            pytest.fail(f"bergline serve did not start: {said[-3000:]}")
        self.uri = found["url"]
        self._port = self.uri.rpartition(":")[2]
        self.introduction = _engines(self._process.stderr)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self._process.stderr
        self._process.kill()
        self._process.wait(timeout=30)
        self._process.stderr.close()


def _engines(said: IO[str]) -> dict[str, str]:
    """The lines of each engine, which stand between two empty ones."""
    said.readline()
    text = "".join(takewhile(lambda line: line.strip(), said))
    return {found["engine"]: found["lines"] for found in _ENGINE.finditer(text)}
