"""What notebooks show of tables, refs, scans and differences: their `_repr_html_` asks here.

Drawing belongs to the reports, a layer above those that ask. The package hands it down; it is loaded when it is used.
"""

from collections.abc import Callable
from typing import Any

DRAWINGS: dict[str, Callable[[Any], str]] = {}
"""By the names of functions in `bergline.reports.html`."""


def drawn(drawing: str, value: object) -> str:
    """A value as HTML, in which everything is escaped."""
    return DRAWINGS[drawing](value)
