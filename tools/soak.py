"""Replicas of `bergline serve` on one PostgreSQL, killed under load: tests/support/processes/soak_run.py."""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    support = Path(__file__).resolve().parents[1] / "tests" / "support"
    sys.path[:0] = map(str, (support, *(path for path in support.iterdir() if path.is_dir())))
    sys.exit(importlib.import_module("soak_run").main())
