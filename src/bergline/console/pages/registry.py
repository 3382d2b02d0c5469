"""All pages that only show, by their paths."""

import msgspec

from bergline.console.page import PageHandler
from bergline.console.pages.action_list import actions_page
from bergline.console.pages.audit import audit_page
from bergline.console.pages.rows import rows_page
from bergline.console.pages.snapshot import snapshot_page


class PageEntry(msgspec.Struct, frozen=True):
    """A page, and its tab where it is one of a table's."""

    handler: PageHandler
    tab: str | None = None


PAGES: dict[str, PageEntry] = {
    "table/rows": PageEntry(rows_page, "Rows"),
    "table/snapshot": PageEntry(snapshot_page),
    "table/actions": PageEntry(actions_page, "Actions"),
    "audit": PageEntry(audit_page),
}
