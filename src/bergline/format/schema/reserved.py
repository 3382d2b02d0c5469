"""Columns with ids and names reserved by the specification.

A table's own columns have ids up to MAX_COLUMN_ID; the ids above are reserved and the same in every table.
"""

from typing import Final

from bergline.format.types.types import BOOLEAN, INT, LONG, STRING, NestedField, StructType

MAX_COLUMN_ID: Final = 2147483447

FILE: Final = NestedField(2147483646, "_file", True, STRING, "Path of the file in which a row is stored")
POS: Final = NestedField(2147483645, "_pos", True, LONG, "Ordinal position of a row in the source data file")
DELETED: Final = NestedField(2147483644, "_deleted", True, BOOLEAN, "Whether the row has been deleted")
SPEC_ID: Final = NestedField(2147483643, "_spec_id", True, INT, "Spec ID used to track the file containing a row")
PARTITION_ID: Final = 2147483642
DELETE_FILE_PATH: Final = NestedField(
    2147483546, "file_path", True, STRING, "Path of a file in which a deleted row is stored"
)
DELETE_POS: Final = NestedField(2147483545, "pos", True, LONG, "Ordinal position of a deleted row in the data file")
DELETE_ROW_ID: Final = 2147483544
CHANGE_TYPE: Final = NestedField(2147483543, "_change_type", True, STRING, "Record type in changelog")
CHANGE_ORDINAL: Final = NestedField(2147483542, "_change_ordinal", False, INT, "Change ordinal in changelog")
COMMIT_SNAPSHOT_ID: Final = NestedField(2147483541, "_commit_snapshot_id", False, LONG, "Commit snapshot ID")
ROW_ID: Final = NestedField(2147483540, "_row_id", False, LONG, "Implicit row ID that is automatically assigned")
LAST_UPDATED_SEQUENCE_NUMBER: Final = NestedField(
    2147483539, "_last_updated_sequence_number", False, LONG, "Sequence number when the row was last updated"
)

METADATA_COLUMNS: Final = {f.name: f for f in (FILE, POS, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)}
"""The metadata columns of scans by name; `_partition` is another, whose type depends on the table."""

PARTITION: Final = "_partition"

RESERVED_IDS: Final = frozenset(
    (
        *(f.id for f in METADATA_COLUMNS.values()),
        *(PARTITION_ID, DELETE_FILE_PATH.id, DELETE_POS.id, DELETE_ROW_ID),
        *(CHANGE_TYPE.id, CHANGE_ORDINAL.id, COMMIT_SNAPSHOT_ID.id),
    )
)


def partition_column(partition: StructType) -> NestedField:
    """The `_partition` column of a table; `partition` is the union of the fields of all its specs."""
    return NestedField(PARTITION_ID, PARTITION, False, partition, "Partition to which a row belongs to")


def is_metadata_column(name: str) -> bool:
    """Whether a name, up to its first dot, is that of a metadata column."""
    first = name.partition(".")[0]
    return first in METADATA_COLUMNS or first == PARTITION
