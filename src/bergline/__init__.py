"""Apache Iceberg tables in PySpark with branches, tags and commits that are never lost, in Python alone."""

from bergline.errors import BerglineError
from bergline.lake import Lake, connect
from bergline.table.table import Table

__all__ = ["BerglineError", "Lake", "Table", "connect"]
__version__ = "0.1.0"
