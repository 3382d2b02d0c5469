"""The contract of the console's pages: a handler takes a source and a query, and gives a page of plain values.

The `.json` twin of a page is exactly its values. A template extends `base.html`, fills its block `content`, and is
rendered with the values as its names, with `title`, and with `link` and `main_link` (see `links`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.identifiers import TableName
from bergline.console.links import parse_name
from bergline.errors import InvalidInputError
from bergline.lake.lake import Lake
from bergline.reports.row_job import RowReader, read_here


class Page(msgspec.Struct, frozen=True):
    """What a page shows; the values are plain JSON, with 64-bit ids as text."""

    title: str
    template: str
    values: dict[str, Any]


class Source(msgspec.Struct, frozen=True):
    """Where a page comes from: the lake, the moment, and what the caller may do."""

    lake: Lake
    now_ms: int
    caller: str = "anonymous"
    may_change: bool = False
    """Whether actions are offered."""
    groups: frozenset[str] = frozenset()
    """The groups of the caller."""
    read_rows: RowReader = read_here
    """Who reads rows: what a server shows is read in another process."""
    at: LakeRef | None = None
    """The ref at which the lake is; None for `main`."""


PageQuery = Mapping[str, str]
PageHandler = Callable[[Source, PageQuery], Page]


def asked_table(query: PageQuery) -> TableName:
    """The table that a query names; InvalidInputError if it names none."""
    if not query.get("name"):
        raise InvalidInputError("expected the name of a table in the query, found none", hints=["`?name=db.orders`"])
    return parse_name(query["name"])
