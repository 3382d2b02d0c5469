"""Replay: applies the change of a snapshot on one line of history on top of another. Data files are reused."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from bergline.catalog.conflicts import describe_snapshot
from bergline.errors import ConflictError, InvalidInputError, RefusedError
from bergline.format.manifest.manifest import ManifestContent, ManifestEntry, ManifestFile
from bergline.format.metadata.snapshot import REBASED_FROM, Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.manifests.filtering import ManifestFilter
from bergline.table.manifests.removal import RemovedFiles
from bergline.table.operations.row_delta import check_deletes_fit
from bergline.table.references.common_ancestor import repetition
from bergline.table.references.merge_conflicts import MergeConflicts
from bergline.table.references.merge_plan import MergeRequest
from bergline.table.references.snapshot_change import ChangedFile, SnapshotChange
from bergline.table.references.summary import (
    ORIGIN,
    REPLACED,
    REPLACED_AMONG_OTHERS,
    SOURCE,
    SQUASHED,
    SQUASHED_SINCE,
    WAP_ID,
    published_summary,
)

_SHOWN: Final = 5
_COUNTED: Final = ("added-", "deleted-", "removed-", "total-", "manifests-", "partitions.")
_COMPUTED: Final = frozenset(
    {"operation", "changed-partition-count", "partition-summaries-included", "entries-processed"}
    | {SOURCE, ORIGIN, SQUASHED, SQUASHED_SINCE, WAP_ID, REPLACED_AMONG_OTHERS, REBASED_FROM}
)


class ReplayBase(msgspec.Struct, frozen=True):
    """The base of a replay, in one attempt."""

    conflicts: MergeConflicts
    ancestor_number: int
    known: frozenset[int] = frozenset()
    """Snapshots of the other line whose changes were in the base of the original."""
    replayed: dict[str, int] = {}
    """Data files that earlier replays of the same merge added, with the sequence numbers that they have here."""
    numbers: tuple[tuple[int, int], ...] = ()
    """The sequence numbers of the original line, oldest first, each with that of the same change here."""

    def number_of(self, added: ChangedFile) -> int | None:
        """The data sequence number to assign to an added file; None for that of the commit."""
        if not added.pinned:
            return None
        if added.number <= self.ancestor_number:
            return added.number
        return next((here for there, here in reversed(self.numbers) if there <= added.number), self.ancestor_number)

    def after(self, change: SnapshotChange, number: int) -> "ReplayBase":
        """The base of the next replay, after one with this sequence number."""
        added = ((f.file.file_path, self.number_of(f)) for f in change.added if f.is_data)
        return msgspec.structs.replace(
            self,
            replayed=self.replayed | {path: number if given is None else given for path, given in added},
            numbers=tuple(sorted((*self.numbers, (change.source.sequence_number, number)))),
        )


class Replay(SnapshotProducer):
    """The files that the snapshot added, in its own manifests, and the parent's without those that it removed."""

    def __init__(
        self,
        io: FileIO,
        change: SnapshotChange,
        *,
        request: MergeRequest,
        squashed: Mapping[str, str] | None = None,
        snapshot_id: int | None = None,
    ) -> None:
        """`squashed` are the summary entries for several snapshots in one; a new `snapshot_id` unless it is given."""
        source = change.source
        kept = {k: v for k, v in source.summary.items() if k not in _COMPUTED and not k.startswith(_COUNTED)}
        if squashed:
            kept.pop(REPLACED, None)
        if change.replaced and REPLACED not in kept:
            kept[REPLACED_AMONG_OTHERS] = "true"
        super().__init__(
            io,
            request.moved,
            kept | repetition(source) | published_summary(source) | dict(squashed or {}),
            snapshot_id=snapshot_id,
        )
        self.change = change
        self._request = request
        self._replay_base: ReplayBase | None = None
        self._written: dict[tuple[bool, tuple[int | None, ...]], tuple[ManifestFile, ...]] = {}
        removed_deletes = tuple(d.file for d in change.removed_deletes)
        self._filter = ManifestFilter(
            io, self, [RemovedFiles(change.removed_data, must_exist=True), RemovedFiles(removed_deletes)]
        )

    def attempt_on(self, base: TableMetadata, stamp: CommitStamp, replay_base: ReplayBase) -> Change:
        """The snapshot on the branch's head; ConflictError names the conflicts."""
        self._replay_base = replay_base
        try:
            return self.attempt(base, stamp)
        except ConflictError as error:
            raise ConflictError(f"{self._refused()}: {error}", hints=error.hints or self._hints()) from error
        except InvalidInputError as error:
            raise RefusedError(f"{self._refused()}: {error}", hints=error.hints or self._hints()) from error

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """New manifests, then the parent's without the removed files."""
        change, replay_base = self.change, self._replay_base
        if replay_base is None:
            raise InvalidInputError("expected a base to replay on, found none")
        check_deletes_fit(base, [d.file for d in change.added_deletes])
        self._check(replay_base)
        added = self._added_manifests(base, [replay_base.number_of(f) for f in change.added])
        filtered = self._filter.apply(base, load_manifest_list(self._io, parent) if parent else [], added=added)
        return Draft(
            change.operation,
            (*added, *filtered.manifests),
            added=tuple(f.file for f in change.added),
            removed=filtered.removed,
            replaced=filtered.replaced,
        )

    def _check(self, on: ReplayBase) -> None:
        found = on.conflicts.find(self.change, known=on.known, replayed=on.replayed)
        texts = list(dict.fromkeys(on.conflicts.described(conflict) for conflict in found))
        if texts:
            more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
            raise ConflictError("; ".join(texts[:_SHOWN]) + more)

    def _added_manifests(self, base: TableMetadata, numbers: Sequence[int | None]) -> tuple[ManifestFile, ...]:
        """The added manifests, written once, and again only if assigned sequence numbers have changed."""
        key = base.format_version > 1, tuple(numbers)
        if key not in self._written:
            by_kind: dict[tuple[ManifestContent, int], list[ManifestEntry]] = defaultdict(list)
            for added, number in zip(self.change.added, numbers, strict=True):
                entry = self.added_entry(base, added.file)
                by_kind[_kind(added)].append(msgspec.structs.replace(entry, sequence_number=number))
            self._written[key] = tuple(
                manifest
                for (content, spec_id), entries in sorted(by_kind.items())
                for manifest in self.write_manifests(base, spec_id, entries, content)
            )
        return self._written[key]

    def _refused(self) -> str:
        described = describe_snapshot(self.change.source, [self._request.picked])
        return f"{self._request.refusal}: {described} cannot be replayed"

    def _hints(self) -> list[str]:
        picked, onto = self._request.picked, self._request.onto
        return [
            f'`refs.diff("{onto}", "{picked}")` shows how they differ',
            f"make that change again on a branch at `{onto}`, and merge that one",
        ]


def _kind(added: ChangedFile) -> tuple[ManifestContent, int]:
    return (ManifestContent.DATA if added.is_data else ManifestContent.DELETES), added.file.spec_id
