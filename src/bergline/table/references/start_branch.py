"""Create a branch at the head of `main`; on a table without snapshots, with an empty snapshot of its own."""

from collections.abc import Callable

import msgspec

from bergline.format.metadata import TableMetadata
from bergline.format.refs import MAIN
from bergline.format.requirements import same_table
from bergline.format.updates import SetSnapshotRef
from bergline.io.fileio import FileIO
from bergline.table.changes.append import Append
from bergline.table.commits.operation import Change, CommitStamp
from bergline.table.references.ref_changes import Retention


class StartBranch(Append):
    """`create` is the plain creation of the ref, for a table that has a `main`."""

    def __init__(self, io: FileIO, name: str, retention: Retention, create: Callable[[TableMetadata], Change]) -> None:
        super().__init__(io, [], branch=name)
        self._retention = retention
        self._create = create

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The plain creation, or an empty snapshot that the branch names while `main` stays absent."""
        if MAIN in base.refs or self._branch in base.refs:
            change = self._create(base)
            return msgspec.structs.replace(change, requirements=(*same_table(base), *change.requirements))
        change = super().attempt(base, stamp)
        given = self._retention.given()
        updates = tuple(
            msgspec.structs.replace(u, **given) if isinstance(u, SetSnapshotRef) else u for u in change.updates
        )
        return msgspec.structs.replace(change, updates=updates)
