"""Manifests without the files that a commit removes: read and rewritten only if they may list some.

Removed entries become DELETED by this snapshot, the other live ones EXISTING, with the numbers and row ids they had;
older DELETED ones go. What was written for a source manifest is used again by the next attempt.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec
import polars as pl

from bergline.errors import ConflictError
from bergline.format.manifest.columns import METRICS
from bergline.format.manifest.inheritance import deleted_entry, existing_entry
from bergline.format.manifest.manifest import DataFile, FileContent, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import each_batch, load_entries
from bergline.table.manifests.removal import (
    POSITION,
    FileSelector,
    PartitionLookup,
    Removal,
    RemovedFiles,
    file_key,
    live_rows,
)

_NO_METRICS: Final = dict.fromkeys(sorted(METRICS))


class ManifestWriter(Protocol):
    """Writes manifests for a snapshot in the making."""

    snapshot_id: int

    def write_manifests(
        self, base: TableMetadata, spec_id: int, entries: Sequence[ManifestEntry], content: ManifestContent
    ) -> tuple[ManifestFile, ...]:
        """Write entries to one manifest, or to several if it would grow too large."""
        ...


class Filtered(msgspec.Struct, frozen=True):
    """Manifests in the order of their sources, except those without live files, and what was removed from them."""

    manifests: tuple[ManifestFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    """Data files without metrics."""
    replaced: int = 0
    """How many manifests were rewritten."""


class ManifestFilter:
    """Removes files from the manifests of a snapshot's parent; one for all attempts of a commit."""

    def __init__(self, io: FileIO, writer: ManifestWriter, removals: Iterable[Removal]) -> None:
        self._io = io
        self._writer = writer
        self._removals = tuple(removals)
        self._rewritten: dict[tuple[ManifestFile, int, frozenset[int]], Filtered] = {}

    def apply(
        self, base: TableMetadata, manifests: Sequence[ManifestFile], *, added: Sequence[ManifestFile] = ()
    ) -> Filtered:
        """The parent's manifests without what is removed; ConflictError if a file that must exist does not.

        With data files go the deletes by position that name one of them alone, and delete files older than all data
        that is left: the data of `added` manifests too, which the snapshot adds itself.
        """
        live = [m for m in manifests if m.has_live_files]
        selector = FileSelector(self._removals, base)
        data = [m for m in live if m.content is ManifestContent.DATA]
        outcome = self._filter(base, data, selector)
        gone = [file for filtered in outcome.values() for file in filtered.removed]
        left = [m for f in outcome.values() for m in f.manifests]
        deletes = [m for m in live if m.content is ManifestContent.DELETES]
        obsolete = _Obsolete(base, gone, [*left, *added]) if gone else None
        outcome |= self._filter(base, deletes, selector, obsolete)
        results = [outcome[m.manifest_path] for m in live]
        removed = {file_key(file): file for filtered in results for file in filtered.removed}
        self._check_found(removed.keys())
        return Filtered(
            tuple(m for filtered in results for m in filtered.manifests),
            tuple(removed.values()),
            sum(filtered.replaced for filtered in results),
        )

    def _filter(
        self,
        base: TableMetadata,
        manifests: Sequence[ManifestFile],
        selector: FileSelector,
        obsolete: "_Obsolete | None" = None,
    ) -> dict[str, Filtered]:
        """The result for each manifest, by path."""
        outcome = {m.manifest_path: Filtered((m,)) for m in manifests}
        open_ones = [m for m in manifests if selector.may_pick(m) or (obsolete and obsolete.may_pick(m))]

        def picks(frames: Sequence[pl.DataFrame], places: Sequence[int]) -> list[tuple[int, frozenset[int]]]:
            found = []
            for frame, place in zip(frames, places, strict=True):
                live, manifest = live_rows(frame), open_ones[place]
                picked = selector.picks(live, manifest) | (obsolete.picks(live, manifest) if obsolete else set())
                found.append((place, frozenset(picked)))
            return found

        for place, picked in sorted(pair for batch in each_batch(self._io, open_ones, picks) for pair in batch):
            if picked:
                manifest = open_ones[place]
                outcome[manifest.manifest_path] = self._without(base, manifest, picked)
        return outcome

    def _without(self, base: TableMetadata, manifest: ManifestFile, picked: frozenset[int]) -> Filtered:
        # commits in between may have assigned row ids to the manifest, and upgrades need counts that v1 omits
        key = manifest, base.format_version, picked
        if key not in self._rewritten:
            entries = load_entries(self._io, manifest, base)
            live = [
                deleted_entry(e, self._writer.snapshot_id) if index in picked else existing_entry(e)
                for index, e in enumerate(entries)
                if e.is_live
            ]
            self._rewritten[key] = Filtered(
                self._writer.write_manifests(base, manifest.partition_spec_id, live, manifest.content),
                tuple(_without_metrics(entries[index].data_file) for index in sorted(picked)),
                1,
            )
        return self._rewritten[key]

    def _check_found(self, found: Iterable[tuple[str, int | None]]) -> None:
        present = set(found)
        for removal in self._removals:
            if isinstance(removal, RemovedFiles) and removal.must_exist:
                missing = [f.file_path for f in removal.files if file_key(f) not in present]
                if missing:
                    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                    raise ConflictError(f"expected a file to remove, found it removed already: {missing[0]}{more}")


def _without_metrics(file: DataFile) -> DataFile:
    """A data file without metrics, which take most of the memory; a delete file keeps them to find its data files."""
    return msgspec.structs.replace(file, **_NO_METRICS) if file.content is FileContent.DATA else file


class _Obsolete:
    """Delete files that become obsolete when some data files are removed."""

    def __init__(self, base: TableMetadata, gone: Sequence[DataFile], left: Iterable[ManifestFile]) -> None:
        numbers = [m.min_sequence_number for m in left if m.min_sequence_number is not None]
        self._oldest = min([base.last_sequence_number, *numbers])
        self._paths = pl.Series([f.file_path for f in gone], dtype=pl.String).implode()
        self._partitions = PartitionLookup(((f.spec_id, f.partition) for f in gone), base)

    def may_pick(self, manifest: ManifestFile) -> bool:
        """False only if the manifest lists no delete file that is too old, and none of a removed data file alone."""
        return (manifest.min_sequence_number or 0) < self._oldest or self._partitions.may_pick(manifest)

    def picks(self, live: pl.DataFrame, manifest: ManifestFile) -> set[int]:
        """The positions of the obsolete entries among the live ones."""
        number = pl.col("sequence_number").fill_null(manifest.sequence_number)
        # as in Java, number 0 says nothing about age: it is that of everything from format version 1
        too_old = (number > 0) & (number < self._oldest)
        by_position = pl.col("content") == int(FileContent.POSITION_DELETES)
        dangling = by_position & pl.col("referenced_data_file").is_in(self._paths)
        return set(live.filter(too_old | dangling)[POSITION].to_list())
