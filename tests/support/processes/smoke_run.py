"""The smoke set run in a process of its own: one process holds classic sessions or those of Spark Connect, not both."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.paths import PROCESSES, python_path

Results = Mapping[str, str | None]
"""What came of each check: None, or how it failed."""


def run_smoke(directory: Path, **environment: str) -> Results:
    """Run all checks on a lake in a directory; `environment` says which Spark."""
    settings = {**os.environ, **environment, "PYTHONPATH": python_path(environment.get("PYTHONPATH", ""))}
    program = [sys.executable, str(PROCESSES / "smoke_process.py"), str(directory)]
    log = directory / "log.txt"
    with log.open("w") as errors:
        done = subprocess.run(program, env=settings, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode:
        raise RuntimeError(f"the smoke set ended after {len(found)} checks: {log.read_text()[-5000:]}")
    return {check["name"]: check["failure"] for check in found}
