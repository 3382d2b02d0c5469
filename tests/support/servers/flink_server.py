"""Flink for tests, in a process of its own; `make flink` sets it up in a virtual environment beside ours."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest

from support.paths import PROCESSES

_PROGRAM = PROCESSES / "flink_process.py"

needs_flink = pytest.mark.skipif(
    not os.environ.get("BERGLINE_FLINK_PYTHON"), reason="runs with make flink: it is too large for every run"
)


class FlinkError(Exception):
    """What Flink said of a statement that failed."""


class FlinkServer:
    """A small cluster for each statement; catalogs and settings stay."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [os.environ["BERGLINE_FLINK_PYTHON"], str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._log.parent,
                env={key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "PYTHONWARNINGS"}},
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            pytest.fail(f"Flink ended: {self._log.read_text()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise FlinkError(answer["error"])
        return [tuple(row) for row in answer["rows"]]
