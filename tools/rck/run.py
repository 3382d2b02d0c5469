"""Iceberg's REST compatibility kit, whole, against a fresh `bergline serve`; or against the server that is named.

Usage: run.py [URI]. Every test must pass; the kit skips what it leaves to servers.
"""

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_JARS = Path(sys.prefix) / "tools" / "rck"
_START_SECONDS = 30
_SUITE = "org.apache.iceberg.rest.RESTCompatibilityKitSuite"


def main() -> int:
    """The kit's exit code."""
    if not _JARS.is_dir():
        sys.exit("make rck needs Maven and a Java compiler, to get Iceberg's REST compatibility kit")
    if len(sys.argv) > 1:
        return _run_kit(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="rck-") as directory, _served(directory) as uri:
        return _run_kit(uri)


def _run_kit(uri: str) -> int:
    home = os.environ.get("JAVA_HOME")
    settings = {"rck.local": "false", "rck.requires-namespace-create": "true", "rck.supports-serverside-retry": "true"}
    settings["warehouse"] = "lake"
    command = [
        f"{home}/bin/java" if home else "java",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        *(f"-D{name}={value}" for name, value in {**settings, "uri": uri}.items()),
        *("-cp", f"{_JARS}/*", "org.junit.platform.console.ConsoleLauncher", "execute"),
        *("--disable-banner", "--details=tree", "--config", "rck.local=false", "--select-class", _SUITE),
    ]
    return subprocess.run(command, check=False).returncode  # noqa: S603  (our own command line)


@contextmanager
def _served(directory: str) -> Iterator[str]:
    """A fresh server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    catalog = f"sqlite:///{directory}/catalog.db"
    program = [f"{sys.prefix}/bin/bergline", "serve", "--catalog", catalog, "--port", str(port)]
    program += ["--allow-location", tempfile.gettempdir()]  # where the kit puts some tables
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)  # noqa: S603  (our own program)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("bergline serve did not start")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v1/config")
        connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return True


if __name__ == "__main__":
    sys.exit(main())
