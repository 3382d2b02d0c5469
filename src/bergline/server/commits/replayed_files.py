"""Snapshots that clients say they replay: they must add and remove the very files that the source did.

Who writes to a branch that moves only by publishing, or may only publish, could name any source otherwise. Only
manifests that a snapshot does not share with the one before it are read, of the new snapshots and of their sources.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from bergline.catalog.protection.ref_moves import RefMove
from bergline.errors import FormatError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import EntryStatus, FileContent, ManifestContent, ManifestEntry, partition_key
from bergline.format.metadata.refs import SnapshotRef
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import live_entries, load_entries, load_manifest_list
from bergline.table.manifests.removal import FileKey, file_key
from bergline.table.references.snapshot_change import differing_entries
from bergline.table.references.squash import squash_divergence

_UNREADABLE = (FormatError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError)
_MOST_STEPS = 100
_Entries = Mapping[FileKey, ManifestEntry]


def replays_same_files(io: FileIO, base: TableMetadata, result: TableMetadata, move: RefMove) -> bool:
    """Whether each new snapshot does what its source did, alone or with those before it; not if one cannot be read.

    Those before it are the snapshots of its branch that the target has not: all of them as one are a squash.
    """
    numbers = frozenset(result.snapshot(new).sequence_number for new, _ in move.replays)
    try:
        return all(
            _Replay(
                io,
                result,
                result.snapshot(new),
                base.snapshot(source),
                _older(io, base, source, move.before),
                numbers=numbers,
            ).is_true()
            for new, source in move.replays
        )
    except _UNREADABLE:
        return False


def _older(io: FileIO, base: TableMetadata, source: int, target: SnapshotRef | None) -> list[Snapshot | None]:
    """What came before a snapshot, to the first that the target has: None if they have no ancestor."""
    had = set() if target is None else {s.snapshot_id for s in base.ancestors(target.snapshot_id)}
    line: list[Snapshot | None] = []
    oldest = base.snapshot(source)
    for oldest in base.ancestors(source):
        line.append(oldest)
        if oldest.snapshot_id in had:
            return line[1:]
    if oldest.parent_snapshot_id is None or target is None:
        return [*line[1:], None]
    divergence = squash_divergence(io, base, source, target.snapshot_id)
    return line[1:] if divergence is None else [*line[1:], divergence.ancestor]


class _Difference(NamedTuple):
    removed: _Entries
    added: _Entries


class _Replay:
    """A new snapshot, and the line that it says it replays the end of."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        snapshot: Snapshot,
        source: Snapshot,
        older: Sequence[Snapshot | None],
        *,
        numbers: frozenset[int],
    ) -> None:
        """`older` is what came before the source; `numbers` are those of the new snapshots of the same move."""
        self._io = io
        self._metadata = metadata
        self._snapshot = snapshot
        self._source = source
        self._older = older
        oldest = (source, *older)[-1]
        self._forked = 0 if oldest is None else oldest.sequence_number
        self._numbers = numbers

    def is_true(self) -> bool:
        """Whether it changes what the source changed: after its parent, as a replay, or after an older one."""
        number = self._snapshot.parent_snapshot_id
        parent = None if number is None else self._metadata.snapshot(number)
        if not _shares_manifests_as_they_are(self._io, parent, self._snapshot):
            return False
        done = self._difference(parent, self._snapshot)
        if not self._older:
            return self._is_same(done, self._own_changes(), self._source.sequence_number)
        starts = (*self._older[:1], *self._older[1:][-1:], *self._older[1:-1][:_MOST_STEPS])
        return any(
            self._is_same(done, self._difference(start, self._source), 0 if start is None else start.sequence_number)
            for start in starts
        )

    def _own_changes(self) -> _Difference:
        """What the source itself says that it did: what it was made on has expired."""
        entries = [
            entry
            for manifest in load_manifest_list(self._io, self._source)
            if manifest.added_snapshot_id == self._source.snapshot_id
            for entry in load_entries(self._io, manifest, self._metadata)
            if entry.snapshot_id == self._source.snapshot_id
        ]
        removed, added = (
            {file_key(e.data_file): e for e in entries if e.status is status}
            for status in (EntryStatus.DELETED, EntryStatus.ADDED)
        )
        return _Difference(removed, added)

    def _difference(self, before: Snapshot | None, after: Snapshot) -> _Difference:
        """Entries that are live in one of both only, or have become others."""
        old, new = differing_entries(self._io, self._metadata, before, after)
        stays = {key for key in old.keys() & new.keys() if _is_same_entry(old[key], new[key])}
        return _Difference(
            {key: entry for key, entry in old.items() if key not in stays},
            {key: entry for key, entry in new.items() if key not in stays},
        )

    def _is_same(self, done: _Difference, wanted: _Difference, since: int) -> bool:
        if done.added.keys() != wanted.added.keys() or _data(done.removed) != _data(wanted.removed):
            return False
        for key, entry in done.added.items():
            source = wanted.added[key]
            if not _is_same_file(entry, source):
                return False
            if not self._may_have(entry.sequence_number or 0, source.sequence_number or 0, since):
                return False
        return self._removes_same_deletes(done, wanted)

    def _may_have(self, number: int, at_source: int, since: int) -> bool:
        """Whether a file that has a sequence number at the source may have another one here.

        New files have that of their snapshot; one that was written anew for older rows keeps the number of these.
        """
        here = self._snapshot.sequence_number
        if at_source > since or at_source == self._source.sequence_number:
            return number == here
        if at_source <= self._forked:
            return number == at_source
        return number == self._forked or (number in self._numbers and number <= here)

    def _removes_same_deletes(self, done: _Difference, wanted: _Difference) -> bool:
        """Delete files may go with their only data file, and one may be gone already."""
        extra = done.removed.keys() - wanted.removed.keys()
        gone = {path for path, _ in _data(done.removed)}
        if any(only_data_file(done.removed[key].data_file) not in gone for key in extra):
            return False
        missing = wanted.removed.keys() - done.removed.keys()
        if not missing:
            return True
        deletes = (m for m in load_manifest_list(self._io, self._snapshot) if m.content is ManifestContent.DELETES)
        live = live_entries(self._io, deletes, self._metadata)
        return missing.isdisjoint(file_key(e.data_file) for e in live)


def _shares_manifests_as_they_are(io: FileIO, parent: Snapshot | None, snapshot: Snapshot) -> bool:
    """Whether what the lists say about manifests of both is the same: counts of zero would hide their files."""
    before = {m.manifest_path: m for m in (load_manifest_list(io, parent) if parent else ())}
    return all(before.get(m.manifest_path, m) == m for m in load_manifest_list(io, snapshot))


def _data(entries: _Entries) -> set[FileKey]:
    return {key for key, entry in entries.items() if entry.data_file.content is FileContent.DATA}


def _is_same_entry(one: ManifestEntry, other: ManifestEntry) -> bool:
    return one.sequence_number == other.sequence_number and _is_same_file(one, other)


def _is_same_file(one: ManifestEntry, other: ManifestEntry) -> bool:
    """Whether two entries say the same about a file; row ids are new where its rows are."""
    file, same = one.data_file, other.data_file
    unlike = {"partition": (), "first_row_id": None, "physical_schema": None}
    return partition_key(file) == partition_key(same) and (
        msgspec.structs.replace(file, **unlike) == msgspec.structs.replace(same, **unlike)
    )
