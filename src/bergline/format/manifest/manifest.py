"""The model of manifests and manifest lists: files, manifest entries, and manifests."""

import math
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

import msgspec

from bergline.format.types.types import StructType

ROW_FORMATS: Final = ("PARQUET", "ORC", "AVRO")
"""The formats of files with rows; deletion vectors are in Puffin files."""


class FileContent(IntEnum):
    """What a file contains: data, position deletes or equality deletes."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class ManifestContent(IntEnum):
    """Whether a manifest lists data files or delete files."""

    DATA = 0
    DELETES = 1


class EntryStatus(IntEnum):
    """What the snapshot that wrote the manifest did with a file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class DataFile(msgspec.Struct, frozen=True):
    """One data or delete file; `partition` holds values in the order of the spec's fields."""

    file_path: str
    file_format: str
    partition: tuple[Any, ...]
    record_count: int
    file_size_in_bytes: int
    content: FileContent = FileContent.DATA
    spec_id: int = 0
    column_sizes: dict[int, int] | None = None
    value_counts: dict[int, int] | None = None
    null_value_counts: dict[int, int] | None = None
    nan_value_counts: dict[int, int] | None = None
    lower_bounds: dict[int, bytes] | None = None
    upper_bounds: dict[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    referenced_data_file: str | None = None
    first_row_id: int | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    physical_schema: StructType | None = None
    """The columns as stored in the file, if our writer or the manifest recorded them (see `physical_schema`)."""


def is_deletion_vector(file: DataFile) -> bool:
    """Whether a delete file is a deletion vector in a Puffin file."""
    return file.file_format == "PUFFIN" and file.content is FileContent.POSITION_DELETES


def partition_key(file: DataFile) -> tuple[Any, ...]:
    """A hashable key of a file's partition in which NaN equals NaN."""
    return partition_key_of(file.spec_id, file.partition)


def partition_key_of(spec_id: int, values: Iterable[Any]) -> tuple[Any, ...]:
    """The key of a partition with these values of a spec."""
    return spec_id, *("NaN" if isinstance(v, float) and math.isnan(v) else (v,) for v in values)


class ManifestEntry(msgspec.Struct, frozen=True):
    """A row of a manifest; null sequence numbers are inherited from the manifest list (see `inheritance`)."""

    status: EntryStatus
    data_file: DataFile
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the snapshot."""
        return self.status is not EntryStatus.DELETED


class FieldSummary(msgspec.Struct, frozen=True):
    """The value range of one partition field in a manifest, in single-value encoding."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


MANIFEST_COUNTS: Final = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)
"""The columns of a manifest list that v1 may omit."""


class ManifestFile(msgspec.Struct, frozen=True, dict=True):
    """A row of a manifest list; null sequence numbers are not assigned yet and are never written."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: ManifestContent
    added_snapshot_id: int
    sequence_number: int | None = None
    min_sequence_number: int | None = None
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    @property
    def has_live_files(self) -> bool:
        """Whether any entry may be live; true if the counts are unknown."""
        return self.added_files_count != 0 or self.existing_files_count != 0
