"""All pages that only show, by their paths."""

import msgspec

from bergline.console.page import PageHandler
from bergline.console.pages.access import access_page
from bergline.console.pages.action_list import actions_page
from bergline.console.pages.audit import audit_page
from bergline.console.pages.difference import difference_page
from bergline.console.pages.events import events_page
from bergline.console.pages.files import files_page
from bergline.console.pages.lake import lake_page
from bergline.console.pages.properties import properties_page
from bergline.console.pages.pull_requests import pull_requests_page
from bergline.console.pages.retention import retention_page
from bergline.console.pages.rows import rows_page
from bergline.console.pages.schema import schema_page
from bergline.console.pages.snapshot import snapshot_page
from bergline.console.pages.table import table_page
from bergline.console.pages.trash import trash_page
from bergline.console.pages.webhooks import webhooks_page


class PageEntry(msgspec.Struct, frozen=True):
    """A page, and its tab where it is one of a table's."""

    handler: PageHandler
    tab: str | None = None
    is_at_all_refs: bool = False
    """Whether it is of the lake or table as a whole, and the same at all refs of the lake."""


PAGES: dict[str, PageEntry] = {
    "": PageEntry(lake_page),
    "table": PageEntry(table_page, "Table"),
    "table/rows": PageEntry(rows_page, "Rows"),
    "table/schema": PageEntry(schema_page, "Schema"),
    "table/files": PageEntry(files_page, "Files"),
    "table/difference": PageEntry(difference_page, "Difference"),
    "table/retention": PageEntry(retention_page, "Retention", is_at_all_refs=True),
    "table/properties": PageEntry(properties_page, "Properties"),
    "table/snapshot": PageEntry(snapshot_page),
    "table/actions": PageEntry(actions_page, "Actions"),
    "pull-requests": PageEntry(pull_requests_page, is_at_all_refs=True),
    "audit": PageEntry(audit_page, is_at_all_refs=True),
    "events": PageEntry(events_page, is_at_all_refs=True),
    "webhooks": PageEntry(webhooks_page, is_at_all_refs=True),
    "trash": PageEntry(trash_page, is_at_all_refs=True),
    "access": PageEntry(access_page, is_at_all_refs=True),
}
