"""Which delete files apply to which data files, by partition, path and sequence number."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from bergline.errors import UnsupportedError
from bergline.format.deletes import only_data_file
from bergline.format.manifest import DataFile, FileContent, ManifestEntry, partition_key
from bergline.format.metadata import TableMetadata


class DeleteIndex:
    """Deletes of one snapshot; rows are deleted only by commits that came after them."""

    def __init__(self, entries: Iterable[ManifestEntry], metadata: TableMetadata) -> None:
        self._by_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        self._by_partition: dict[Any, list[ManifestEntry]] = defaultdict(list)
        self._everywhere: list[ManifestEntry] = []
        for entry in entries:
            self._add(entry, metadata)

    def deletes_for(self, entry: ManifestEntry) -> tuple[DataFile, ...]:
        """The delete files that apply to a data file."""
        data = entry.data_file
        by_path = self._by_path.get(data.file_path, ())
        by_partition = self._by_partition.get(partition_key(data), ())
        return tuple(d.data_file for d in (*by_path, *by_partition, *self._everywhere) if _comes_after(d, entry))

    def _add(self, entry: ManifestEntry, metadata: TableMetadata) -> None:
        delete = entry.data_file
        if delete.file_format != "PARQUET":
            raise UnsupportedError(f"expected Parquet delete files, found {delete.file_format} at {delete.file_path}")
        if delete.content is FileContent.POSITION_DELETES:
            path = only_data_file(delete)
            where = self._by_partition[partition_key(delete)] if path is None else self._by_path[path]
        elif metadata.specs_by_id[delete.spec_id].is_unpartitioned:
            where = self._everywhere
        else:
            where = self._by_partition[partition_key(delete)]
        where.append(entry)


def _comes_after(delete: ManifestEntry, data: ManifestEntry) -> bool:
    # spec: position deletes also apply to data files of their own commit, equality deletes only to older ones
    deleted_at, written_at = delete.sequence_number or 0, data.sequence_number or 0
    if delete.data_file.content is FileContent.POSITION_DELETES:
        return written_at <= deleted_at
    return written_at < deleted_at
