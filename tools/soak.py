"""Replicas of `bergline serve` on one PostgreSQL, killed under load: tests/support/processes/soak_run.py."""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    sys.exit(importlib.import_module("support.processes.soak_run").main())
