"""The graph of a table's refs as SVG: branches as lanes, tags as labels, staged snapshots dashed.

It needs no script and no style sheet: colors are attributes, which the classes of a style sheet may override. Every
value is escaped.
"""

import datetime as dt
import html
import re
import unicodedata
from collections.abc import Callable, Iterator

from bergline.arguments import counted
from bergline.format.metadata.snapshot import SnapshotOperation
from bergline.reports.history import HistoryEdge, HistoryEntry, HistoryRef, TableHistory

LANE_COLORS = 8
_COLORS = ("#2f7dd1", "#c2571a", "#2a8f4f", "#a05ac2", "#9a7500", "#1f8a96", "#c9447f", "#6d7b8a")
_ROW, _LANE, _MARGIN, _RADIUS = 30, 18, 14, 5
_LETTER = 7.9
"""The width of a letter of the monospaced font."""
_LONGEST_LABEL, _LONGEST_TEXT = 40, 60
_TEXT = 'fill="currentColor" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13"'
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

SnapshotLink = Callable[[int], str]
"""The address of a snapshot by its id."""


def render_graph(history: TableHistory, *, link: SnapshotLink | None = None, label: str = "History") -> str:
    """The graph of a history, or of a part of it, newest on top; with `addresses`, snapshots are links."""
    if not history.entries:
        return ""
    drawing = _Drawing(history, link)
    rows = [drawing.row(entry) for entry in history.entries]
    width, height = int(drawing.width) + _MARGIN, len(rows) * _ROW
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph-svg" role="group" aria-label="{_escaped(label)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    )
    return "".join([opening, *map(drawing.edge, history.edges), *drawing.replays(), *rows, "</svg>"])


def describe_entry(entry: HistoryEntry) -> str:
    """A snapshot in one sentence, for those who do not see the graph."""
    names = [f"{'branch' if ref.is_branch else 'tag'} {ref.name}" for ref in entry.refs]
    parts = [
        f"snapshot {entry.snapshot_id}",
        *names,
        entry.operation,
        *([f"by {who}"] if (who := _who(entry)) else []),
        _moment(entry.timestamp_ms),
        *_changes_in_words(entry),
        *_marks(entry),
    ]
    return ", ".join(parts)


class _Drawing:
    """The positions of everything in the graph."""

    def __init__(self, history: TableHistory, link: SnapshotLink | None) -> None:
        self._entries = history.entries
        self._first = history.entries[0].row
        self._link = link
        self._text_at = _MARGIN + history.lanes * _LANE
        self.width = float(self._text_at)

    def edge(self, edge: HistoryEdge) -> str:
        x, y = _x(edge.child_lane), self._y(edge.child_row)
        end_x, end_y = _x(edge.parent_lane), self._y(edge.parent_row)
        path = f"M{x} {y}V{end_y}"
        if x != end_x:
            bend = max(y, end_y - _ROW + _RADIUS)
            middle = (bend + end_y) // 2
            path = f"M{x} {y}V{bend}C{x} {middle} {end_x} {middle} {end_x} {end_y}"
        return _path(path, edge.child_lane, "edge" if edge.on_ref else "edge staged", dashed=not edge.on_ref)

    def replays(self) -> Iterator[str]:
        """Dotted lines from snapshots to those that they replay on another lane."""
        by_id = {e.snapshot_id: e for e in self._entries}
        for entry in self._entries:
            source = by_id.get(entry.source_id) if entry.source_id is not None else None
            if source is not None and source.lane != entry.lane:
                x, y, end_x, end_y = _x(entry.lane), self._y(entry.row), _x(source.lane), self._y(source.row)
                middle = (y + end_y) // 2
                yield (
                    f'<path class="replay" d="M{x} {y}C{x} {middle} {end_x} {middle} {end_x} {end_y}" fill="none" '
                    'stroke="currentColor" stroke-width="1" stroke-dasharray="1 4"/>'
                )

    def row(self, entry: HistoryEntry) -> str:
        x, y = _x(entry.lane), self._y(entry.row)
        color, at = _color(entry.lane), float(self._text_at)
        dashed = not entry.on_ref
        fill = f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="3 2"' if dashed else f'fill="{color}"'
        parts = [f"<title>{_escaped(describe_entry(entry))}</title>"]
        if entry.parent_expired:
            parts.append(_path(f"M{x} {y}v{_ROW // 2}", entry.lane, "edge expired", dashed=True))
        parts.append(f'<circle class="node{" staged" if dashed else ""}" cx="{x}" cy="{y}" r="{_RADIUS}" {fill}/>')
        for ref in entry.refs:
            label, width = self._label(ref, at, y, color)
            parts.append(label)
            at += width + _LETTER
        text = " ".join([entry.operation[:_LONGEST_TEXT], *_changes(entry)])
        rest = " · ".join([_moment(entry.timestamp_ms), *_short(_who(entry)), *_marks(entry), str(entry.snapshot_id)])
        parts.append(
            f'<text x="{at:.0f}" y="{y + 4}" {_TEXT} unicode-bidi="plaintext">{_escaped(text)}'
            f'<tspan class="muted" dx="8" fill-opacity="0.75">{_escaped(rest)}</tspan></text>'
        )
        self.width = max(self.width, at + (_width(text) + _width(rest)) * _LETTER + 8)
        inside = "".join(parts)
        lane = f'class="snapshot lane-{entry.lane % LANE_COLORS}"'
        if self._link is None:
            return f"<g {lane}>{inside}</g>"
        return f'<a {lane} href="{_escaped(self._link(entry.snapshot_id))}">{inside}</a>'

    def _label(self, ref: HistoryRef, at: float, y: int, color: str) -> tuple[str, float]:
        shown = ref.name if len(ref.name) <= _LONGEST_LABEL else f"{ref.name[: _LONGEST_LABEL - 1]}…"
        kind, corner = ("branch", 9) if ref.is_branch else ("tag", 2)
        width = (_width(shown) + 2) * _LETTER
        box = (
            f'<rect class="label {kind}" x="{at:.0f}" y="{y - 10}" width="{width:.0f}" height="20" rx="{corner}" '
            f'fill="none" stroke="{color}"/>'
        )
        text = (
            f'<text class="label {kind}" x="{at + _LETTER:.0f}" y="{y + 4}" {_TEXT} font-weight="600" '
            f'unicode-bidi="plaintext">{_escaped(shown)}</text>'
        )
        return box + text, width

    def _y(self, row: int) -> int:
        return (row - self._first) * _ROW + _ROW // 2


def _x(lane: int) -> int:
    return _MARGIN + lane * _LANE


def _color(lane: int) -> str:
    return _COLORS[lane % LANE_COLORS]


def _path(path: str, lane: int, classes: str, *, dashed: bool) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<path class="{classes} lane-{lane % LANE_COLORS}" d="{path}" fill="none" stroke="{_color(lane)}" '
        f'stroke-width="2"{dashes}/>'
    )


def _who(entry: HistoryEntry) -> str:
    return ", ".join(_one_line(part) for part in (entry.author, entry.engine, entry.app) if part)


def _short(text: str) -> list[str]:
    if len(text) > _LONGEST_TEXT:
        text = f"{text[: _LONGEST_TEXT - 1]}…"
    return [text] if text else []


def _changes(entry: HistoryEntry) -> list[str]:
    if entry.operation == SnapshotOperation.REPLACE and entry.added_rows:
        return [f"{entry.added_rows:,} rows rewritten"]
    signs = (("+", entry.added_rows), ("\u2212", entry.removed_rows))
    found = [f"{sign}{number:,}" for sign, number in signs if number]
    return [*found, "rows"] if found else []


def _changes_in_words(entry: HistoryEntry) -> list[str]:
    if entry.operation == SnapshotOperation.REPLACE and entry.added_rows:
        return [f"{counted(entry.added_rows, 'row')} rewritten"]
    words = (("added", entry.added_rows), ("removed", entry.removed_rows))
    return [f"{counted(number, 'row')} {word}" for word, number in words if number]


def _marks(entry: HistoryEntry) -> list[str]:
    marks = [(entry.is_staged, "staged"), (not entry.on_ref and not entry.is_staged, "on no branch or tag")]
    marks.append((entry.parent_expired, "parent expired"))
    return [mark for holds, mark in marks if holds]


def _moment(milliseconds: int) -> str:
    try:
        return (_EPOCH + dt.timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{milliseconds} ms"


def _width(text: str) -> int:
    """The width of a text in letters; East Asian ones count as two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _one_line(text: str) -> str:
    return text[: _LONGEST_TEXT * 2]


def _escaped(text: str) -> str:
    """Text for markup, with invisible characters, and those that change the writing direction, replaced."""
    return html.escape(_UNSEEN.sub("\ufffd", text), quote=True)
