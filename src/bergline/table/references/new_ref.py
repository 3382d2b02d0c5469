"""Operations that create a branch or a tag, for one table or for several."""

from collections.abc import Callable

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN, SnapshotRefType, check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetSnapshotRef
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, CommitStamp, MetadataOperation, Operation
from bergline.table.operations.append import Append
from bergline.table.references.ref_changes import Retention, create_ref, existing_ref, head_of
from bergline.table.scans.version import SnapshotChoice, snapshot_at


class NewRef(msgspec.Struct, frozen=True):
    """A requested ref with its retention, and what happens if one of that name exists."""

    name: str
    kind: SnapshotRefType
    retention: Retention
    if_not_exists: bool = False
    or_replace: bool = False

    def __post_init__(self) -> None:
        if self.if_not_exists and self.or_replace:
            raise InvalidInputError("expected one of if_not_exists and or_replace, found both")

    def operation(self, io: FileIO, at: SnapshotChoice | None) -> Operation:
        """The ref at a snapshot, by default the head of `main`; a branch of an empty table gets an empty snapshot."""
        replaced = head_of(self.name) if self.or_replace else lambda _: None
        create = MetadataOperation(self._creation(at), overwrites=replaced)
        if at is None and self.kind is SnapshotRefType.BRANCH:
            return StartBranch(io, self.name, self.retention, create)
        return create

    def _creation(self, at: SnapshotChoice | None) -> Callable[[TableMetadata], Change]:
        def create(base: TableMetadata) -> Change:
            check_ref_name(self.name)
            if self.if_not_exists and self.name in base.refs:
                existing_ref(base, self.name, self.kind)  # an existing ref counts only if it is of the same kind
                return Change()
            snapshot_id = None if at is None else snapshot_at(base, at)
            return create_ref(base, self.name, self.kind, snapshot_id, self.retention, or_replace=self.or_replace)

        return create


class StartBranch(Append):
    """Creates a branch of an empty table; `create` is the plain creation, for a table that has a `main`."""

    def __init__(self, io: FileIO, name: str, retention: Retention, create: MetadataOperation) -> None:
        super().__init__(io, [], branch=name)
        self._retention = retention
        self._create = create

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The plain creation, or an empty snapshot for the branch while `main` stays absent."""
        if MAIN in base.refs or self._branch in base.refs:
            return self._create.attempt(base, stamp)
        self._create.check_unchanged(base)
        change = super().attempt(base, stamp)
        given = self._retention.given()
        updates = tuple(
            msgspec.structs.replace(u, **given) if isinstance(u, SetSnapshotRef) else u for u in change.updates
        )
        return msgspec.structs.replace(change, updates=updates, can_rebase=False)
