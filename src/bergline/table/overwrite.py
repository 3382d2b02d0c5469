"""Overwrite: remove files from a branch and add others, in one snapshot."""

from collections.abc import Callable, Mapping, Sequence

from bergline.errors import UnsupportedError
from bergline.format.inheritance import deleted_entry, existing_entry
from bergline.format.manifest import DataFile, ManifestContent, ManifestFile
from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN
from bergline.format.snapshot import Operation, Snapshot
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.append import AddedFiles
from bergline.table.produce import Draft, SnapshotProducer

_Filtered = tuple[tuple[ManifestFile, ...], tuple[DataFile, ...]]


class Overwrite(SnapshotProducer):
    """Removes the files that `removes` picks; manifests that hold none of them are kept as they are."""

    conflicts_in_meaning = True

    def __init__(
        self,
        io: FileIO,
        files: Sequence[DataFile],
        removes: Callable[[DataFile], bool],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(io, branch, summary or {}, new_files=files)
        self._added = AddedFiles(self, files)
        self._removes = removes
        self._filtered: dict[tuple[ManifestFile, int], _Filtered] = {}

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """The added files, and the parent's manifests without the removed ones."""
        added = self._added.manifests(base)
        kept: list[ManifestFile] = []
        removed: list[DataFile] = []
        replaced = 0
        for manifest in load_manifest_list(self._io, parent) if parent else []:
            if not manifest.has_live_files:
                continue
            if manifest.content is ManifestContent.DELETES:
                raise UnsupportedError(f"branch `{self._branch}` has delete files, and bergline cannot remove them yet")
            filtered, gone = self._filter(base, manifest)
            kept += filtered if gone else [manifest]
            removed += gone
            replaced += bool(gone)
        return Draft(
            Operation.OVERWRITE if self._added.files else Operation.DELETE,
            (*added, *kept),
            added=tuple(self._added.files),
            removed=tuple(removed),
            summary={"manifests-replaced": str(replaced)},
        )

    def _filter(
        self, base: TableMetadata, manifest: ManifestFile
    ) -> tuple[tuple[ManifestFile, ...], tuple[DataFile, ...]]:
        """The manifest without the removed files, written once for each source, and those files."""
        # commits in between may have given row ids to the manifest, and upgrades want numbers in it that v1 leaves out
        key = manifest, base.format_version
        known = self._filtered.get(key)
        if known is None:
            live = [e for e in load_entries(self._io, manifest, base) if e.is_live]
            gone = tuple(e.data_file for e in live if self._removes(e.data_file))
            entries = [
                deleted_entry(e, self.snapshot_id) if self._removes(e.data_file) else existing_entry(e) for e in live
            ]
            rewritten = self.write_manifests(base, manifest.partition_spec_id, entries) if gone else ()
            known = self._filtered[key] = (rewritten, gone)
        return known
