"""The catalog over a pointer store."""

from bergline.catalog.pointer_commit import PointerCommit
from bergline.catalog.pointer_views import PointerViews


class PointerCatalog(PointerCommit, PointerViews):
    """Catalog over any PointerStore: namespaces, tables, commits to them, and views."""
