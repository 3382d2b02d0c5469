"""Where the programs are that tests start."""

from pathlib import Path

SUPPORT = Path(__file__).parent
RACER = SUPPORT / "racer.py"
ROOT = SUPPORT.parents[1]
DEMO = ROOT / "demo" / "write_audit_publish.py"
PIPELINE_DEMO = ROOT / "demo" / "pipeline.py"
