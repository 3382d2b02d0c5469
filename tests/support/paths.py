"""Where the package of what tests share is, and the programs in it that tests start as processes of their own."""

import os
from pathlib import Path

SUPPORT = Path(__file__).parent
PROCESSES = SUPPORT / "processes"
ROOT = SUPPORT.parents[1]
DEMO = ROOT / "demo" / "write_audit_publish.py"
PIPELINE_DEMO = ROOT / "demo" / "pipeline.py"


def python_path(*more: Path | str) -> str:
    """A PYTHONPATH for programs that import `support`: `more` comes first, that of this process last."""
    return os.pathsep.join(filter(None, (*map(str, more), str(SUPPORT.parent), os.environ.get("PYTHONPATH", ""))))
