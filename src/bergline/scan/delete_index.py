"""The delete index: which delete files apply to a data file, by partition, path and sequence number."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from bergline.errors import FormatError, UnsupportedError
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import (
    ROW_FORMATS,
    DataFile,
    FileContent,
    ManifestEntry,
    is_deletion_vector,
    partition_key,
)
from bergline.format.metadata.table_metadata import TableMetadata


class DeleteIndex:
    """The deletes of one snapshot; only later commits delete a row."""

    def __init__(self, entries: Iterable[ManifestEntry], metadata: TableMetadata) -> None:
        self._vectors: dict[str, ManifestEntry] = {}
        self._positions_by_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        self._positions: dict[Any, _BySequence] = defaultdict(_BySequence)
        self._equality: dict[Any, _BySequence] = defaultdict(_BySequence)
        self._everywhere = _BySequence()
        for entry in entries:
            self._add(entry, metadata)

    def __bool__(self) -> bool:
        return bool(
            self._vectors or self._positions_by_path or self._positions or self._equality or len(self._everywhere)
        )

    def deletes_for(self, path: str, partition: Any, sequence_number: int) -> tuple[DataFile, ...]:
        """The delete files that apply to a data file; `partition` is its partition key."""
        # spec: position deletes also apply to data files of their own commit, equality deletes only to older ones
        equality = (
            *self._everywhere.since(sequence_number + 1),
            *(self._equality[partition].since(sequence_number + 1) if partition in self._equality else ()),
        )
        if vector := self._vectors.get(path):
            _check_same_partition(vector, path, partition)
            if (vector.sequence_number or 0) < sequence_number:
                raise FormatError(
                    f"expected a deletion vector not older than its data file of number {sequence_number}, "
                    f"found number {vector.sequence_number} for {path} in {vector.data_file.file_path}"
                )
            return (vector.data_file, *equality)  # spec: a deletion vector replaces all earlier position delete files
        by_path = []
        for entry in self._positions_by_path.get(path, ()):
            _check_same_partition(entry, path, partition)
            if (entry.sequence_number or 0) >= sequence_number:
                by_path.append(entry.data_file)
        by_partition = self._positions[partition].since(sequence_number) if partition in self._positions else ()
        return (*by_path, *by_partition, *equality)

    def _add(self, entry: ManifestEntry, metadata: TableMetadata) -> None:
        delete = entry.data_file
        if is_deletion_vector(delete):
            self._add_vector(entry)
        elif delete.file_format not in ROW_FORMATS:
            raise UnsupportedError(
                f"expected a delete file of the format {', '.join(ROW_FORMATS)}, "
                f"found `{delete.file_format}` at {delete.file_path}"
            )
        elif delete.content is FileContent.POSITION_DELETES:
            path = only_data_file(delete)
            if path is None:
                self._positions[partition_key(delete)].add(entry)
            else:
                self._positions_by_path[path].append(entry)
        elif delete.content is FileContent.EQUALITY_DELETES:
            whole = metadata.specs_by_id[delete.spec_id].is_unpartitioned
            (self._everywhere if whole else self._equality[partition_key(delete)]).add(entry)
        else:
            raise FormatError(f"expected delete files in a delete manifest, found the data file {delete.file_path}")

    def _add_vector(self, entry: ManifestEntry) -> None:
        delete = entry.data_file
        path = delete.referenced_data_file
        if path is None or delete.content_offset is None or delete.content_size_in_bytes is None:
            raise FormatError(
                f"expected a data file, an offset and a size for a deletion vector, found none in {delete.file_path}"
            )
        if path in self._vectors:
            raise FormatError(
                f"expected one deletion vector for {path}, "
                f"found {self._vectors[path].data_file.file_path} and {delete.file_path}"
            )
        self._vectors[path] = entry


class _BySequence:
    """Deletes ordered by sequence number."""

    def __init__(self) -> None:
        self._entries: list[ManifestEntry] = []
        self._sorted: tuple[list[int], list[DataFile]] | None = None
        self._known: dict[int, tuple[DataFile, ...]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: ManifestEntry) -> None:
        """Add a delete file; all are added before the first lookup."""
        self._entries.append(entry)

    def since(self, sequence_number: int) -> tuple[DataFile, ...]:
        """The deletes with this sequence number or a later one; many data files share the result."""
        if self._sorted is None:
            ordered = sorted(self._entries, key=lambda e: e.sequence_number or 0)
            self._sorted = [e.sequence_number or 0 for e in ordered], [e.data_file for e in ordered]
        numbers, files = self._sorted
        start = bisect_left(numbers, sequence_number)
        if start not in self._known:
            self._known[start] = tuple(files[start:])
        return self._known[start]


def _check_same_partition(delete: ManifestEntry, path: str, partition: Any) -> None:
    if partition_key(delete.data_file) != partition:
        raise FormatError(
            f"expected the spec and partition of its data file {path}, found others for {delete.data_file.file_path}"
        )
