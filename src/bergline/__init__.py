"""Apache Iceberg tables in PySpark with branches, tags and commits that are never lost, in Python alone."""

import functools
import importlib
from typing import TYPE_CHECKING, Any

from bergline.errors import BerglineError
from bergline.notebook import DRAWINGS

if TYPE_CHECKING:
    from bergline.format.manifest.manifest import DataFile
    from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
    from bergline.lake.lake import Lake, connect
    from bergline.lake.maintenance.maintain import maintain
    from bergline.reports.progress_bar import ProgressBar
    from bergline.table.evolution.maintenance_policy import MaintenancePolicy
    from bergline.table.references.ref_changes import Retention
    from bergline.table.table import Table

__all__ = [
    "BerglineError",
    "DataFile",
    "Lake",
    "MaintenancePolicy",
    "PartitionStatisticsFile",
    "ProgressBar",
    "Retention",
    "StatisticsFile",
    "Table",
    "connect",
    "maintain",
]
__version__ = "0.1.0"

# found when asked for: tasks on Spark's executors import a few modules of the package, and need not wait for the rest
_MODULES = {
    "DataFile": "format.manifest.manifest",
    "Lake": "lake.lake",
    "MaintenancePolicy": "table.evolution.maintenance_policy",
    "PartitionStatisticsFile": "format.metadata.table_metadata",
    "ProgressBar": "reports.progress_bar",
    "Retention": "table.references.ref_changes",
    "StatisticsFile": "format.metadata.table_metadata",
    "Table": "table.table",
    "connect": "lake.lake",
    "maintain": "lake.maintenance.maintain",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def _drawn(name: str, value: object) -> str:
    drawing = getattr(importlib.import_module(f"{__name__}.reports.html"), name)
    return str(drawing(value))


DRAWINGS |= {name: functools.partial(_drawn, name) for name in ("diff_html", "refs_html", "scan_html", "table_html")}
