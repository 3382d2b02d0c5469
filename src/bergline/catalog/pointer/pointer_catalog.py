"""The catalog over any pointer store."""

from bergline.catalog.pointer.group_commits import PointerGroupCommit
from bergline.catalog.pointer.views import PointerViews


class PointerCatalog(PointerGroupCommit, PointerViews):
    """Catalog over any PointerStore: namespaces, tables, commits and views."""
