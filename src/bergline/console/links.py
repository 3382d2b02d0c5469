"""Addresses inside the console: a page by its path, a table and everything else in the query.

`/` is the lake, `/table?name=db.orders` a table, `/table/rows?name=…&ref=…` a page of it. The twin of a page has
`.json` behind its path. At a ref of the lake, the ref is the first segment: `/branch.staging/table?name=db.orders`.
Templates call `link("table/rows", name, ref="main")`.
"""

from collections.abc import Callable
from urllib.parse import quote, urlencode

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.identifiers import TableName, parse_table_name

_LEVELS = "\x1f"
"""Separates the levels of a name of which one has a dot."""


def link(path: str, table: TableName | str | None = None, /, **query: object) -> str:
    """The address of a page, such as `table/rows`; the empty path is the lake. What is None is left out."""
    given = {key: str(value) for key, value in query.items() if value is not None}
    if table is not None:
        given = {"name": name_text(table)} | given
    return f"/{quote(path)}" + (f"?{urlencode(given, errors='surrogatepass')}" if given else "")


def links_at(at: LakeRef | None) -> Callable[..., str]:
    """Makes links that stay at a ref of the lake."""
    return link if at is None else lambda *place, **query: f"/{at.in_path}{link(*place, **query)}"


def name_text(table: TableName | str) -> str:
    """A table's name as the query has it."""
    if isinstance(table, str):
        return table
    parts = (*table.namespace, table.name)
    return _LEVELS.join(parts) if any("." in part for part in parts) else ".".join(parts)


def parse_name(text: str) -> TableName:
    """The table that the query names."""
    if _LEVELS not in text:
        return parse_table_name(text)
    *levels, name = text.split(_LEVELS)
    return parse_table_name(TableName(tuple(levels), name))
