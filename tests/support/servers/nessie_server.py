"""Nessie for tests, in a process of its own on loopback, with its tables in a bucket; `make nessie` gets it."""

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Self

import pytest

from support.servers.ports import free_port
from support.servers.s3_server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

_JARS = Path(sys.prefix) / "tools" / "nessie"
_START_SECONDS = 180


class NessieServer:
    """The server with its history in memory; `uri` leads to its REST catalog."""

    def __init__(self, log: Path, s3_server: S3Server, bucket: str) -> None:
        self._log = log
        port, other = free_port(), free_port()
        self.uri = f"http://127.0.0.1:{port}/iceberg"
        self._settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": str(port),
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": str(other),
            "quarkus.otel.sdk.disabled": "true",
            "quarkus.log.level": "WARN",
            "nessie.version.store.type": "IN_MEMORY",
            "nessie.catalog.default-warehouse": "lake",
            "nessie.catalog.warehouses.lake.location": f"{bucket}/warehouse",
            "nessie.catalog.service.s3.default-options.endpoint": s3_server.endpoint,
            "nessie.catalog.service.s3.default-options.path-style-access": "true",
            "nessie.catalog.service.s3.default-options.region": REGION,
            "nessie.catalog.service.s3.default-options.access-key": "urn:nessie-secret:quarkus:bucket-keys",
            "bucket-keys.name": ACCESS_KEY,
            "bucket-keys.secret": SECRET_KEY,
        }

    def __enter__(self) -> Self:
        (jar,) = _JARS.glob("nessie-quarkus-*-runner.jar")
        settings = [f"-D{name}={value}" for name, value in self._settings.items()]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [f"{os.environ['BERGLINE_NESSIE_JAVA']}/bin/java", "-Xmx600m", *settings, "-jar", str(jar)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                pytest.fail(f"Nessie did not start: {self._log.read_text()[-3000:]}")
            time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/v1/config", timeout=10):  # noqa: S310
                return True
        except OSError:
            return False


def needs_nessie() -> None:
    """Skip, by name, unless `make nessie` asks: it is too large for every run, and wants a newer Java than the rest."""
    if not os.environ.get("BERGLINE_NESSIE_JAVA"):
        pytest.skip("runs with make nessie")
