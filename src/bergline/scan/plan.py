"""The plan of a scan or a changelog: which files, columns and rows to read. Immutable plain data."""

from collections.abc import Iterable, Sequence

import msgspec

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import Predicate, columns_of
from bergline.format.manifest.manifest import ROW_FORMATS, DataFile, FileContent, is_deletion_vector
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
    """A column compared by equality deletes, even if it has been dropped since."""

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


class FileChange(msgspec.Struct, frozen=True):
    """A data file of which a snapshot added or deleted rows, by adding, removing or keeping it with other deletes."""

    file: DataFile
    sequence_number: int
    before: tuple[DataFile, ...] | None
    """The deletes that applied to it before the snapshot; None if it was not in the table."""
    after: tuple[DataFile, ...] | None
    """The deletes that apply to it since; None if the snapshot removed it."""
    ordinal: int | None = None
    snapshot_id: int | None = None

    @property
    def may_insert(self) -> bool:
        """Whether rows of it may be new; a file that stays gets rows back only if deletes were removed."""
        return self.after is not None and (
            self.before is None or not delete_keys(self.before) <= delete_keys(self.after)
        )

    @property
    def may_delete(self) -> bool:
        """Whether rows of it may be deleted."""
        return self.before is not None and (
            self.after is None or not delete_keys(self.after) <= delete_keys(self.before)
        )


class ChangelogPlan(msgspec.Struct, frozen=True):
    """Everything that an engine needs to read changes: how to read rows, and from which files."""

    read: ScanPlan
    """The columns of the rows and the filter; no files."""
    changes: tuple[FileChange, ...]
    """In the order of the snapshots."""


def columns_to_read(plan: ScanPlan) -> Schema:
    """The requested columns, followed by those that only the filter uses."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(plan.filter)}
    extra = used - {f.name for f in plan.schema.fields}
    return Schema(fields=(*plan.schema.fields, *(f for f in table.fields if f.name in extra)))


def delete_keys(deletes: Iterable[DataFile]) -> set[tuple[str, int | None]]:
    """The identity of each delete file: several deletion vectors may share a Puffin file."""
    return {(d.file_path, d.content_offset) for d in deletes}


def check_readable(file: DataFile, location: str | None = None) -> None:
    """UnsupportedError for a file of an unknown format, and for an encrypted one; `location` is that of its table."""
    place = file.file_path if location is None else f"{file.file_path} of the table at {location}"
    if file.file_format.upper() not in ROW_FORMATS and not is_deletion_vector(file):
        raise UnsupportedError(
            f"expected a file of the format {', '.join(ROW_FORMATS)}, found `{file.file_format}` at {place}"
        )
    if file.key_metadata is not None:
        raise UnsupportedError(f"cannot read the encrypted file {place}")
