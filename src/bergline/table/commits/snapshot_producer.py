"""A snapshot in the making: manifests written once, a manifest list for each attempt."""

import secrets
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bergline.catalog.metadata_files import metadata_directory
from bergline.catalog.table_locations import FILES_ELSEWHERE, is_outside
from bergline.datafiles.write.write_spec import check_not_encrypted
from bergline.errors import ConflictError
from bergline.format.manifest.avro import render_manifest_list, render_manifests
from bergline.format.manifest.inheritance import added_entry, assign_numbers, assign_row_ids
from bergline.format.manifest.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from bergline.format.manifest.summary import describe_manifest
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.metadata.requirements import AssertRefSnapshotId, same_layout, same_table
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation, summarize
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata, positive_property
from bergline.format.metadata.updates import AddSnapshot, SetProperties, set_ref
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.io.locations import join, normalized
from bergline.scan.manifest_cache import keep_written_entries
from bergline.scan.manifests import keep_manifest_list, load_manifest_list, spec_of, with_counts
from bergline.table.commits.branches import branch_head, check_branch_exists
from bergline.table.commits.layout_check import check_written_columns
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.manifests.external_files import ExternalFiles
from bergline.table.manifests.merging import DEFAULT_MANIFEST_SIZE, ManifestMerger


class Draft(msgspec.Struct, frozen=True):
    """What a snapshot will hold: its manifests, and the files that it adds and removes."""

    operation: SnapshotOperation
    manifests: tuple[ManifestFile, ...]
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    replaced: int = 0
    """How many manifests of the parent were written anew."""
    rewritten: tuple[DataFile, ...] = ()
    """Those of the removed files whose rows are in the added ones."""
    summary: Mapping[str, str] = {}


class SnapshotProducer:
    """Base class of operations that add a snapshot, whose id is the same in all attempts."""

    needs_validation = False
    can_rebase = False
    """Whether it means the same on whatever head the branch has: nothing is looked up in the base."""

    def __init__(
        self,
        io: FileIO,
        branch: str,
        summary: Mapping[str, str],
        *,
        files: Sequence[DataFile] = (),
        discard_on_failure: bool = False,
        merges: bool = True,
        starts_branch: bool = True,
        written_schema: Schema | None = None,
        snapshot_id: int | None = None,
        seen_snapshots: frozenset[int] | None = None,
    ) -> None:
        """`files` are to be added; they are checked, unless they were written for this (`discard_on_failure`).

        With `merges`, small manifests of the parent are merged, and those without live files are left out. With
        `starts_branch`, a branch that does not exist is created at the head of `main`. `written_schema` is the schema
        that the rows were written with, if this operation wrote them. `seen_snapshots` are those that the table had
        when the caller checked the files, if that was done.
        """
        check_ref_name(branch)
        # a Puffin file holds several vectors
        self._discarded = list({f.file_path: None for f in files}) if discard_on_failure else []
        self._given = ExternalFiles(io, () if discard_on_failure else files, branch, seen_snapshots)
        self._io = io
        self._branch = branch
        self._merges = merges
        self._starts_branch = starts_branch
        self._written_schema = written_schema
        self._summary = dict(summary)
        self.snapshot_id = snapshot_id or secrets.randbits(63) or 1
        self._commit_uuid = uuid.uuid4()
        self._earlier: Mapping[int, int | None] = {}
        self.snapshot: Snapshot | None = None
        """The one of the last attempt; once the outcome is known, the one that landed."""
        self._made: dict[int, tuple[Snapshot, frozenset[str]]] = {}
        """The snapshots by attempt, each with the files that were written for it and that it needs."""
        self._lists: list[str] = []
        self._manifests: dict[str, PartitionSpec] = {}
        self._merger = ManifestMerger(io, self)

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The snapshot's content on this parent; manifests that depend on nothing are written only once."""
        raise NotImplementedError

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """Draft the snapshot on the branch's head, number it, write its manifest list."""
        check_not_encrypted(base)
        if self._written_schema is not None:
            check_written_columns(self._written_schema, base.schema)
        if not self._starts_branch:
            check_branch_exists(base, self._branch)
        self._earlier = stamp.earlier
        ref = base.refs.get(self._branch)
        parent = branch_head(base, self._branch)
        self._given.check(base, parent)
        draft = self._merged(base, self.draft(base, parent))
        check_specs(base, draft.manifests, self._manifests)
        self.snapshot = snapshot = self._write_snapshot(base, parent, draft, stamp)
        needed = (self._lists[-1], *(m.manifest_path for m in draft.manifests if m.manifest_path in self._manifests))
        self._made[stamp.attempt] = snapshot, frozenset(map(normalized, needed))
        moved = (
            msgspec.structs.replace(ref, snapshot_id=self.snapshot_id)
            if ref
            else SnapshotRef(self.snapshot_id, SnapshotRefType.BRANCH)
        )
        outside = FILES_ELSEWHERE not in base.properties and is_outside(base, (f.file_path for f in draft.added))
        mark = (SetProperties({FILES_ELSEWHERE: "true"}),) if outside else ()
        return Change(
            updates=(AddSnapshot(snapshot), set_ref(self._branch, moved), *mark),
            requirements=(*same_table(base), *same_layout(base), *_held(base, self._branch, parent)),
            rewritten=frozenset([f.file_path for f in draft.rewritten]),
            can_rebase=self.can_rebase,
        )

    def settled(self, landed: Landed | None) -> None:
        """Delete the manifest lists and manifests that the attempt which landed does not use.

        If it made no snapshot, or none landed, all of them are deleted, and with `discard_on_failure` the files, too.
        """
        written = (*self._lists, *self._manifests)
        if landed is None or landed.attempt not in self._made:
            self.snapshot = None
            self._io.delete([*written, *self._discarded])
            return
        # the files of a snapshot that has expired since are left to expiry: later snapshots may need them
        self.snapshot, needed = self._made[landed.attempt]
        own = landed.metadata.snapshots_by_id.get(self.snapshot_id)
        if own is not None and own.manifest_list is not None and normalized(own.manifest_list) not in needed:
            # the catalog put the snapshot on another head, with a list of its own
            self.snapshot = own
            needed = frozenset(normalized(m.manifest_path) for m in load_manifest_list(self._io, own))
        self._io.delete([f for f in written if normalized(f) not in needed])

    def write_manifests(
        self,
        base: TableMetadata,
        spec_id: int,
        entries: Sequence[ManifestEntry],
        content: ManifestContent = ManifestContent.DATA,
    ) -> tuple[ManifestFile, ...]:
        """Write entries to one manifest, or to several if it would grow too large."""
        spec = spec_to_write(base, spec_id)
        schema = base.schema_for(spec)
        rendered = render_manifests(
            entries,
            schema,
            spec,
            format_version=base.format_version,
            content=content,
            target_size=positive_property(base, "commit.manifest.target-size-bytes", DEFAULT_MANIFEST_SIZE),
        )
        manifests = []
        for data, inside in rendered:
            location = join(metadata_directory(base), f"{self._commit_uuid}-m{len(self._manifests)}.avro")
            self._manifests[location] = spec
            self._io.create(location, data)
            keep_written_entries(self._io, location, inside)
            manifests.append(
                describe_manifest(
                    location,
                    len(data),
                    inside,
                    spec=spec,
                    schema=schema,
                    content=content,
                    snapshot_id=self.snapshot_id,
                )
            )
        return tuple(manifests)

    def added_entry(self, base: TableMetadata, file: DataFile) -> ManifestEntry:
        """The entry of a file that this snapshot adds."""
        return added_entry(file, self.snapshot_id if base.format_version == 1 else None)

    def _merged(self, base: TableMetadata, draft: Draft) -> Draft:
        if not self._merges:
            return draft
        live = [m for m in draft.manifests if m.has_live_files or m.added_snapshot_id == self.snapshot_id]
        merged = self._merger.merge(base, live)
        return msgspec.structs.replace(draft, manifests=merged.manifests, replaced=draft.replaced + merged.replaced)

    def _write_snapshot(
        self, base: TableMetadata, parent: Snapshot | None, draft: Draft, stamp: CommitStamp
    ) -> Snapshot:
        version = base.format_version
        sequence_number = base.next_sequence_number
        manifests = assign_numbers(draft.manifests, self.snapshot_id, sequence_number)
        if version > 1:
            manifests = [with_counts(self._io, m) for m in manifests]
        first_row_id = added_rows = None
        if version >= ROW_LINEAGE_VERSION:
            first_row_id = base.next_row_id
            manifests, added_rows = assign_row_ids(manifests, first_row_id)
        location = join(metadata_directory(base), f"snap-{self.snapshot_id}-{stamp.attempt}-{self._commit_uuid}.avro")
        parent_id = parent.snapshot_id if parent else None
        data = render_manifest_list(
            manifests,
            self.snapshot_id,
            parent_id,
            sequence_number,
            format_version=version,
            first_row_id=first_row_id,
        )
        self._lists.append(location)
        self._io.create(location, data)
        if version > 1:  # v1 lists leave out what a reader then fills in
            keep_manifest_list(self._io, location, manifests)
        created = sum(m.added_snapshot_id == self.snapshot_id for m in manifests)
        counts = {
            "manifests-created": str(created),
            "manifests-kept": str(len(manifests) - created),
            "manifests-replaced": str(draft.replaced),
        }
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
                partition_limit=positive_property(base, "write.summary.partition-limit", 0),
                partition_path=lambda f: _partition_path(base, f),
            ),
            schema_id=base.current_schema_id,
            first_row_id=first_row_id,
            added_rows=added_rows,
        )


def _partition_path(base: TableMetadata, file: DataFile) -> str:
    spec = base.specs_by_id[file.spec_id]
    return spec.partition_path(base.schema_for(spec), file.partition)


def _held(base: TableMetadata, branch: str, parent: Snapshot | None) -> Iterator[AssertRefSnapshotId]:
    """Requirements that refs stay where they are: the branch, and `main` if the branch begins at its head.

    Otherwise `main` might be overwritten, and the parent of the new snapshot expired together with its files.
    """
    ref = base.refs.get(branch)
    yield AssertRefSnapshotId(branch, ref.snapshot_id if ref else None)
    if ref is None and branch != MAIN:
        yield AssertRefSnapshotId(MAIN, parent.snapshot_id if parent else None)


def spec_to_write(base: TableMetadata, spec_id: int) -> PartitionSpec:
    """The partition spec that files were written with; ConflictError if the table no longer has it."""
    spec = base.specs_by_id.get(spec_id)
    if spec is None:
        raise _removed(base, spec_id)
    return spec


def check_specs(base: TableMetadata, manifests: Iterable[ManifestFile], written: Mapping[str, PartitionSpec]) -> None:
    """Refuse a list that no reader could follow.

    `written` has the spec of each manifest that was written for the snapshot, by path: if it went or became another one
    between two attempts that is a ConflictError. A manifest of the parent without spec is a FormatError.
    """
    for manifest in manifests:
        spec = written.get(manifest.manifest_path)
        if spec is None:
            spec_of(manifest, base)
        elif base.specs_by_id.get(spec.spec_id) != spec:
            raise _removed(base, spec.spec_id)


def _removed(base: TableMetadata, spec_id: int) -> ConflictError:
    return ConflictError(
        f"expected partition spec {spec_id}, for which files were written, found it removed meanwhile: "
        f"there are {sorted(base.specs_by_id)} as they are now",
        hints=["load the table again, and write the rows again"],
    )
