"""A snapshot in the making: manifests written once, a manifest list for each attempt."""

import secrets
import uuid
from collections.abc import Mapping, Sequence

import msgspec

from bergline.catalog.metadata_files import metadata_directory
from bergline.errors import RefusedError
from bergline.format.inheritance import assign_numbers
from bergline.format.manifest import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.manifest_avro import render_manifest, render_manifest_list, summarize_partitions
from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.requirements import AssertRefSnapshotId, same_table
from bergline.format.snapshot import Operation, Snapshot, summarize
from bergline.format.updates import AddSnapshot, set_ref
from bergline.io.fileio import FileIO
from bergline.io.locations import join, normalized
from bergline.scan.manifests import load_manifest_list
from bergline.table.operation import Change, CommitStamp


class Draft(msgspec.Struct, frozen=True):
    """What a snapshot will hold: its manifests, and the files that it adds and removes."""

    operation: Operation
    manifests: tuple[ManifestFile, ...]
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    summary: Mapping[str, str] = {}


class SnapshotProducer:
    """Base of the operations that add a snapshot; the snapshot id is the same in all attempts."""

    conflicts_in_meaning = False

    def __init__(self, io: FileIO, branch: str, summary: Mapping[str, str]) -> None:
        check_ref_name(branch)
        self._io = io
        self._branch = branch
        self._summary = dict(summary)
        self.snapshot_id = secrets.randbits(63) or 1
        self._commit_uuid = uuid.uuid4()
        self._lists: list[str] = []
        self._manifests: list[str] = []

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The snapshot's content on this parent; manifests that depend on nothing are written only once."""
        raise NotImplementedError

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Draft the snapshot on the branch's head, number it, write its manifest list."""
        if self.snapshot_id in base.snapshots_by_id:
            return Change()  # an earlier attempt landed after all
        ref = base.refs.get(self._branch)
        check_writable(ref, self._branch)
        parent = base.head(self._branch if ref else MAIN)
        draft = self.draft(base, parent)
        snapshot = self._write_snapshot(base, parent, draft, stamp)
        moved = (
            msgspec.structs.replace(ref, snapshot_id=self.snapshot_id)
            if ref
            else SnapshotRef(self.snapshot_id, SnapshotRefType.BRANCH)
        )
        return Change(
            updates=(AddSnapshot(snapshot), set_ref(self._branch, moved)),
            requirements=(
                *same_table(base),
                AssertRefSnapshotId(self._branch, ref.snapshot_id if ref else None),
            ),
        )

    def committed(self, metadata: TableMetadata) -> None:
        """Delete the lists of losing attempts and manifests that the snapshot does not use."""
        snapshot = metadata.snapshots_by_id.get(self.snapshot_id)
        if snapshot is None or snapshot.manifest_list is None:
            return
        used = {normalized(snapshot.manifest_list)}
        if len(self._lists) > 1:  # a single attempt wrote nothing in vain
            used |= {normalized(m.manifest_path) for m in load_manifest_list(self._io, snapshot)}
            self._io.delete([f for f in (*self._lists, *self._manifests) if normalized(f) not in used])

    def abandoned(self) -> None:
        """Delete every list and manifest."""
        self._io.delete([*self._lists, *self._manifests])

    def write_manifest(self, base: TableMetadata, spec_id: int, entries: Sequence[ManifestEntry]) -> ManifestFile:
        """Write a data manifest; its own number stays open until a manifest list gives it one."""
        spec = base.specs_by_id[spec_id]
        location = join(metadata_directory(base), f"{self._commit_uuid}-m{len(self._manifests)}.avro")
        schema = base.schema_for(spec)
        data = render_manifest(entries, schema, spec)
        self._manifests.append(location)
        self._io.create(location, data)
        by_status = {s: [e.data_file.record_count for e in entries if e.status is s] for s in EntryStatus}
        numbers = [e.sequence_number for e in entries if e.is_live and e.sequence_number is not None]
        return ManifestFile(
            manifest_path=location,
            manifest_length=len(data),
            partition_spec_id=spec_id,
            content=ManifestContent.DATA,
            added_snapshot_id=self.snapshot_id,
            min_sequence_number=min(numbers, default=None),
            added_files_count=len(by_status[EntryStatus.ADDED]),
            existing_files_count=len(by_status[EntryStatus.EXISTING]),
            deleted_files_count=len(by_status[EntryStatus.DELETED]),
            added_rows_count=sum(by_status[EntryStatus.ADDED]),
            existing_rows_count=sum(by_status[EntryStatus.EXISTING]),
            deleted_rows_count=sum(by_status[EntryStatus.DELETED]),
            partitions=summarize_partitions(entries, spec.partition_type(schema)),
        )

    def _write_snapshot(
        self, base: TableMetadata, parent: Snapshot | None, draft: Draft, stamp: CommitStamp
    ) -> Snapshot:
        sequence_number = base.next_sequence_number
        manifests = assign_numbers(draft.manifests, self.snapshot_id, sequence_number)
        location = join(metadata_directory(base), f"snap-{self.snapshot_id}-{stamp.attempt}-{self._commit_uuid}.avro")
        parent_id = parent.snapshot_id if parent else None
        self._lists.append(location)
        self._io.create(location, render_manifest_list(manifests, self.snapshot_id, parent_id, sequence_number))
        created = sum(m.added_snapshot_id == self.snapshot_id for m in manifests)
        counts = {"manifests-created": str(created), "manifests-kept": str(len(manifests) - created)}
        return Snapshot(
            snapshot_id=self.snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            timestamp_ms=max(stamp.now_ms, base.last_updated_ms),
            manifest_list=location,
            summary=summarize(
                draft.operation,
                draft.added,
                draft.removed,
                parent.summary if parent else None,
                {**self._summary, **counts, **draft.summary},
            ),
            schema_id=base.current_schema_id,
        )


def check_writable(ref: SnapshotRef | None, name: str) -> None:
    """Refuse tags: they do not move."""
    if ref is not None and not ref.is_branch:
        raise RefusedError(
            f"cannot write to `{name}`: it is a tag, and tags do not move",
            hints=["write to a branch, or replace the tag"],
        )
