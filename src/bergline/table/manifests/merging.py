"""Small manifests of earlier snapshots merged into larger ones, so that reads and lists stay short.

A commit's own manifests are left to a later commit: a manifest never mixes ADDED entries with carried-forward ones. The
first attempt decides what to merge, from the manifest list alone; later attempts reuse its manifests if their sources
still exist, and merge nothing else.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import msgspec
import polars as pl

from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.columns import entries_of
from bergline.format.manifest.inheritance import existing_entry, inherit, inherit_columns
from bergline.format.manifest.manifest import EntryStatus, ManifestEntry, ManifestFile
from bergline.format.metadata.properties import boolean_property
from bergline.format.metadata.table_metadata import TableMetadata, positive_property
from bergline.format.partition.spec import PartitionSpec
from bergline.format.partition.transforms import UnknownTransform
from bergline.io.fileio import FileIO
from bergline.scan.manifest_cache import WRITTEN_ENTRIES
from bergline.scan.manifests import load_columns, load_entries, spec_of
from bergline.table.manifests.filtering import ManifestWriter

DEFAULT_MANIFEST_SIZE = 8 * 1024 * 1024
_DEFAULT_MIN_COUNT = 100
_MOST_GROUPS = 8
_FEW_READ = 4


class Merged(msgspec.Struct, frozen=True):
    """The manifests of a snapshot, and how many of its parent's were merged into them."""

    manifests: tuple[ManifestFile, ...]
    replaced: int = 0


class ManifestMerger:
    """Merges manifests for one snapshot, in all of its attempts."""

    def __init__(self, io: FileIO, writer: ManifestWriter) -> None:
        self._io = io
        self._writer = writer
        self._joined: list[tuple[tuple[ManifestFile, ...], tuple[ManifestFile, ...]]] | None = None
        self._format_version = 0

    def merge(self, base: TableMetadata, manifests: Sequence[ManifestFile]) -> Merged:
        """The manifests in the same order; groups of older ones may have become one."""
        if not boolean_property(base.properties, "commit.manifest-merge.enabled", default=True):
            return Merged(tuple(manifests))
        if self._joined is None:
            self._joined = [(group, self._join(base, group)) for group in plan_merges(base, manifests)]
            self._format_version = base.format_version
        present = frozenset(manifests) if self._joined else frozenset()
        # v1 omits counts that later versions need
        usable = self._joined if self._format_version == base.format_version else ()
        groups = [(group, joined) for group, joined in usable if present.issuperset(group)]
        becomes = {m: () for group, _ in groups for m in group} | {group[0]: joined for group, joined in groups}
        return Merged(tuple(m for source in manifests for m in becomes.get(source, (source,))), len(becomes))

    def _join(self, base: TableMetadata, group: Sequence[ManifestFile]) -> tuple[ManifestFile, ...]:
        spec = spec_of(group[0], base)
        entries = [existing_entry(e) for e in self._live(base, spec, group)]
        return self._writer.write_manifests(base, spec.spec_id, entries, group[0].content)

    def _live(self, base: TableMetadata, spec: PartitionSpec, group: Sequence[ManifestFile]) -> list[ManifestEntry]:
        """The live entries of manifests of one spec, with inheritance applied."""
        written = [WRITTEN_ENTRIES.find(self._io, m.manifest_path) for m in group]
        if written.count(None) <= _FEW_READ:  # this process wrote most of them recently
            return [
                entry
                for manifest, known in zip(group, written, strict=True)
                for entry in (load_entries(self._io, manifest, base) if known is None else inherit(known, manifest))
                if entry.is_live
            ]
        types = partition_types(spec, base.schema_for(spec))
        # decoding them one by one takes many times as long
        together = inherit_columns(load_columns(self._io, group), group)
        live = together.filter(pl.col("status") != int(EntryStatus.DELETED))
        return entries_of(live, types, spec.spec_id, f"{len(group)} manifests from {group[0].manifest_path} on")


def plan_merges(base: TableMetadata, manifests: Sequence[ManifestFile]) -> list[tuple[ManifestFile, ...]]:
    """Which manifests of earlier snapshots to merge: adjacent ones of the same spec and kind.

    As many as fill a manifest, or the newest ones as soon as there are `commit.manifest.min-count-to-merge` of them.
    What a table that was never merged has beyond some groups is left to the next commits; partitions by a transform
    that we do not know cannot be written again.
    """
    target = positive_property(base, "commit.manifest.target-size-bytes", DEFAULT_MANIFEST_SIZE)
    least = max(2, positive_property(base, "commit.manifest.min-count-to-merge", _DEFAULT_MIN_COUNT))
    if len(manifests) < least and sum(m.manifest_length for m in manifests) <= target:
        return []  # the usual case
    odd = {s.spec_id for s in base.partition_specs if any(isinstance(f.transform, UnknownTransform) for f in s.fields)}
    older = [m for m in manifests if m.sequence_number is not None and m.partition_spec_id not in odd]
    kinds = {(m.content, m.partition_spec_id): None for m in older}
    groups = (
        group
        for kind in kinds
        for run in _small_runs([m for m in older if (m.content, m.partition_spec_id) == kind], target)
        for group in _groups(run, target, least)
    )
    return list(islice(groups, _MOST_GROUPS))


def _small_runs(manifests: Sequence[ManifestFile], target: int) -> Iterator[list[ManifestFile]]:
    """The manifests worth merging; one that is at least half full is not rewritten for a remainder."""
    for small, run in groupby(manifests, lambda m: m.manifest_length < target / 2 and m.key_metadata is None):
        if small:
            yield list(run)


def _groups(run: Sequence[ManifestFile], target: int, least: int) -> Iterator[tuple[ManifestFile, ...]]:
    """Groups filled from the oldest on, so that the remainder is new."""
    filling: list[ManifestFile] = []
    size = 0
    # A run is in the order of the manifest list, newest first
    for manifest in reversed(run):
        if filling and size + manifest.manifest_length > target:
            if len(filling) > 1:
                yield tuple(reversed(filling))
            filling, size = [], 0
        filling.append(manifest)
        size += manifest.manifest_length
    newest = _without_large(filling)
    if len(newest) >= least:
        yield tuple(reversed(newest))


def _without_large(oldest_first: Sequence[ManifestFile]) -> Sequence[ManifestFile]:
    """Drop old ones larger than all newer ones together, so that no entry is rewritten again and again."""
    newer = sum(m.manifest_length for m in oldest_first)
    for index, manifest in enumerate(oldest_first):
        newer -= manifest.manifest_length
        if manifest.manifest_length <= newer:
            return oldest_first[index:]
    return ()
