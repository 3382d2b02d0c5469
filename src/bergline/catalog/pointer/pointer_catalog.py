"""The catalog over any pointer store."""

from bergline.catalog.pointer.commits import PointerCommit
from bergline.catalog.pointer.views import PointerViews


class PointerCatalog(PointerCommit, PointerViews):
    """Catalog over any PointerStore: namespaces, tables, commits and views."""
