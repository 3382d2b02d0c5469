"""Operations that create a branch or a tag, for one table or for several."""

from collections.abc import Callable

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.metadata import TableMetadata
from bergline.format.refs import SnapshotRefType, check_ref_name
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.ref_changes import Retention, create_ref, existing_ref, place_of
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
        replaced = place_of(self.name) if self.or_replace else lambda _: None
        create = MetadataOperation(self._creation(at), overwrites=replaced)
        if at is None and self.kind is SnapshotRefType.BRANCH:
            return StartBranch(io, self.name, self.retention, create)
        return create

    def _creation(self, at: Place | None) -> Callable[[TableMetadata], Change]:
        def create(base: TableMetadata) -> Change:
            check_ref_name(self.name)
            if self.if_not_exists and self.name in base.refs:
                existing_ref(base, self.name, self.kind)  # what is wanted is there only if it is of this kind
                return Change()
            snapshot_id = None if at is None else snapshot_at(base, at)
            return create_ref(base, self.name, self.kind, snapshot_id, self.retention, or_replace=self.or_replace)

        return create
