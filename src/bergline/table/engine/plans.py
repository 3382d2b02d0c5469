"""What a row engine is to do: frozen plans, small enough to travel to executors.

In format version 3 rows that move keep their ids, and the sequence number of the commit that changed them last.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile, is_deletion_vector
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.parquet.write.write_spec import WriteSpec, delete_write_spec, write_spec
from bergline.scan.plan import PlannedFile, ScanPlan

GRANULARITY: Final = "write.delete.granularity"
GRANULARITIES: Final = ("file", "partition")
_FIRST_WITH_DELETES: Final = 2
_FIRST_WITH_VECTORS: Final = 3


class RewriteGroup(msgspec.Struct, frozen=True):
    """Data files whose rows are written together."""

    files: tuple[PlannedFile, ...]
    write: WriteSpec
    partition: tuple[Any, ...] | None = None
    """The partition that all rows stay in; None if each row goes to the one that the write spec gives it."""
    without: dict[str, PositionSet] = {}
    """Positions of rows that are left out, by the path of their data file."""


class RewritePlan(msgspec.Struct, frozen=True):
    """Data files to be written again, without the rows that deletes apply to."""

    read: ScanPlan
    """How rows are read: all columns to be written, no filter, no files."""
    groups: tuple[RewriteGroup, ...]
    delete_where: Predicate | None = None
    """Rows for which it is true are left out, and files that hold none of them stay as they are."""

    @property
    def data_location(self) -> str:
        """Where the new files go."""
        return self.groups[0].write.data_location


class DeleteFileSpec(msgspec.Struct, frozen=True):
    """How deleted positions are written."""

    write: WriteSpec
    kind: Literal["vector", "file", "partition"]
    """Deletion vectors, or position delete files of a data file each or of a partition each."""
    partitioning: dict[int, tuple[PartitionSpec, Schema]] = {}
    """The partition specs of the data files, by id, with the schema that names their directories."""

    def taken_over(self, planned: PlannedFile) -> tuple[DataFile, ...]:
        """The delete files whose positions in a data file go into the new one.

        A deletion vector hides position delete files, so it must hold what they say.
        """
        return planned.position_deletes if self.kind == "vector" else self.replaced(planned)

    def replaced(self, planned: PlannedFile) -> tuple[DataFile, ...]:
        """The delete files that the new one takes the place of; those of a partition stay for other data files."""
        if self.kind == "partition":
            return ()
        deletes = planned.position_deletes
        return tuple(d for d in deletes if is_deletion_vector(d) or only_data_file(d) is not None)


class DeletedPositions(msgspec.Struct, frozen=True):
    """Rows of a data file that are deleted now; those that were deleted before are in its delete files."""

    planned: PlannedFile
    positions: PositionSet


class KnownDeletePlan(msgspec.Struct, frozen=True):
    """Rows to be deleted where they are, whose positions are known."""

    deleted: tuple[DeletedPositions, ...]
    write: DeleteFileSpec

    @property
    def data_location(self) -> str:
        """Where the new files go."""
        return self.write.write.data_location


class PositionDeletePlan(msgspec.Struct, frozen=True):
    """Rows to be deleted where they are: those that match a filter and are not deleted yet."""

    read: ScanPlan
    """How they are found: by the filter, as positions; no files."""
    files: tuple[PlannedFile, ...]
    write: DeleteFileSpec

    @property
    def data_location(self) -> str:
        """Where the new files go."""
        return self.write.write.data_location


def plan_copy_on_write(metadata: TableMetadata, plan: ScanPlan, files: Iterable[PlannedFile]) -> RewritePlan:
    """Rewrite some files of a scan without the rows that match its filter, in the table's own layout."""
    read = _all_rows(metadata, plan)
    # where no row matches, it does not matter whether one could be written
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


def plan_rewrite(
    metadata: TableMetadata, plan: ScanPlan, groups: Iterable[tuple[PlannedFile, ...]], target_size: int | None = None
) -> RewritePlan:
    """Rewrite files of a scan, those of a partition together, which they stay in, to files of a target size."""
    read, write = _all_rows(metadata, plan), write_spec(metadata)
    size = max(target_size or write.target_file_size, 1)
    write = msgspec.structs.replace(write, schema=read.schema, target_file_size=size)
    return RewritePlan(
        read,
        tuple(
            RewriteGroup(
                files,
                msgspec.structs.replace(write, spec=metadata.specs_by_id[files[0].file.spec_id]),
                files[0].file.partition,
            )
            for files in groups
        ),
    )


def plan_position_deletes(
    metadata: TableMetadata, plan: ScanPlan, files: Iterable[PlannedFile] | None = None
) -> PositionDeletePlan:
    """Delete the rows of a scan, or of some of its files, by position, as the table's format version has it."""
    chosen = tuple(plan.files if files is None else files)
    return PositionDeletePlan(
        msgspec.structs.replace(plan, schema=Schema(fields=(POS,)), files=()),
        chosen,
        _delete_file_spec(metadata, chosen),
    )


def plan_known_deletes(metadata: TableMetadata, deleted: Iterable[DeletedPositions]) -> KnownDeletePlan:
    """Delete rows at known positions, as the table's format version has it."""
    deleted = tuple(deleted)
    return KnownDeletePlan(deleted, _delete_file_spec(metadata, [d.planned for d in deleted]))


def granularity(metadata: TableMetadata) -> Literal["file", "partition"]:
    """Whether a position delete file is about one data file or about a partition."""
    checked = check_granularity(GRANULARITY, metadata.properties.get(GRANULARITY, GRANULARITIES[0]))
    return "file" if checked == GRANULARITIES[0] else "partition"


def check_granularity(key: str, value: str) -> str:
    """The granularity of this name, in any case."""
    if value.lower() not in GRANULARITIES:
        raise InvalidInputError(f"expected {' or '.join(GRANULARITIES)} for property `{key}`, found `{value}`")
    return value.lower()


def _delete_file_spec(metadata: TableMetadata, files: Iterable[PlannedFile]) -> DeleteFileSpec:
    if metadata.format_version < _FIRST_WITH_DELETES:
        raise UnsupportedError(f"expected format version 2 or higher to delete rows, found {metadata.format_version}")
    specs = [metadata.specs_by_id[spec_id] for spec_id in sorted({p.file.spec_id for p in files})]
    is_vector = metadata.format_version >= _FIRST_WITH_VECTORS
    return DeleteFileSpec(
        delete_write_spec(metadata),
        "vector" if is_vector else granularity(metadata),
        {spec.spec_id: (spec, metadata.schema_for(spec)) for spec in specs},
    )


def _all_rows(metadata: TableMetadata, plan: ScanPlan) -> ScanPlan:
    """The scan with every row and every column, in format version 3 with those that keep a row's identity."""
    schema = metadata.schema
    if metadata.format_version >= ROW_LINEAGE_VERSION:
        fields = (*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        schema = Schema(fields=fields, schema_id=schema.schema_id)
    return msgspec.structs.replace(plan, schema=schema, filter=ALWAYS_TRUE, files=())
