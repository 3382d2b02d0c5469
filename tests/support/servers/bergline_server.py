"""`bergline serve` for tests, in a process of its own on a free loopback port."""

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import takewhile
from pathlib import Path
from typing import IO, Self

import pytest

from support.servers.ports import free_port

_ENGINE = re.compile(r"^  (?P<engine>\w+) +(?P<lines>.*(\n    .*)*)", re.MULTILINE)
_URL = re.compile(r"^serving .* at (?P<url>https?://\S+)$")


class BerglineServer:
    """The server over an SQLite catalog and a warehouse in a directory; `kill` and `start` to see what happens."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._options = options
        self._port = free_port()
        self.uri = ""
        self._talk: threading.Thread | None = None
        self.connection_examples: dict[str, str] = {}
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
                [*command, "--port", str(self._port), *self._options],
                stdout=log,
                stderr=subprocess.PIPE,
                text=True,
                env={k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"},
            )
        assert self._process.stderr
        said = line = self._process.stderr.readline()
        while line and not _URL.match(line):  # it may say first that it creates the catalog
            line = self._process.stderr.readline()
            said += line
        found = _URL.match(line)
        if found is None:
            self.kill()
            pytest.fail(f"bergline serve did not start: {said[-3000:]}")
        self.uri = found["url"]
        self.connection_examples = _engines(self._process.stderr)
        self._talk = threading.Thread(target=self._write_down, args=(self._process.stderr,), daemon=True)
        self._talk.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, _, port = self.uri.partition("://")[2].partition(":")
        return host, int(port)

    def status(self, method: str, path: str, body: bytes = b"", token: str | None = None) -> int:
        """The status of the response to a request."""
        connection = http.client.HTTPConnection(*self.address, timeout=20)
        connection.request(method, path, body, headers={"Authorization": f"Bearer {token}"} if token else {})
        status = connection.getresponse().status
        connection.close()
        return status

    @property
    def process_id(self) -> int:
        """Of the server."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor been killed."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as a crash would."""
        assert self._process.stderr
        self._process.kill()
        self._process.wait(timeout=60)
        if self._talk:
            self._talk.join(60)
        self._process.stderr.close()

    def terminate(self) -> None:
        """Ask it to end, as a deployment does, and wait until it has."""
        self._process.terminate()
        self._process.wait(timeout=60)
        self.kill()

    def pause(self, seconds: float) -> None:
        """Stop it for a while, as a machine does that hangs, and let it go on as if nothing were."""
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def _write_down(self, said: IO[str]) -> None:
        """What it goes on to say, into the log: a server that nobody listens to stops when the pipe is full."""
        with (self._directory / "log.txt").open("a") as log:
            log.writelines(said)


def _engines(said: IO[str]) -> dict[str, str]:
    """The lines of each engine, which stand between two empty ones."""
    said.readline()
    text = "".join(takewhile(lambda line: line.strip(), said))
    return {found["engine"]: found["lines"] for found in _ENGINE.finditer(text)}
