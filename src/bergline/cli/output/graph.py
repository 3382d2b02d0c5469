"""Histories as `git log --graph` draws them: a column of text for each lane."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from bergline.reports.history import TableHistory


def draw_graph(history: TableHistory) -> Iterator[tuple[str, int | None]]:
    """The lines of a graph, newest first: each with the row of the snapshot that it shows, or None between two."""
    reached = defaultdict(set)  # by row, the lanes of the lines that end there
    for edge in history.edges:
        reached[edge.parent_row].add(edge.child_lane)
    for entry, passing in zip(history.entries, history.passing(), strict=True):
        open_lanes = set(passing)
        if entry.lane in reached[entry.row]:
            open_lanes.add(entry.lane)
        for lane in _farthest_first(entry.forks, entry.lane):
            open_lanes.discard(lane)
            yield _joining_line(open_lanes, lane, entry.lane), None
        yield _text(_cells(open_lanes - {entry.lane}), {2 * entry.lane: "*"}), entry.row


def _farthest_first(lanes: Iterable[int], target: int) -> list[int]:
    return sorted(lanes, key=lambda lane: -abs(lane - target))


def _joining_line(open_lanes: Iterable[int], lane: int, target: int) -> str:
    """A lane that bends to another one, below the lanes between them."""
    cells = _cells(open_lanes)
    left, right = sorted((2 * lane, 2 * target))
    bend = {right - 1: "/"} if lane > target else {left + 1: "\\"}
    between = range(left + 1, right - 1) if lane > target else range(left + 2, right)
    return _text(dict.fromkeys(between, "_") | cells, bend)


def _cells(lanes: Iterable[int]) -> dict[int, str]:
    return {2 * lane: "|" for lane in lanes}


def _text(*layers: dict[int, str]) -> str:
    cells = {place: character for layer in layers for place, character in layer.items()}
    return "".join(cells.get(place, " ") for place in range(max(cells) + 1)) if cells else ""
