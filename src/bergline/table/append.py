"""Append: add files to a branch. Conflicts with nothing."""

from collections.abc import Mapping, Sequence

from bergline.format.manifest import DataFile, ManifestFile
from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN
from bergline.format.snapshot import Operation, Snapshot
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.table.produce import Draft, SnapshotProducer


class Append(SnapshotProducer):
    """New manifests, then all manifests of the parent as they are."""

    def __init__(
        self, io: FileIO, files: Sequence[DataFile], *, branch: str = MAIN, summary: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(io, branch, summary or {}, new_files=files)
        self._added = AddedFiles(self, files)

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The added files in front of what is there."""
        carried_forward = load_manifest_list(self._io, parent) if parent else []
        return Draft(Operation.APPEND, (*self._added.manifests(base), *carried_forward), added=tuple(self._added.files))


class AddedFiles:
    """New files and their manifests: for each partition spec, written on the first attempt, the same ever after."""

    def __init__(self, producer: SnapshotProducer, files: Sequence[DataFile]) -> None:
        self.files = files
        self._producer = producer
        self._written: tuple[ManifestFile, ...] | None = None

    def manifests(self, base: TableMetadata) -> tuple[ManifestFile, ...]:
        """The manifests that name the files."""
        if self._written is None:
            spec_ids = sorted({f.spec_id for f in self.files})
            self._written = tuple(
                manifest
                for spec_id in spec_ids
                for manifest in self._producer.write_manifests(
                    base, spec_id, [self._producer.added_entry(base, f) for f in self.files if f.spec_id == spec_id]
                )
            )
        return self._written
