"""The history of a table: every snapshot on a lane, with its refs, as `log --graph` and the console draw it.

A snapshot has one parent, so the history is a forest. It is cut into lines: the first is `main` with all its ancestors,
and each other line goes from a head back to where it leaves a line before it. A line stays on one lane, and lines that
do not overlap in time share one.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.totals import summary_number
from bergline.table.references.summary import SOURCE, WAP_ID

_AUTHORS = ("author", "user", "owner", "committer")
_APPS = ("app-name", "app-id", "spark.app.id", "flink.job-id")


class HistoryRef(msgspec.Struct, frozen=True, gc=False):
    """A branch or tag at a snapshot."""

    name: str
    is_branch: bool


class HistoryEntry(msgspec.Struct, frozen=True):
    """A snapshot in the history; counts are those of its summary, None if the summary lacks them."""

    row: int
    """Its row, 0 for the newest."""
    lane: int
    """0 is the lane of `main`."""
    snapshot_id: int
    parent_id: int | None
    timestamp_ms: int
    sequence_number: int
    operation: str
    author: str | None
    engine: str | None
    app: str | None
    added_rows: int | None
    removed_rows: int | None
    """Rows of removed data files, and positions and keys that were deleted."""
    added_files: int | None
    """Data and delete files."""
    removed_files: int | None
    added_bytes: int | None
    total_rows: int | None
    refs: tuple[HistoryRef, ...]
    """`main` first, then branches, then tags, by name."""
    wap_id: str | None
    """The id that it was staged under."""
    source_id: int | None
    """The snapshot that it replays, after a merge or cherry-pick."""
    on_ref: bool
    """Whether a branch or tag leads to it."""
    parent_expired: bool
    """Whether its parent is no longer in the table."""
    forks: tuple[int, ...]
    """The lanes, other than its own, of newer snapshots that build on it."""

    @property
    def is_staged(self) -> bool:
        """Whether it waits to be published: it has a WAP id and is on no ref."""
        return self.wap_id is not None and not self.on_ref


class HistoryEdge(msgspec.Struct, frozen=True, gc=False):
    """From a snapshot to its parent; the line stays on the lane of the child until it reaches the parent's row."""

    child_row: int
    child_lane: int
    parent_row: int
    parent_lane: int
    on_ref: bool
    """Whether a ref leads to the child."""


class TableHistory(msgspec.Struct, frozen=True):
    """The snapshots of a table, newest first and children before parents."""

    entries: tuple[HistoryEntry, ...]
    edges: tuple[HistoryEdge, ...]
    """By the row of the child."""
    lanes: int
    """The number of lanes."""

    def part(self, first: int, count: int) -> "TableHistory":
        """Some entries, with the edges that are visible beside them; row and lane numbers stay the same."""
        entries = self.entries[first : first + count]
        last = first + len(entries)
        edges = tuple(e for e in self.edges if e.child_row < last and e.parent_row >= first)
        lanes = [e.lane for e in entries] + [max(e.child_lane, e.parent_lane) for e in edges]
        return TableHistory(entries, edges, max(lanes, default=-1) + 1)

    def passing(self) -> Iterator[tuple[int, ...]]:
        """For each entry, the lanes other than its own on which a line passes or reaches it, in order."""
        starting: Mapping[int, list[HistoryEdge]] = _grouped(self.edges)
        open_until: dict[int, int] = {}
        for entry in self.entries:
            yield tuple(sorted(lane for lane in open_until if lane != entry.lane))
            for lane in [lane for lane, last in open_until.items() if last == entry.row]:
                del open_until[lane]
            for edge in starting.get(entry.row, ()):
                open_until[edge.child_lane] = edge.parent_row


def table_history(metadata: TableMetadata) -> TableHistory:
    """The history of a table as it was loaded; no file is read."""
    ordered = _ordered(metadata)
    rows = {s.snapshot_id: row for row, s in enumerate(ordered)}
    reached = _on_refs(metadata)
    lanes = _lanes(metadata, ordered, rows)
    refs = _refs(metadata)
    edges = tuple(_edges(ordered, rows, lanes, reached))
    forks: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        if edge.child_lane != edge.parent_lane:
            forks[edge.parent_row].add(edge.child_lane)
    entries = tuple(
        _entry(
            s,
            row,
            lanes[row],
            refs=tuple(refs.get(s.snapshot_id, ())),
            on_ref=s.snapshot_id in reached,
            parent_expired=s.parent_snapshot_id is not None and s.parent_snapshot_id not in rows,
            forks=tuple(sorted(forks.get(row, ()))),
        )
        for row, s in enumerate(ordered)
    )
    return TableHistory(entries, edges, max(lanes, default=-1) + 1)


def _ordered(metadata: TableMetadata) -> list[Snapshot]:
    """Newest first, but no parent before a child, whatever their timestamps."""
    snapshots = metadata.snapshots_by_id
    children = dict.fromkeys(snapshots, 0)
    for snapshot in snapshots.values():
        if snapshot.parent_snapshot_id in children:
            children[snapshot.parent_snapshot_id] += 1
    ready = [_newest(s) for s in snapshots.values() if not children[s.snapshot_id]]
    heapq.heapify(ready)
    ordered: list[Snapshot] = []
    while ready:
        snapshot = snapshots[heapq.heappop(ready)[-1]]
        ordered.append(snapshot)
        parent = snapshot.parent_snapshot_id
        if parent in children:
            children[parent] -= 1
            if not children[parent]:
                heapq.heappush(ready, _newest(snapshots[parent]))
    if len(ordered) < len(snapshots):  # a cycle of parents, in broken metadata
        there = {s.snapshot_id for s in ordered}
        ordered += sorted((s for s in snapshots.values() if s.snapshot_id not in there), key=_newest)
    return ordered


def _newest(snapshot: Snapshot) -> tuple[int, int, int]:
    return -snapshot.timestamp_ms, -snapshot.sequence_number, snapshot.snapshot_id


def _on_refs(metadata: TableMetadata) -> set[int]:
    reached: set[int] = set()
    for ref in metadata.refs.values():
        for snapshot in metadata.ancestors(ref.snapshot_id):
            if snapshot.snapshot_id in reached:
                break
            reached.add(snapshot.snapshot_id)
    return reached


def _lanes(metadata: TableMetadata, ordered: Sequence[Snapshot], rows: Mapping[int, int]) -> list[int]:
    """The lane of each row: `main` has the first, the others get the leftmost one that is free on all their rows."""
    lanes = [-1] * len(ordered)
    lines: list[tuple[int, int, list[int]]] = []  # first row, last row, own rows
    for is_main, head in _heads(metadata, ordered, rows):
        own: list[int] = []
        row: int | None = head
        while row is not None and lanes[row] < 0:
            own.append(row)
            lanes[row] = 0  # taken
            parent = ordered[row].parent_snapshot_id
            row = None if parent is None else rows.get(parent)
        if not is_main and own:
            lines.append((own[0], own[-1] if row is None else row, own))
    busy: list[tuple[int, int]] = []  # last row and lane
    free: list[int] = []
    lane_count = 1 if MAIN in metadata.refs else 0
    for first, last, own in sorted(lines):
        while busy and busy[0][0] <= first:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, lane_count = lane_count, lane_count + 1
        # a line without a parent occupies its last row
        heapq.heappush(busy, (max(last, own[-1] + 1), lane))
        for row in own:
            lanes[row] = lane
    return lanes


def _heads(metadata: TableMetadata, ordered: Sequence[Snapshot], rows: Mapping[int, int]) -> Iterator[tuple[bool, int]]:
    """Where lines begin: `main`, other branches by age, tags, and snapshots that no ref leads to."""
    refs = [(name, ref) for name, ref in metadata.refs.items() if ref.snapshot_id in rows]
    yield from ((True, rows[ref.snapshot_id]) for name, ref in refs if name == MAIN)
    for is_branch in (True, False):
        heads = [rows[r.snapshot_id] for name, r in refs if name != MAIN and r.is_branch is is_branch]
        yield from ((False, row) for row in sorted(heads))
    yield from ((False, row) for row in range(len(ordered)))


def _edges(
    ordered: Sequence[Snapshot], rows: Mapping[int, int], lanes: Sequence[int], reached: set[int]
) -> Iterator[HistoryEdge]:
    for row, snapshot in enumerate(ordered):
        parent = None if snapshot.parent_snapshot_id is None else rows.get(snapshot.parent_snapshot_id)
        if parent is not None and parent > row:
            yield HistoryEdge(row, lanes[row], parent, lanes[parent], snapshot.snapshot_id in reached)


def _refs(metadata: TableMetadata) -> dict[int, list[HistoryRef]]:
    found: dict[int, list[HistoryRef]] = defaultdict(list)
    for name, ref in sorted(metadata.refs.items(), key=lambda item: (item[0] != MAIN, not item[1].is_branch, item[0])):
        found[ref.snapshot_id].append(HistoryRef(name, ref.is_branch))
    return found


def _entry(
    snapshot: Snapshot,
    row: int,
    lane: int,
    *,
    refs: tuple[HistoryRef, ...],
    on_ref: bool,
    parent_expired: bool,
    forks: tuple[int, ...],
) -> HistoryEntry:
    summary = snapshot.summary
    engine = " ".join(summary[key] for key in ("engine-name", "engine-version") if summary.get(key))
    return HistoryEntry(
        row=row,
        lane=lane,
        snapshot_id=snapshot.snapshot_id,
        parent_id=snapshot.parent_snapshot_id,
        timestamp_ms=snapshot.timestamp_ms,
        sequence_number=snapshot.sequence_number,
        operation=snapshot.operation,
        author=_first(summary, _AUTHORS),
        engine=engine or None,
        app=_first(summary, _APPS),
        added_rows=_changed(summary, "added-records"),
        removed_rows=_removed_rows(summary),
        added_files=_changed(summary, "added-data-files", "added-delete-files"),
        removed_files=_changed(summary, "deleted-data-files", "removed-delete-files"),
        added_bytes=_changed(summary, "added-files-size"),
        total_rows=summary_number(summary, "total-records"),
        refs=refs,
        wap_id=summary.get(WAP_ID),
        source_id=summary_number(summary, SOURCE),
        on_ref=on_ref,
        parent_expired=parent_expired,
        forks=forks,
    )


def _first(summary: Mapping[str, str], keys: Iterable[str]) -> str | None:
    return next((summary[key] for key in keys if summary.get(key)), None)


def _changed(summary: Mapping[str, str], *keys: str) -> int | None:
    """The sum of some counts: writers omit zeros, but an empty summary says nothing at all."""
    found = [n for key in keys if (n := summary_number(summary, key)) is not None]
    return sum(found) if found or any(key.startswith("total-") for key in summary) else None


def _removed_rows(summary: Mapping[str, str]) -> int | None:
    """A deletion vector that replaces another contains the other's positions again."""
    positions = [summary_number(summary, f"{word}-position-deletes") or 0 for word in ("added", "removed")]
    rows = _changed(summary, "deleted-records", "added-equality-deletes")
    return max(0, positions[0] - positions[1]) + (rows or 0) if rows is not None or positions[0] else None


def _grouped(edges: Iterable[HistoryEdge]) -> dict[int, list[HistoryEdge]]:
    by_row: dict[int, list[HistoryEdge]] = defaultdict(list)
    for edge in edges:
        by_row[edge.child_row].append(edge)
    return by_row
