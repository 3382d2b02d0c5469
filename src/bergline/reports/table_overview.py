"""A table at a glance: where it is, what it holds, its refs, its history."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from bergline.catalog.protection.ref_protection import ProtectingRule
from bergline.format.metadata.refs import MAIN, SnapshotRef
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.history import TableHistory, table_history
from bergline.reports.problem import Problem, attempt
from bergline.reports.totals import Totals, totals_of
from bergline.scan.manifests import load_manifest_list
from bergline.table.table import Table

_HEADS_READ, _READERS = 20, 8


class RefLine(msgspec.Struct, frozen=True):
    """A branch or tag: where it is, what it holds, and how far it is from `main`."""

    name: str
    ref: SnapshotRef
    timestamp_ms: int
    totals: Totals
    ahead: int | None
    """Snapshots that it has and `main` does not have; None without a common ancestor."""
    behind: int | None
    rules: tuple[ProtectingRule, ...] = ()
    """The rules that protect it."""


class TableOverview(msgspec.Struct, frozen=True):
    """A table as it was loaded."""

    metadata: TableMetadata
    metadata_location: str
    totals: Totals
    """Those of `main`."""
    refs: tuple[RefLine, ...]
    """`main` first, then branches, then tags, by name."""
    history: TableHistory
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    problems: tuple[Problem, ...]


def table_overview(table: Table) -> TableOverview:
    """The overview of a table; of its files, only the manifest lists of some heads are read."""
    metadata = table.metadata
    refs = ref_lines(metadata, table.refs.protection())
    return TableOverview(
        metadata,
        table.metadata_location,
        totals_of(metadata.current_snapshot),
        refs,
        table_history(metadata),
        partition_terms(metadata),
        sort_terms(metadata),
        _broken_heads(table, refs),
    )


def _broken_heads(table: Table, refs: Sequence[RefLine]) -> tuple[Problem, ...]:
    """The heads whose manifest lists cannot be read, of the first refs."""
    names: dict[int, list[str]] = {}
    for line in refs:
        names.setdefault(line.ref.snapshot_id, []).append(f"`{line.name}`")
    problems: list[Problem] = []

    def look(snapshot_id: int) -> None:
        snapshot = table.metadata.snapshot(snapshot_id)
        what = f"the files of {', '.join(names[snapshot_id])}"
        attempt(problems, what, partial(load_manifest_list, table.io, snapshot))

    with ThreadPoolExecutor(_READERS) as pool:
        list(pool.map(look, list(names)[:_HEADS_READ]))
    return tuple(sorted(problems, key=lambda problem: problem.what))


def ref_lines(
    metadata: TableMetadata, protection: Mapping[str, tuple[ProtectingRule, ...]] | None = None
) -> tuple[RefLine, ...]:
    """Every ref of a table, `main` first, then branches, then tags."""
    rules = protection or {}
    main = metadata.head(MAIN)
    places = {} if main is None else {s.snapshot_id: n for n, s in enumerate(metadata.ancestors(main.snapshot_id))}
    distances: dict[int, tuple[int, int] | None] = {snapshot_id: (0, n) for snapshot_id, n in places.items()}
    ordered = sorted(metadata.refs.items(), key=lambda item: (item[0] != MAIN, not item[1].is_branch, item[0]))
    lines = []
    for name, ref in ordered:
        head = metadata.snapshot(ref.snapshot_id)
        distance = _distance(metadata, ref.snapshot_id, distances)
        ahead, behind = (None, None) if distance is None else distance
        lines.append(RefLine(name, ref, head.timestamp_ms, totals_of(head), ahead, behind, rules.get(name, ())))
    return tuple(lines)


def _distance(
    metadata: TableMetadata, snapshot_id: int, known: dict[int, tuple[int, int] | None]
) -> tuple[int, int] | None:
    """How many snapshots it is ahead of and behind `main`."""
    walked: list[int] = []
    end: tuple[int, int] | None = None
    for snapshot in metadata.ancestors(snapshot_id):
        if snapshot.snapshot_id in known:
            end = known[snapshot.snapshot_id]
            break
        walked.append(snapshot.snapshot_id)
    for steps, one in enumerate(reversed(walked), 1):
        known[one] = None if end is None else (end[0] + steps, end[1])
    return known.get(snapshot_id)


def partition_terms(metadata: TableMetadata) -> tuple[str, ...]:
    """The partition spec for new files, as terms: `day(ts)`."""
    names = metadata.schema_for(metadata.spec).names_by_id
    fields = metadata.spec.fields
    return tuple(_term(str(f.transform), names.get(f.source_id, f.name)) for f in fields if str(f.transform) != "void")


def sort_terms(metadata: TableMetadata) -> tuple[str, ...]:
    """The sort order for new files, as terms: `id asc nulls first`."""
    names = metadata.schema.names_by_id
    return tuple(
        f"{_term(str(f.transform), names.get(f.source_id, str(f.source_id)))} "
        f"{f.direction} {f.null_order.replace('-', ' ')}"
        for f in metadata.sort_order.fields
    )


def _term(transform: str, column: str) -> str:
    """A transform of a column: `bucket[16]` of `id` is `bucket(16, id)`."""
    if transform == "identity":
        return column
    name, _, width = transform.rstrip("]").partition("[")
    return f"{name}({width}, {column})" if width else f"{name}({column})"
