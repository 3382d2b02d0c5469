"""The plan of a read: which files, which columns, which rows. Plain data, fixed for good."""

from collections.abc import Sequence

import msgspec

from bergline.expressions.predicate import Predicate, columns_of
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.name_mapping import NameMapping
from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField


class PlannedFile(msgspec.Struct, frozen=True):
    """A data file to read, the sequence number of its rows, and the delete files that apply to them."""

    file: DataFile
    sequence_number: int
    deletes: tuple[DataFile, ...] = ()

    @property
    def position_deletes(self) -> tuple[DataFile, ...]:
        """Those of the delete files that name rows by their positions."""
        return tuple(d for d in self.deletes if d.content is FileContent.POSITION_DELETES)


class KeyColumn(msgspec.Struct, frozen=True):
    """A column that equality deletes compare, also if it was dropped since."""

    field_id: int
    path: tuple[str, ...]
    """Its name after those of the structs around it."""
    column: NestedField
    """The top-level column, with nothing inside it but the way to this one."""

    @property
    def name(self) -> str:
        """A name for the top-level column that no other can have."""
        return f"\0key-{self.field_id}"


class ScanPlan(msgspec.Struct, frozen=True):
    """Everything an engine needs: files, the columns to return, the rows to keep. Fixed for good."""

    snapshot_id: int | None
    table_schema: Schema
    schema: Schema
    filter: Predicate
    files: Sequence[PlannedFile]
    key_columns: tuple[KeyColumn, ...] = ()
    specs: dict[int, PartitionSpec] = {}
    """The partition specs of the files, by id."""
    name_mapping: NameMapping | None = None
    """Field ids for files that have none."""


def columns_to_read(plan: ScanPlan) -> Schema:
    """The columns asked for, and after them those that only the filter looks at."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(plan.filter)}
    extra = used - {f.name for f in plan.schema.fields}
    return Schema(fields=(*plan.schema.fields, *(f for f in table.fields if f.name in extra)))
