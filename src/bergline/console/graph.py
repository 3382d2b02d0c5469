"""The graph of a table's refs in a template: drawn from the values of a page, with links to its snapshots."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from markupsafe import Markup

from bergline.console.links import link
from bergline.reports.graph import render_graph
from bergline.reports.history import TableHistory


def graph_markup(history: Mapping[str, Any], table: str, label: str, link: Callable[..., str] = link) -> Markup:
    """The SVG of a history as a page has it, with its ids as text."""
    drawn = msgspec.convert(history, TableHistory, strict=False)
    svg = render_graph(drawn, link=lambda snapshot_id: link("table/snapshot", table, id=snapshot_id), label=label)
    return Markup(svg)  # noqa: S704  (escaped where it was made)
