"""A real S3 server for tests: versitygw, built by make, on a free loopback port, with its objects in a directory."""

import http.client
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from support.servers.ports import free_port

ACCESS_KEY, SECRET_KEY, REGION = "test", "testsecret", "us-east-1"
_BUILT = Path(sys.prefix) / "tools" / "versitygw"
_START_SECONDS = 30


class S3Server:
    """The server as a child process; `stop` and `start` to see what happens without it."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.properties = {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": REGION,
        }

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and wait until it answers. Without its --keep-alive, which spoils every tenth upload of pyarrow."""
        self._process = subprocess.Popen(
            [self._program, "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", str(self.objects)],
            env={**os.environ, "ROOT_ACCESS_KEY_ID": ACCESS_KEY, "ROOT_SECRET_ACCESS_KEY": SECRET_KEY},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                pytest.fail("the S3 server did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop at once: asked politely, it waits for idle connections."""
        if self._process:
            self._process.kill()
            self._process.wait(timeout=30)
            self._process = None

    @property
    def objects(self) -> Path:
        """Where the server keeps its objects; each directory in it is a bucket."""
        objects = self._directory / "objects"
        objects.mkdir(exist_ok=True)
        return objects

    def make_bucket(self, name: str) -> str:
        """A new bucket; its location."""
        (self.objects / name).mkdir()
        return f"s3://{name}"

    def uploads_under_way(self, bucket: str) -> list[Path]:
        """Parts of multipart uploads that were neither completed nor aborted."""
        return [p for p in (self.objects / bucket / ".sgwtmp").rglob("*") if p.is_file()]

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except OSError:
            return False
        finally:
            connection.close()
        return True


def s3_server_program() -> str:
    """The server's program; skips, by name, on a machine where make could not build it."""
    program = str(_BUILT) if _BUILT.exists() else shutil.which("versitygw")
    if program is None:
        pytest.skip("needs Go to build the S3 server (versitygw): none found when make set up .venv")
    return program
