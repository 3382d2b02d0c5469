"""The lake: its namespaces and tables, with search."""

from typing import Any

from bergline.catalog.identifiers import Namespace, parse_namespace
from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import asked_number, named, pages_around, plain
from bergline.reports.lake_overview import TableLine, lake_overview

_TABLES = 100
_MOST = 10**6
_LONGEST_SEARCH = 500
_SEPARATOR = "\x1f"


def lake_page(source: Source, query: PageQuery) -> Page:
    """The tables that match a search (`q`), in a namespace or in all, a page at a time."""
    search = query.get("q", "")[:_LONGEST_SEARCH].strip()
    asked = query.get("namespace", "")
    namespace = _namespace(asked) if asked else None
    offset = asked_number(query, "offset", 0, _MOST)
    overview = lake_overview(source.lake, search=search, namespace=namespace, offset=offset, limit=_TABLES)
    values: dict[str, Any] = {
        "lake": source.lake.name,
        "search": search,
        "namespace": asked,
        "namespaces": [
            {"name": ".".join(n), "key": _SEPARATOR.join(n) if any("." in part for part in n) else ".".join(n)}
            for n in overview.namespaces
        ],
        "tables": [_line(line) for line in overview.tables],
        "views": [str(view) for view in overview.views],
        "matching": overview.matching,
        "problems": plain(overview.problems),
    }
    return Page(source.lake.name, "lake.html", values | pages_around(offset, _TABLES, overview.matching))


def _namespace(text: str) -> Namespace:
    """A namespace in a query: with dots, or, where a level has one in it, with the separator of the REST protocol."""
    return parse_namespace(tuple(text.split(_SEPARATOR)) if _SEPARATOR in text else text)


def _line(line: TableLine) -> dict[str, Any]:
    return {**plain(line), "name": str(line.name), "key": named(line.name)["key"]}
