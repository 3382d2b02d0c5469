"""Overwrite: remove files from a branch and add others, in one snapshot."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.table.commits.history_window import EVERYTHING, Scope
from bergline.table.commits.isolation import Isolation
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.commits.validate import Validation
from bergline.table.manifests.external_files import check_removed
from bergline.table.manifests.filtering import ManifestFilter
from bergline.table.manifests.removal import Removal
from bergline.table.operations.append import AddedFiles


class OverwriteChecks(msgspec.Struct, frozen=True):
    """What others must not have committed since the snapshot that an overwrite looked at."""

    since: int | None
    isolation: Isolation | None
    """None allows all that loses no rows."""
    scope: Scope = EVERYTHING
    """The rows that it looked at."""
    removed: tuple[DataFile, ...] | None = None
    """The data files that it removes by name; None if it removes whatever is in the scope."""
    rewritten: tuple[DataFile, ...] = ()
    """Those of which it adds the rows that stay: deletes of others would be lost with the old file."""
    updated: tuple[DataFile, ...] = ()
    """Those with new versions of their rows among the added ones: nobody may have deleted rows of them."""

    def run(self, validation: Validation) -> None:
        """ConflictError names the snapshot that came first."""
        if self.removed is not None:
            validation.check_data_files_exist([f.file_path for f in self.removed], also_deleted=True)
        validation.check_no_new_deletes_for((*self.rewritten, *self.updated))
        if self.isolation is Isolation.SERIALIZABLE:
            validation.check_no_new_data(self.scope)
        if self.isolation is not None and self.removed is None:
            validation.check_no_new_delete_files(self.scope)
            validation.check_no_removed_data(self.scope)


class Overwrite(SnapshotProducer):
    """The added files, and the parent's without the removed ones."""

    needs_validation = True

    def __init__(
        self,
        io: FileIO,
        files: Sequence[DataFile],
        removals: Iterable[Removal],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        checks: OverwriteChecks | None = None,
        discard_on_failure: bool = False,
        starts_branch: bool = True,
        written_schema: Schema | None = None,
        rewritten: Sequence[DataFile] | None = None,
    ) -> None:
        """`rewritten` are the data files whose rows are in the added ones, by default those that the checks name."""
        super().__init__(
            io,
            branch,
            summary or {},
            files=files,
            discard_on_failure=discard_on_failure,
            starts_branch=starts_branch,
            written_schema=written_schema,
        )
        self._added = AddedFiles(self, files)
        self._filter = ManifestFilter(io, self, removals)
        self._checks = checks
        self._rewritten = tuple(rewritten if rewritten is not None else checks.rewritten if checks else ())
        self._are_known = False

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """New manifests, then the parent's without the removed files."""
        if self._checks is not None:
            self._check_removed(base, parent)
            since, branch, earlier = self._checks.since, self._branch, self._earlier
            self._checks.run(Validation(self._io, base, parent, since=since, branch=branch, earlier=earlier))
        added = self._added.manifests(base)
        filtered = self._filter.apply(base, load_manifest_list(self._io, parent) if parent else [], added=added)
        return Draft(
            SnapshotOperation.OVERWRITE if self._added.files else SnapshotOperation.DELETE,
            (*added, *filtered.manifests),
            added=tuple(self._added.files),
            removed=filtered.removed,
            replaced=filtered.replaced,
            rewritten=self._rewritten,
        )

    def _check_removed(self, base: TableMetadata, parent: Snapshot | None) -> None:
        if self._checks is not None and self._checks.removed and not self._are_known:
            heads = (parent, base.snapshots_by_id.get(self._checks.since or 0))
            check_removed(self._io, base, heads, self._checks.removed, self._branch)
            self._are_known = True
