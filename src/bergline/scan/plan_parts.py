"""Scans planned in parts: a range of a snapshot's manifests at a time, for plan tasks."""

from collections.abc import Sequence

from bergline.expressions.bound_filter import BoundFilter
from bergline.format.manifest.manifest import ManifestContent, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.applicable_deletes import applicable_deletes
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifests import load_manifest_list, spec_of
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.planner import added_groups, append_manifests, bound_on, file_groups, with_deletes
from bergline.scan.pruning import Pruning
from bergline.scan.restrictions import check_rows_readable


class PlanParts:
    """A scan of a snapshot, or of what appends added; manifests are identified by their index, which never changes."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        *,
        snapshot_id: int | None,
        appends: Sequence[int] | None = None,
        schema: Schema,
        row_filter: BoundFilter,
    ) -> None:
        check_rows_readable(metadata)
        self._io = io
        self._metadata = metadata
        self._appends = appends
        self._pruning = Pruning(bound_on(row_filter, schema), schema)
        manifests: list[ManifestFile] = []
        if appends is not None:
            manifests = append_manifests(io, metadata, appends)
        elif snapshot_id is not None:
            manifests = [m for m in load_manifest_list(io, metadata.snapshot(snapshot_id)) if m.has_live_files]
        self._data = [m for m in manifests if m.content is ManifestContent.DATA]
        self._deletes = [m for m in manifests if m.content is ManifestContent.DELETES]

    def __len__(self) -> int:
        """The number of data manifests."""
        return len(self._data)

    def files_at(self, index: int) -> int | None:
        """How many files a manifest may add to the plan; None if that is unknown without reading it."""
        manifest = self._data[index]
        if not self._may_match(manifest):
            return 0
        counts = manifest.added_files_count, manifest.existing_files_count
        return None if None in counts else sum(count or 0 for count in counts)

    def files(self, start: int, stop: int) -> PlannedFiles:
        """The matching files of a range of manifests, without their deletes."""
        run = self._data[start:stop]
        if self._appends is not None:
            return PlannedFiles(added_groups(self._io, run, self._metadata, self._pruning, self._appends))
        return PlannedFiles(file_groups(self._io, run, self._metadata, self._pruning))

    def with_deletes(self, files: PlannedFiles) -> PlannedFiles:
        """Some files with the deletes that apply to each."""
        if not self._deletes or not len(files):
            return files
        # spec: deletes apply to data files of their own partition, unless they are of an unpartitioned spec
        manifests = [m for m in self._deletes if self._may_match(m)]
        index = DeleteIndex(applicable_deletes(self._io, manifests, self._metadata, files.groups), self._metadata)
        return PlannedFiles([with_deletes(group, index) for group in files.groups])

    def _may_match(self, manifest: ManifestFile) -> bool:
        return self._pruning.may_match_manifest(manifest, spec_of(manifest, self._metadata))
