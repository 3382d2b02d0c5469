"""The plan of a scan: which files, columns and rows to read. Immutable plain data."""

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
        """The position delete files and deletion vectors among the deletes."""
        return tuple(d for d in self.deletes if d.content is FileContent.POSITION_DELETES)


class KeyColumn(msgspec.Struct, frozen=True):
    """A column compared by equality deletes, even if it was dropped since."""

    field_id: int
    path: tuple[str, ...]
    """The path of names from the top level."""
    column: NestedField
    """The top-level column, reduced to the path to this one."""

    @property
    def name(self) -> str:
        """A name for the top-level column that cannot clash with others."""
        return f"\0key-{self.field_id}"


class ScanPlan(msgspec.Struct, frozen=True):
    """Everything that an engine needs: files, columns to return, rows to keep. Immutable."""

    snapshot_id: int | None
    table_schema: Schema
    schema: Schema
    filter: Predicate
    files: Sequence[PlannedFile]
    key_columns: tuple[KeyColumn, ...] = ()
    specs: dict[int, PartitionSpec] = {}
    """The partition specs of the files, by id."""
    name_mapping: NameMapping | None = None
    """Assigns field ids to files without them."""


def columns_to_read(plan: ScanPlan) -> Schema:
    """The requested columns, followed by those that only the filter uses."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(plan.filter)}
    extra = used - {f.name for f in plan.schema.fields}
    return Schema(fields=(*plan.schema.fields, *(f for f in table.fields if f.name in extra)))
