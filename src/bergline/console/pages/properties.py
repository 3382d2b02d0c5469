"""The properties of a table."""

from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import broken_page, found_table, table_values


def properties_page(source: Source, query: PageQuery) -> Page:
    """All properties by name."""
    found = found_table(source, query)
    if found.table is None:
        return broken_page(found)
    properties = dict(sorted(found.table.properties.items()))
    values = table_values(source, found.table) | {"properties": properties}
    return Page(f"Properties of {found.name}", "properties.html", values)
