"""Apache Iceberg tables in PySpark with branches, tags and commits that are never lost, in Python alone."""

from bergline.errors import BerglineError
from bergline.lake import Lake, connect
from bergline.table.references.ref_changes import Retention
from bergline.table.table import Table

__all__ = ["BerglineError", "Lake", "Retention", "Table", "connect"]
__version__ = "0.1.0"
