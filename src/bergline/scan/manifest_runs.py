"""Scans planned in independent runs of manifests, in this process or in tasks of an engine."""

from collections.abc import Iterator, Sequence

import msgspec

from bergline.expressions.predicate import Predicate
from bergline.format.manifest.manifest import ManifestContent, ManifestEntry, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.applicable_deletes import applicable_deletes
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifests import live_entries, load_manifest_list, spec_of
from bergline.scan.plan import KeyColumn, ScanPlan, check_readable
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.planner import check_groups_readable, file_groups, key_columns, with_deletes
from bergline.scan.pruning import Pruning

_ENTRY_BYTES = 40
"""The minimum size of an entry in a compressed manifest, for lists that do not count entries."""


class FrozenScan(msgspec.Struct, frozen=True):
    """A scan of one snapshot, with everything needed to plan any of its data manifests."""

    metadata: TableMetadata
    """Without history: only schemas and specs are needed."""
    table_schema: Schema
    filter: Predicate
    """Bound to the schema."""
    deletes: tuple[ManifestFile, ...]
    """The delete manifests of the snapshot that may matter."""
    delete_entries: tuple[ManifestEntry, ...] | None = None
    """Their live entries, if they have already been read."""

    def plan(self, io: FileIO, run: Sequence[ManifestFile]) -> PlannedFiles:
        """The matching files of some data manifests, with the deletes that apply to each."""
        groups = file_groups(io, run, self.metadata, Pruning(self.filter, self.table_schema))
        check_groups_readable(groups, self.metadata)
        deletes = self.delete_entries
        if deletes is None:
            deletes = tuple(applicable_deletes(io, self.deletes, self.metadata, groups))
        index = DeleteIndex(deletes, self.metadata)
        files = PlannedFiles([with_deletes(group, index) for group in groups])
        for delete in {id(d): d for group in files.groups for applied in group.deletes for d in applied}.values():
            check_readable(delete, self.metadata.location)
        return files

    def keys(self, files: PlannedFiles) -> tuple[KeyColumn, ...]:
        """The columns that the equality deletes of files compare."""
        applied = {id(d): d for group in files.groups for deletes in group.deletes for d in deletes}
        return key_columns(self.metadata, {i for d in applied.values() for i in d.equality_ids or ()})


def freeze_scan(io: FileIO, metadata: TableMetadata, plan: ScanPlan) -> tuple[FrozenScan, list[ManifestFile]]:
    """The scan that a plan without files describes, and the data manifests in which it may find files."""
    if plan.snapshot_id is None:
        manifests: list[ManifestFile] = []
    else:
        manifests = [m for m in load_manifest_list(io, metadata.snapshot(plan.snapshot_id)) if m.has_live_files]
    pruning = Pruning(plan.filter, plan.table_schema)
    matching = [m for m in manifests if pruning.may_match_manifest(m, spec_of(m, metadata))]
    bare = msgspec.structs.replace(
        metadata,
        current_snapshot_id=None,
        refs={},
        snapshots=(),
        statistics=(),
        partition_statistics=(),
        snapshot_log=(),
        metadata_log=(),
    )
    deletes = tuple(m for m in matching if m.content is ManifestContent.DELETES)
    frozen = FrozenScan(bare, plan.table_schema, plan.filter, deletes)
    return frozen, [m for m in matching if m.content is ManifestContent.DATA]


def read_deletes(io: FileIO, scan: FrozenScan) -> FrozenScan:
    """The same scan with the entries of its delete manifests."""
    return msgspec.structs.replace(scan, delete_entries=tuple(live_entries(io, scan.deletes, scan.metadata)))


def files_in(manifest: ManifestFile) -> int:
    """How many live files a manifest has; a guess if its list does not say."""
    counts = manifest.added_files_count, manifest.existing_files_count
    return manifest.manifest_length // _ENTRY_BYTES if None in counts else sum(count or 0 for count in counts)


def runs_of(manifests: Sequence[ManifestFile], files: int) -> Iterator[tuple[ManifestFile, ...]]:
    """The manifests in runs of about this many files, in order; a larger manifest is a run by itself."""
    run: list[ManifestFile] = []
    size = 0
    for manifest in manifests:
        if run and size + files_in(manifest) > files:
            yield tuple(run)
            run, size = [], 0
        run.append(manifest)
        size += files_in(manifest)
    if run:
        yield tuple(run)
