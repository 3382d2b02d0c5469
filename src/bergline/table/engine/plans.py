"""Frozen plans of what a row engine should do, small enough to be sent to executors.

In format version 3 rows that move keep their ids, and the sequence number of the commit that changed them last.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from bergline.datafiles.write.write_spec import WriteSpec, delete_write_spec, write_spec
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile, is_deletion_vector, partition_key, partition_key_of
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.partition.sort_order import UNSORTED, SortOrder
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.table.engine.file_groups import packed
from bergline.table.engine.z_order import ZOrder

GRANULARITY: Final = "write.delete.granularity"
GRANULARITIES: Final = ("file", "partition")
_LOOKBACK: Final = 10
_FIRST_WITH_DELETES: Final = 2
_FIRST_WITH_VECTORS: Final = 3


RowOrder = SortOrder | ZOrder


class RewriteGroup(msgspec.Struct, frozen=True):
    """Data files whose rows are written together."""

    files: tuple[PlannedFile, ...]
    write: WriteSpec
    partition: tuple[Any, ...] | None = None
    """The partition in which all rows stay; None if the write spec decides for each row."""
    split_size: int | None = None
    """How many bytes one task reads to write a file; None for the whole group."""
    order: RowOrder | None = None
    """How to sort rows within the group; None if they stay in the order of their files."""
    sorted_files: int = 1
    """Into how many files sorted rows are divided, by ranges."""
    without: dict[str, PositionSet] = {}
    """Positions of rows that are left out, by the path of their data file."""

    @property
    def splits(self) -> "list[RewriteGroup]":
        """Parts of the group that become about one file each; files are not split."""
        if self.split_size is None:
            return [self]
        parts = packed(self.files, _read_size, self.split_size, lookback=_LOOKBACK)
        return [msgspec.structs.replace(self, files=tuple(files)) for files in parts]


class RewritePlan(msgspec.Struct, frozen=True):
    """Data files to be rewritten without their deleted rows."""

    read: ScanPlan
    """How to read rows: all columns to be written, no filter, no files."""
    groups: tuple[RewriteGroup, ...]
    delete_where: Predicate | None = None
    """Rows for which it is true are left out; files without such rows stay as they are."""
    groups_at_a_time: int | None = None
    """How many groups may be rewritten at the same time; None lets the engine decide."""

    @property
    def data_location(self) -> str:
        """Where the new files go."""
        return self.groups[0].write.data_location


class DeleteFileSpec(msgspec.Struct, frozen=True):
    """How to write deleted positions."""

    write: WriteSpec
    kind: Literal["vector", "file", "partition"]
    """Deletion vectors, or position delete files for a data file or a partition each."""
    partitioning: dict[int, tuple[PartitionSpec, Schema]] = {}
    """The partition specs of the data files, by id, with the schema that names their directories."""

    def taken_over(self, planned: PlannedFile) -> tuple[DataFile, ...]:
        """The delete files whose positions in a data file are copied to the new one.

        A deletion vector hides position delete files, so it must contain their positions.
        """
        return planned.position_deletes if self.kind == "vector" else self.replaced(planned)

    def replaced(self, planned: PlannedFile) -> tuple[DataFile, ...]:
        """The delete files that the new one replaces; those of a partition stay for other data files."""
        if self.kind == "partition":
            return ()
        deletes = planned.position_deletes
        return tuple(d for d in deletes if is_deletion_vector(d) or only_data_file(d) is not None)


class DeletedPositions(msgspec.Struct, frozen=True):
    """Rows of a data file to delete now; rows deleted earlier are in its delete files."""

    planned: PlannedFile
    positions: PositionSet


class KnownDeletePlan(msgspec.Struct, frozen=True):
    """Rows to be deleted by position, with known positions."""

    deleted: tuple[DeletedPositions, ...]
    write: DeleteFileSpec

    @property
    def data_location(self) -> str:
        """Where the new files go."""
        return self.write.write.data_location


class DeleteJoin(msgspec.Struct, frozen=True):
    """Position delete files to be merged: data files, each with the delete files to read for it."""

    files: tuple[PlannedFile, ...]
    write: DeleteFileSpec


class PositionDeletePlan(msgspec.Struct, frozen=True):
    """Rows to be deleted by position: those that match a filter and are not deleted yet."""

    read: ScanPlan
    """How to find them: the filter, columns for positions, no files."""
    files: tuple[PlannedFile, ...]
    write: DeleteFileSpec

    @property
    def data_location(self) -> str:
        """Where the new files go."""
        return self.write.write.data_location


def plan_copy_on_write(metadata: TableMetadata, plan: ScanPlan, files: Iterable[PlannedFile]) -> RewritePlan:
    """Rewrite some files of a scan without the rows that match its filter, in the table's own layout."""
    read = _all_rows(metadata, plan)
    # if no row matches, nothing is written, so it does not matter whether the types are writable
    write = msgspec.structs.replace(write_spec(metadata, check_types=False), schema=read.schema)
    group = RewriteGroup(tuple(files), write)
    return RewritePlan(read, (group,), plan.filter)


def plan_rewrite_without(metadata: TableMetadata, plan: ScanPlan, deleted: Iterable[DeletedPositions]) -> RewritePlan:
    """Rewrite some files of a scan without the rows at known positions, in the table's own layout."""
    read, deleted = _all_rows(metadata, plan), tuple(deleted)
    write = msgspec.structs.replace(write_spec(metadata), schema=read.schema)
    group = RewriteGroup(
        tuple(d.planned for d in deleted),
        write,
        without={d.planned.file.file_path: d.positions for d in deleted},
    )
    return RewritePlan(read, (group,))


class GroupLayout(msgspec.Struct, frozen=True):
    """Data files to be rewritten together, and how."""

    files: tuple[PlannedFile, ...]
    largest_file: int | None = None
    """The size at which a new file ends; None for the table's target size."""
    split_size: int | None = None
    spec_id: int | None = None
    """The partition spec of the new files; None keeps that of the files, and rows in their partition."""
    order: RowOrder | None = None
    sorted_files: int = 1

    @property
    def size(self) -> int:
        """The number of bytes to read."""
        return sum(planned.file.file_size_in_bytes for planned in self.files)

    @property
    def moves_rows(self) -> bool:
        """Whether rows may move to a partition other than that of their file."""
        return self.spec_id is not None and {partition_key(p.file) for p in self.files} != {
            partition_key_of(self.spec_id, self.files[0].file.partition)
        }


def plan_rewrite(
    metadata: TableMetadata,
    plan: ScanPlan,
    groups: Iterable[GroupLayout],
    groups_at_a_time: int | None = None,
) -> RewritePlan:
    """Rewrite files of a scan in groups."""
    read, write = _all_rows(metadata, plan), write_spec(metadata)
    write = msgspec.structs.replace(write, schema=read.schema)
    return RewritePlan(
        read, tuple(_group(metadata, write, layout) for layout in groups), groups_at_a_time=groups_at_a_time
    )


def _group(metadata: TableMetadata, write: WriteSpec, layout: GroupLayout) -> RewriteGroup:
    first = layout.files[0].file
    spec_id = first.spec_id if layout.spec_id is None else layout.spec_id
    return RewriteGroup(
        layout.files,
        msgspec.structs.replace(
            write,
            spec=metadata.specs_by_id[spec_id],
            target_file_size=max(layout.largest_file or write.target_file_size, 1),
            sort_order_id=_sort_order_id(metadata, layout.order),
        ),
        None if layout.moves_rows else first.partition,
        layout.split_size,
        layout.order,
        layout.sorted_files,
    )


def _sort_order_id(metadata: TableMetadata, order: RowOrder | None) -> int:
    """The id of the table's sort order that matches the new files; 0 if there is none."""
    wanted = order.fields if isinstance(order, SortOrder) else ()
    return next((o.order_id for o in metadata.sort_orders if wanted and o.fields == wanted), UNSORTED.order_id)


def _read_size(planned: PlannedFile) -> int:
    deletes = (d.content_size_in_bytes or d.file_size_in_bytes for d in planned.deletes)
    return planned.file.file_size_in_bytes + sum(deletes)


def plan_position_deletes(
    metadata: TableMetadata, plan: ScanPlan, files: Iterable[PlannedFile] | None = None
) -> PositionDeletePlan:
    """Delete the rows of a scan, or of some of its files, by position, in the way of the table's format version."""
    chosen = tuple(plan.files if files is None else files)
    return PositionDeletePlan(
        msgspec.structs.replace(plan, schema=Schema(fields=(POS,)), files=()),
        chosen,
        delete_file_spec(metadata, {p.file.spec_id for p in chosen}),
    )


def delete_file_spec(metadata: TableMetadata, spec_ids: Iterable[int]) -> DeleteFileSpec:
    """How to write positions for the partition specs of some data files, in the way of the table's format version."""
    if metadata.format_version < _FIRST_WITH_DELETES:
        raise UnsupportedError(f"expected format version 2 or higher to delete rows, found {metadata.format_version}")
    specs = [metadata.specs_by_id[spec_id] for spec_id in sorted(spec_ids)]
    is_vector = metadata.format_version >= _FIRST_WITH_VECTORS
    return DeleteFileSpec(
        delete_write_spec(metadata),
        "vector" if is_vector else granularity(metadata),
        {spec.spec_id: (spec, metadata.schema_for(spec)) for spec in specs},
    )


def plan_known_deletes(metadata: TableMetadata, deleted: Iterable[DeletedPositions]) -> KnownDeletePlan:
    """Delete rows at known positions, in the way of the table's format version."""
    deleted = tuple(deleted)
    return KnownDeletePlan(deleted, delete_file_spec(metadata, {d.planned.file.spec_id for d in deleted}))


def granularity(metadata: TableMetadata) -> Literal["file", "partition"]:
    """Whether a position delete file covers one data file or a partition."""
    checked = check_granularity(GRANULARITY, metadata.properties.get(GRANULARITY, GRANULARITIES[0]))
    return "file" if checked == GRANULARITIES[0] else "partition"


def check_granularity(key: str, value: str) -> str:
    """The granularity with this name, ignoring case."""
    if value.lower() not in GRANULARITIES:
        raise InvalidInputError(f"expected {' or '.join(GRANULARITIES)} for property `{key}`, found `{value}`")
    return value.lower()


def _all_rows(metadata: TableMetadata, plan: ScanPlan) -> ScanPlan:
    """The scan with every row and column; in format version 3, including the columns with a row's identity."""
    schema = metadata.schema
    if metadata.format_version >= ROW_LINEAGE_VERSION:
        fields = (*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        schema = Schema(fields=fields, schema_id=schema.schema_id)
    return msgspec.structs.replace(plan, schema=schema, filter=ALWAYS_TRUE, files=())
