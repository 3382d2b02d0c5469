"""What must still hold when a commit is applied; the words are those of the REST protocol."""

from typing import assert_never

import msgspec

from bergline.errors import AlreadyExistsError, ConflictError
from bergline.format.metadata import TableMetadata


class AssertCreate(msgspec.Struct, frozen=True, tag_field="type", tag="assert-create"):
    """The table must not exist."""


class AssertTableUuid(msgspec.Struct, frozen=True, tag_field="type", tag="assert-table-uuid"):
    """The table must still be the same table, not one re-created under its name."""

    uuid: str


class AssertRefSnapshotId(msgspec.Struct, frozen=True, tag_field="type", tag="assert-ref-snapshot-id", rename="kebab"):
    """A ref must still name this snapshot; None means that the ref must not exist."""

    ref: str
    snapshot_id: int | None


Requirement = AssertCreate | AssertTableUuid | AssertRefSnapshotId


def check_requirements(metadata: TableMetadata | None, requirements: tuple[Requirement, ...], table: str) -> None:
    """Raise ConflictError for the first requirement that no longer holds."""
    for requirement in requirements:
        match requirement:
            case AssertCreate():
                if metadata is not None:
                    raise AlreadyExistsError(f"table `{table}` exists already", kind="table", name=table)
            case AssertTableUuid(uuid):
                found = metadata.table_uuid if metadata else None
                if found is None or found.lower() != uuid.lower():
                    raise ConflictError(
                        f"expected table `{table}` with uuid {uuid}, found {found}: "
                        "it was dropped or re-created meanwhile"
                    )
            case AssertRefSnapshotId(ref, snapshot_id):
                known = metadata.refs.get(ref) if metadata else None
                if (known.snapshot_id if known else None) != snapshot_id:
                    raise ConflictError(
                        f"expected ref `{ref}` of `{table}` at {_place(snapshot_id)}, "
                        f"found it at {_place(known.snapshot_id if known else None)}"
                    )
            case _:
                assert_never(requirement)


def _place(snapshot_id: int | None) -> str:
    return "no snapshot" if snapshot_id is None else f"snapshot {snapshot_id}"
