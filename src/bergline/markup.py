"""HTML for notebooks: the one place that knows how text becomes markup. Every value is escaped."""

import html
from collections.abc import Iterable, Sequence

_LONGEST_VALUE = 300
_MOST_ROWS = 50
_LEFT = "text-align:left;vertical-align:top"


def escaped(value: object) -> str:
    """A value as text in HTML, also between the quotes of an attribute; the end of a long one is left out."""
    text = str(value)
    return html.escape(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…")


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under the names of their columns, None as an empty cell; of many rows the first, and how many more."""
    cells = [[f'<td style="{_LEFT}">{escaped("" if v is None else v)}</td>' for v in row] for row in rows]
    head = "".join(f'<th style="{_LEFT}">{escaped(name)}</th>' for name in columns)
    body = [f"<tr>{''.join(row)}</tr>" for row in cells[:_MOST_ROWS]]
    if len(cells) > _MOST_ROWS:
        body.append(f'<tr><td colspan="{len(columns)}">and {len(cells) - _MOST_ROWS:,} more</td></tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def html_block(title: str, says: str, *parts: str) -> str:
    """A title, a line of text, and parts that are HTML already."""
    return f"<div><strong>{escaped(title)}</strong> {escaped(says)}{''.join(parts)}</div>"
