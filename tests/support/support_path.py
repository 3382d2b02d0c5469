"""Where tests/support keeps its modules and the programs that tests start as processes of their own."""

import os
from pathlib import Path

SUPPORT = Path(__file__).parent
SUPPORT_PATHS = (SUPPORT, *sorted(p for p in SUPPORT.iterdir() if p.is_dir() and p.name != "__pycache__"))
"""The folders that `pythonpath` in pyproject.toml lists: modules of each are imported by their own name."""
PROCESSES = SUPPORT / "processes"
ROOT = SUPPORT.parents[1]
DEMO = ROOT / "demo" / "write_audit_publish.py"
PIPELINE_DEMO = ROOT / "demo" / "pipeline.py"


def python_path(*more: Path | str) -> str:
    """A PYTHONPATH for programs that import from tests/support: `more` comes first, that of this process last."""
    return os.pathsep.join(filter(None, (*map(str, (*more, *SUPPORT_PATHS)), os.environ.get("PYTHONPATH", ""))))
