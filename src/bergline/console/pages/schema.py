"""The schema at a ref, what changed since another, and the schemas that the table has had."""

from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import broken_page, found_table, plain, table_values
from bergline.format.metadata.refs import MAIN
from bergline.reports.schemas import schema_report


def schema_page(source: Source, query: PageQuery) -> Page:
    """The schema at `ref`, compared with that at `against` if there is one."""
    found = found_table(source, query)
    if found.table is None:
        return broken_page(found)
    report = schema_report(found.table.metadata, query.get("ref") or MAIN, query.get("against") or None)
    values = table_values(source, found.table) | plain(report)
    return Page(f"Schema of {found.name}", "schema.html", values)
