"""Requirements of a commit, with the names of the REST protocol, and one of our own."""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from bergline.errors import AlreadyExistsError, ConflictError
from bergline.format.encoding.integers import Int, Long
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveSnapshotRef, RemoveSnapshots, SetSnapshotRef, Update


class AssertCreate(msgspec.Struct, frozen=True, tag_field="type", tag="assert-create"):
    """The table must not exist."""


class AssertTableUuid(msgspec.Struct, frozen=True, tag_field="type", tag="assert-table-uuid"):
    """The table must be the same one, not one re-created under its name."""

    uuid: str


class AssertRefSnapshotId(msgspec.Struct, frozen=True, tag_field="type", tag="assert-ref-snapshot-id", rename="kebab"):
    """A ref must still name this snapshot; None means that the ref must not exist."""

    ref: str
    snapshot_id: Long | None = None


class AssertRefRetention(
    msgspec.Struct,
    frozen=True,
    tag_field="type",
    tag="bergline.assert-ref-retention",
    rename="kebab",
    omit_defaults=True,
):
    """A ref must still have this retention; the protocol has no such requirement."""

    ref: str
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None

    @property
    def retention(self) -> tuple[int | None, int | None, int | None]:
        """The retention in the form that a ref has."""
        return self.min_snapshots_to_keep, self.max_snapshot_age_ms, self.max_ref_age_ms


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
    | AssertRefRetention
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)


def same_table(base: TableMetadata) -> tuple[Requirement, ...]:
    """The requirement that the table is still this one; none for an old v1 table without a UUID."""
    return () if base.table_uuid is None else (AssertTableUuid(base.table_uuid),)


def same_layout(base: TableMetadata) -> tuple[AssertCurrentSchemaId, AssertDefaultSpecId]:
    """The requirements that the columns and the partitioning are those that files were written for.

    A server that checks only refs would accept files of a spec that was removed in the meantime, and the table would
    become unreadable.
    """
    return AssertCurrentSchemaId(base.current_schema_id), AssertDefaultSpecId(base.default_spec_id)


def same_retention(base: TableMetadata, updates: Iterable[Update]) -> tuple[AssertRefRetention, ...]:
    """The requirements that refs still have the retention on which the updates are based.

    An update that moves a ref sets its whole retention, so it would undo a change that its author has not seen; and
    removing a ref or snapshots may have been decided by the retention.
    """
    names: dict[str, None] = {}
    for update in updates:
        match update:
            case SetSnapshotRef(ref_name=name) | RemoveSnapshotRef(ref_name=name):
                names[name] = None
            case RemoveSnapshots():
                names |= dict.fromkeys(base.refs)
    return tuple(AssertRefRetention(name, *base.refs[name].retention) for name in names if name in base.refs)


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
            case AssertRefRetention(ref):
                known = metadata.refs.get(ref) if metadata else None
                if known is None or known.retention != requirement.retention:
                    raise ConflictError(
                        f"expected ref `{ref}` of `{table}` with {_kept(requirement.retention)}, "
                        f"found {_kept(known.retention) if known else 'no such ref'}: it was set meanwhile"
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


def _kept(retention: tuple[int | None, ...]) -> str:
    names = "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"
    given = [f"{name} {value}" for name, value in zip(names, retention, strict=True) if value is not None]
    return ", ".join(given) or "no retention of its own"
