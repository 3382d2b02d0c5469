"""Where a new table or view goes."""

from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.format.arguments import check_text
from bergline.io.locations import absolute_location


def new_location(catalog: Catalog, name: TableName, wish: str | None) -> str:
    """The location that the user wishes, if no other table is there, or the catalog's own choice."""
    if not wish:
        return catalog.default_location(name)
    location = absolute_location(check_text(wish, "text for the location"))
    catalog.check_location(name, location)
    return location
