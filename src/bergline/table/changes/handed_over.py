"""Files that a caller hands over: deleted if their commit certainly failed, unless the table needs them."""

from collections.abc import Sequence

from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_lists
from bergline.table.commits.operation import Change, CommitStamp, Operation
from bergline.table.manifests.given_files import live_at


class HandedOver:
    """An operation that adds given files, and has them deleted where it fails.

    Those that a snapshot of the table names, as it was last loaded, stay: who hands over a file that is live already
    makes a mistake, and the table must not lose it.
    """

    def __init__(self, operation: Operation, io: FileIO, files: Sequence[DataFile], loaded: TableMetadata) -> None:
        self._operation = operation
        self._io = io
        self._paths = list({f.file_path: None for f in files})  # a Puffin file holds several vectors
        self._loaded = loaded

    @property
    def needs_validation(self) -> bool:
        """Whether the operation can become wrong."""
        return self._operation.needs_validation

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The operation's change."""
        self._loaded = base
        return self._operation.attempt(base, stamp)

    def committed(self, metadata: TableMetadata) -> None:
        """Remove what only losing attempts wrote."""
        self._operation.committed(metadata)

    def abandoned(self) -> None:
        """Remove everything that the operation wrote, and the files."""
        self._operation.abandoned()
        lists = load_manifest_lists(self._io, self._loaded.snapshots)
        manifests = {m.manifest_path: m for manifests in lists for m in manifests}
        needed = {path for path, _ in live_at(self._io, manifests.values(), self._paths)}
        self._io.delete([path for path in self._paths if path not in needed])


def handed_over(
    operation: Operation, io: FileIO, files: Sequence[DataFile], loaded: TableMetadata, *, discard_on_failure: bool
) -> Operation:
    """The operation as it is, or with files that are discarded where it fails."""
    return HandedOver(operation, io, files, loaded) if discard_on_failure else operation
