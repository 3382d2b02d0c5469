"""Overwrite: remove files from a branch and add others, in one snapshot."""

from collections.abc import Iterable, Mapping, Sequence

from bergline.format.manifest import DataFile
from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN
from bergline.format.snapshot import Operation, Snapshot
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.table.append import AddedFiles
from bergline.table.filtering import ManifestFilter
from bergline.table.produce import Draft, SnapshotProducer
from bergline.table.removal import Removal


class Overwrite(SnapshotProducer):
    """The added files, and the parent's without the removed ones."""

    conflicts_in_meaning = True

    def __init__(
        self,
        io: FileIO,
        files: Sequence[DataFile],
        removals: Iterable[Removal],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(io, branch, summary or {}, new_files=files)
        self._added = AddedFiles(self, files)
        self._filter = ManifestFilter(io, self, removals)

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """New manifests, then the parent's without the removed files."""
        added = self._added.manifests(base)
        filtered = self._filter.apply(base, load_manifest_list(self._io, parent) if parent else [], added=added)
        return Draft(
            Operation.OVERWRITE if self._added.files else Operation.DELETE,
            (*added, *filtered.manifests),
            added=tuple(self._added.files),
            removed=filtered.removed,
            replaced=filtered.replaced,
        )
