"""The newest snapshots of a table with its branches and tags, as a small SVG for notebooks; no file is read."""

from collections.abc import Iterator, Mapping

import msgspec

from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.markup import escaped
from bergline.table.scans.version import readable_ms

MOST_SNAPSHOTS = 40
_ROW, _LANE, _MARGIN, _RADIUS = 24, 18, 14, 5
_WIDTH = 760
_COLORS = ("#2f7ed8", "#d9702b", "#2f9e5b", "#a65bc4", "#c4426b", "#8a8225")


class _Dot(msgspec.Struct, frozen=True):
    """Where a snapshot is drawn."""

    snapshot: Snapshot
    x: int
    y: int
    color: str


def ref_graph(metadata: TableMetadata) -> str:
    """The SVG: a line for each branch, newest above, with refs, operation, rows and time of each snapshot.

    Empty for a table without snapshots; of a long history the newest part.
    """
    lanes = _lanes(metadata)
    newest = sorted(metadata.snapshots, key=lambda s: (s.timestamp_ms, s.sequence_number), reverse=True)
    dots = {
        s.snapshot_id: _Dot(s, _MARGIN + lane * _LANE, _MARGIN + row * _ROW, _COLORS[lane % len(_COLORS)])
        for row, s in enumerate(newest[:MOST_SNAPSHOTS])
        for lane in (lanes[s.snapshot_id],)
    }
    if not dots:
        return ""
    left = max(dot.x for dot in dots.values()) + _LANE
    names = _ref_names(metadata)
    height = 2 * _MARGIN + (len(dots) - 1) * _ROW
    size = f'width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    style = 'font-family="sans-serif" font-size="12" fill="currentColor"'
    parts = [
        f'<svg role="img" aria-label="branches, tags and snapshots" {size} {style}>',
        *(line for dot in dots.values() for line in _line(dot, dots, height)),
        *(_labelled(dot, left, names.get(dot.snapshot.snapshot_id, "")) for dot in dots.values()),
        "</svg>",
    ]
    if len(newest) > len(dots):
        parts.append(f"<div>and {len(newest) - len(dots):,} older snapshots</div>")
    return "".join(parts)


def _lanes(metadata: TableMetadata) -> dict[int, int]:
    """A lane for each head with snapshots of its own: `main` first, then branches, tags and what no ref leads to."""
    refs = sorted(metadata.refs.items(), key=lambda item: (item[0] != MAIN, not item[1].is_branch, item[0]))
    parents = {s.parent_snapshot_id for s in metadata.snapshots}
    loose = [s.snapshot_id for s in metadata.snapshots if s.snapshot_id not in parents]
    lanes: dict[int, int] = {}
    used = 0
    for head in [*(ref.snapshot_id for _, ref in refs), *loose, *(s.snapshot_id for s in metadata.snapshots)]:
        if head in lanes:
            continue
        for snapshot in metadata.ancestors(head):
            if snapshot.snapshot_id in lanes:
                break
            lanes[snapshot.snapshot_id] = used
        used += 1
    return lanes


def _ref_names(metadata: TableMetadata) -> dict[int, str]:
    names: dict[int, list[str]] = {}
    for name, ref in metadata.refs.items():
        names.setdefault(ref.snapshot_id, []).append(name if ref.is_branch else f"tag {name}")
    return {snapshot_id: ", ".join(sorted(found)) for snapshot_id, found in names.items()}


def _line(dot: _Dot, dots: Mapping[int, _Dot], height: int) -> Iterator[str]:
    parent_id = dot.snapshot.parent_snapshot_id
    if parent_id is None:
        return
    parent = dots.get(parent_id)
    if parent is None:  # expired, or below what is drawn
        path, dashed = f"M{dot.x} {dot.y}V{min(height, dot.y + _ROW // 2)}", ' stroke-dasharray="3 3"'
    else:
        path, dashed = f"M{dot.x} {dot.y}V{parent.y - _ROW // 2}L{parent.x} {parent.y}", ""
    yield f'<path d="{path}" fill="none" stroke="{dot.color}" stroke-width="2"{dashed}/>'


def _labelled(dot: _Dot, left: int, refs: str) -> str:
    snapshot = dot.snapshot
    counts = [
        f"{sign}{snapshot.summary[key]}"
        for sign, key in (("+", "added-records"), ("−", "deleted-records"))  # noqa: RUF001  (the sign, not a hyphen)
        if key in snapshot.summary
    ]
    moment = f"{readable_ms(snapshot.timestamp_ms).partition('.')[0]} UTC"
    said = " ".join([snapshot.operation, *counts, "·", moment, f"· {snapshot.snapshot_id}"])
    named = f'<tspan font-weight="bold" fill="{dot.color}">{escaped(refs)}</tspan> ' if refs else ""
    return (
        f'<circle cx="{dot.x}" cy="{dot.y}" r="{_RADIUS}" fill="{dot.color}"/>'
        f'<text x="{left}" y="{dot.y + 4}">{named}{escaped(said)}</text>'
    )
