"""The data files of a snapshot that a compaction may rewrite, found without holding the others.

Manifests are looked at a few at a time. What is kept of each candidate is a row in columns, without metrics.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec
import polars as pl

from bergline.expressions.predicate import Predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.inheritance import MANIFEST
from bergline.format.manifest.manifest import DataFile, FileContent, ManifestContent
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.delete_tallies import DeleteTallies
from bergline.scan.manifests import load_manifest_list, spec_of
from bergline.scan.path_lookup import PathLookup
from bergline.scan.plan import ScanPlan
from bergline.scan.planned_files import FileGroup, PlannedFiles
from bergline.scan.planner import plan_scan
from bergline.scan.pruning import Pruning
from bergline.table.engine.file_groups import SizeRules
from bergline.table.operations.rewrite_options import RewriteOptions

_ROUNDING: Final = 1 - 1e-9
_ROW_BITS: Final = 32


class RewriteCandidates(msgspec.Struct, frozen=True):
    """Data files by their places in a plan, with what decides how they are grouped."""

    sizes: Sequence[int]
    has_many_deletes: Sequence[bool]
    """For each file whether its deletes alone are a reason to rewrite it."""
    partitions: Sequence[Sequence[int]]
    """The places of the files of each partition, in the order in which the snapshot begins to list those."""


def find_candidates(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    row_filter: Predicate,
    *,
    rules: SizeRules,
    options: RewriteOptions,
    skip: Collection[str] = (),
) -> tuple[ScanPlan, PlannedFiles, RewriteCandidates]:
    """The files that may be a reason to rewrite, by size or deletes, and how they are read.

    If all rows go to one partition spec, the files that are not of the current spec count as one partition.
    """
    manifests = [m for m in load_manifest_list(io, snapshot) if m.has_live_files]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    tallies = None
    if deletes and not rules.rewrite_all:
        tallies = DeleteTallies(io, deletes, metadata, of_several=options.delete_file_threshold is not None)
    choice = _Choice(rules, options, tallies, skip)
    plan = plan_scan(
        io,
        metadata,
        snapshot.snapshot_id,
        table_schema=metadata.schema,
        columns=metadata.schema,
        row_filter=row_filter,
        choose=choice,
    )
    files = plan.files if isinstance(plan.files, PlannedFiles) else PlannedFiles([])
    has_many = [many for group in files.groups for many in _have_many_deletes(group, options)]
    pruning = Pruning(plan.filter, metadata.schema)
    data = (m for m in manifests if m.content is ManifestContent.DATA)
    listed = (m.partition_spec_id for m in data if pruning.may_match_manifest(m, spec_of(m, metadata)))
    order = choice.partition_order(list(dict.fromkeys(listed)))
    current = None if options.output_spec_id is None else metadata.spec.spec_id
    candidates = RewriteCandidates(files.sizes, has_many, _partitions(files, order, current))
    return msgspec.structs.replace(plan, files=()), files, candidates


class _PartitionOrder:
    """Where a snapshot begins to list the files of each partition, by a hash of it."""

    def __init__(self, begins: dict[int, pl.DataFrame]) -> None:
        self._begins = begins
        """For the partition specs in their order."""
        self._ranks = {spec_id: rank for rank, spec_id in enumerate(begins)}

    def of(self, files: FileGroup) -> list[tuple[int, int]]:
        """What the partition of each file is ordered by."""
        rank, hashes = self._ranks[files.spec_id], files.partition_hashes.alias("partition").to_frame()
        found = hashes.join(self._begins[files.spec_id], on="partition", how="left", maintain_order="left")
        return [(rank, begin) for begin in found["begin"].to_list()]

    def of_others(self, spec_id: int) -> tuple[int, int]:
        """The same for the files of all other partition specs."""
        return min(rank for other, rank in self._ranks.items() if other != spec_id), 0


class _Choice:
    """Leaves out what is certainly not rewritten; notes where each partition begins."""

    def __init__(
        self, rules: SizeRules, options: RewriteOptions, tallies: DeleteTallies | None, skip: Collection[str]
    ) -> None:
        self._rules = rules
        self._options = options
        self._tallies = tallies
        self._skip = PathLookup(skip)
        self._begins: list[tuple[int, pl.DataFrame]] = []

    def __call__(self, files: FileGroup) -> pl.Series:
        """A mask; where it is false, neither size nor deletes are a reason to rewrite a file."""
        is_open = ~self._skip.holds(files.frame["file_path"])
        self._note(files, is_open)
        rules, size = self._rules, files.frame["file_size_in_bytes"]
        if rules.rewrite_all:
            return is_open
        is_off = (size < rules.least) | ((size > rules.most) & (not rules.only_fewer))
        return is_open & (is_off if self._tallies is None else is_off | self._may_have_many(files, self._tallies))

    def partition_order(self, spec_ids: Sequence[int]) -> _PartitionOrder:
        """Where partitions begin, of specs that are listed in this order."""
        known = {i: [begins for spec_id, begins in self._begins if spec_id == i] for i in spec_ids}
        return _PartitionOrder({i: _earliest(pl.concat(begins)) for i, begins in known.items() if begins})

    def _note(self, files: FileGroup, is_open: pl.Series) -> None:
        rows = pl.int_range(files.frame.height, dtype=pl.UInt64, eager=True)
        begins = files.frame[MANIFEST].cast(pl.UInt64) * 2**_ROW_BITS + rows
        noted = pl.DataFrame({"partition": files.partition_hashes, "begin": begins}).filter(is_open)
        if noted.height:
            self._begins.append((files.spec_id, _earliest(noted)))

    def _may_have_many(self, files: FileGroup, tallies: DeleteTallies) -> pl.Series:
        found, options = tallies.of(files), self._options
        rows = files.frame["record_count"] * options.delete_ratio_threshold * _ROUNDING
        many = found["doubt"] | ((found["rows"] > 0) & (found["rows"] >= rows))
        if options.delete_file_threshold is not None:
            many |= (found["deletes"] > 0) & (found["deletes"] >= options.delete_file_threshold)
        return many


def _earliest(begins: pl.DataFrame) -> pl.DataFrame:
    return begins.group_by("partition").agg(pl.col("begin").min())


def _partitions(files: PlannedFiles, order: _PartitionOrder, current_spec_id: int | None) -> list[list[int]]:
    found: dict[Any, list[int]] = defaultdict(list)
    begins: dict[Any, tuple[int, int]] = {}
    first = 0
    for group in files.groups:
        places = range(first, first + group.frame.height)
        if current_spec_id is not None and group.spec_id != current_spec_id:
            begins[None] = order.of_others(current_spec_id)
            found[None] += places
        else:
            for place, key, begin in zip(places, group.partition_keys, order.of(group), strict=True):
                found[key].append(place)
                begins[key] = min(begins.get(key, begin), begin)
        first = places.stop
    return [found[key] for key in sorted(found, key=begins.__getitem__)]


def _have_many_deletes(group: FileGroup, options: RewriteOptions) -> Iterator[bool]:
    deletes = group.deletes or [()] * group.frame.height
    for applied, rows in zip(deletes, group.frame["record_count"].to_list(), strict=True):
        yield bool(applied) and _are_many(applied, rows, options)


def _are_many(deletes: Sequence[DataFile], rows: int, options: RewriteOptions) -> bool:
    if options.delete_file_threshold is not None and len(deletes) >= options.delete_file_threshold:
        return True
    by_position = (d for d in deletes if d.content is FileContent.POSITION_DELETES)
    known = sum(d.record_count for d in by_position if only_data_file(d) is not None)
    return rows > 0 and min(known, rows) / rows >= options.delete_ratio_threshold
