"""Operations that create a branch or a tag, for one table or for several."""

from collections.abc import Callable

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.metadata import TableMetadata
from bergline.format.refs import SnapshotRefType
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.ref_changes import Retention, create_ref
from bergline.table.references.start_branch import StartBranch
from bergline.table.version import Place, snapshot_at


class NewRef(msgspec.Struct, frozen=True):
    """What is wanted: a ref with its retention, and what is to happen where there is one of that name."""

    name: str
    kind: SnapshotRefType
    retention: Retention
    if_not_exists: bool = False
    or_replace: bool = False

    def __post_init__(self) -> None:
        if self.if_not_exists and self.or_replace:
            raise InvalidInputError("expected one of if_not_exists and or_replace, found both")

    def operation(self, io: FileIO, at: Place | None) -> Operation:
        """The ref at a place, by default the head of `main`; a branch of an empty table gets an empty snapshot."""
        create = self._at(at)
        if at is None and self.kind is SnapshotRefType.BRANCH:
            return StartBranch(io, self.name, self.retention, create)
        return MetadataOperation(create)

    def _at(self, at: Place | None) -> Callable[[TableMetadata], Change]:
        return lambda base: create_ref(
            base,
            self.name,
            self.kind,
            None if at is None else snapshot_at(base, at),
            self.retention,
            if_not_exists=self.if_not_exists,
            or_replace=self.or_replace,
        )
