"""Create a branch at the head of `main`; on a table without snapshots, with an empty snapshot of its own."""

import msgspec

from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN
from bergline.format.updates import SetSnapshotRef
from bergline.io.fileio import FileIO
from bergline.table.changes.append import Append
from bergline.table.commits.operation import Change, CommitStamp, MetadataOperation
from bergline.table.references.ref_changes import Retention


class StartBranch(Append):
    """`create` is the plain creation of the ref, for a table that has a `main`."""

    def __init__(self, io: FileIO, name: str, retention: Retention, create: MetadataOperation) -> None:
        super().__init__(io, [], branch=name)
        self._retention = retention
        self._create = create

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The plain creation, or an empty snapshot that the branch names while `main` stays absent."""
        if self.has_landed(base):
            return Change()
        if MAIN in base.refs or self._branch in base.refs:
            return self._create.attempt(base, stamp)
        self._create.check_seen(base)
        change = super().attempt(base, stamp)
        given = self._retention.given()
        updates = tuple(
            msgspec.structs.replace(u, **given) if isinstance(u, SetSnapshotRef) else u for u in change.updates
        )
        return msgspec.structs.replace(change, updates=updates)

    def committed(self, metadata: TableMetadata) -> None:
        """Remove what only losing attempts wrote: everything, if the creation was plain in the end."""
        if self.snapshot_id in metadata.snapshots_by_id:
            super().committed(metadata)
        else:
            self.abandoned()
