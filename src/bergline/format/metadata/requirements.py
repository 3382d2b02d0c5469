"""Requirements of a commit, with the names of the REST protocol."""

from typing import assert_never

import msgspec

from bergline.errors import AlreadyExistsError, ConflictError
from bergline.format.encoding.integers import Int, Long
from bergline.format.metadata.table_metadata import TableMetadata


class AssertCreate(msgspec.Struct, frozen=True, tag_field="type", tag="assert-create"):
    """The table must not exist."""


class AssertTableUuid(msgspec.Struct, frozen=True, tag_field="type", tag="assert-table-uuid"):
    """The table must be the same one, not one re-created under its name."""

    uuid: str


class AssertRefSnapshotId(msgspec.Struct, frozen=True, tag_field="type", tag="assert-ref-snapshot-id", rename="kebab"):
    """A ref must still name this snapshot; None means that the ref must not exist."""

    ref: str
    snapshot_id: Long | None = None


class AssertLastAssignedFieldId(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-last-assigned-field-id", rename="kebab"
):
    """No other commit may have added columns."""

    last_assigned_field_id: Int


class AssertCurrentSchemaId(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-current-schema-id", rename="kebab"
):
    """The current schema must still be this one."""

    current_schema_id: Int


class AssertLastAssignedPartitionId(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-last-assigned-partition-id", rename="kebab"
):
    """No other commit may have added partition fields."""

    last_assigned_partition_id: Int


class AssertDefaultSpecId(msgspec.Struct, frozen=True, tag_field="type", tag="assert-default-spec-id", rename="kebab"):
    """The default partition spec must still be this one."""

    default_spec_id: Int


class AssertDefaultSortOrderId(
    msgspec.Struct, frozen=True, tag_field="type", tag="assert-default-sort-order-id", rename="kebab"
):
    """The default sort order must still be this one."""

    default_sort_order_id: Int


Requirement = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def same_table(base: TableMetadata) -> tuple[Requirement, ...]:
    """The requirement that the table is still this one; none for an old v1 table without a UUID."""
    return () if base.table_uuid is None else (AssertTableUuid(base.table_uuid),)


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
            case AssertLastAssignedFieldId(expected):
                _check_number(table, "last column id", expected, metadata, "last_column_id")
            case AssertCurrentSchemaId(expected):
                _check_number(table, "current schema", expected, metadata, "current_schema_id")
            case AssertLastAssignedPartitionId(expected):
                _check_number(table, "last partition field id", expected, metadata, "last_partition_id")
            case AssertDefaultSpecId(expected):
                _check_number(table, "default partition spec", expected, metadata, "default_spec_id")
            case AssertDefaultSortOrderId(expected):
                _check_number(table, "default sort order", expected, metadata, "default_sort_order_id")
            case _:
                assert_never(requirement)


def _check_number(table: str, what: str, expected: int, metadata: TableMetadata | None, field: str) -> None:
    found = None if metadata is None else getattr(metadata, field)
    if found != expected:
        raise ConflictError(f"expected the {what} of `{table}` to be {expected}, found {found}: it changed meanwhile")


def _place(snapshot_id: int | None) -> str:
    return "no snapshot" if snapshot_id is None else f"snapshot {snapshot_id}"
