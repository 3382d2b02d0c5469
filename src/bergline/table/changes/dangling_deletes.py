"""Delete files that are about nothing any more, once some data files are rewritten."""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    partition_key,
)
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import live_entries, load_manifest_list


def dangling_deletes(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, rewritten: Collection[DataFile], sequence_number: int
) -> tuple[DataFile, ...]:
    """The delete files of a snapshot that no data file needs, once the rewritten ones are replaced by others.

    The new files, in the same partitions, have the sequence number. What others add meanwhile has higher numbers.
    """
    manifests = [m for m in load_manifest_list(io, snapshot) if m.has_live_files]
    deletes = list(live_entries(io, (m for m in manifests if m.content is ManifestContent.DELETES), metadata))
    if not deletes:
        return ()
    left = _Left(io, metadata, manifests, rewritten, sequence_number)
    return tuple(entry.data_file for entry in deletes if left.needs_no(entry))


class _Left:
    """The data files that are left, and the lowest sequence numbers of them in each partition and in all."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        manifests: Sequence[ManifestFile],
        rewritten: Collection[DataFile],
        sequence_number: int,
    ) -> None:
        gone = {f.file_path for f in rewritten}
        self._metadata = metadata
        self._paths: set[str] = set()
        self._old: dict[Any, float] = defaultdict(lambda: math.inf)
        for entry in live_entries(io, (m for m in manifests if m.content is ManifestContent.DATA), metadata):
            if entry.data_file.file_path not in gone:
                self._paths.add(entry.data_file.file_path)
                key = partition_key(entry.data_file)
                self._old[key] = min(self._old[key], entry.sequence_number or 0)
        self._all = self._old.copy()
        for file in rewritten:
            key = partition_key(file)
            self._all[key] = min(self._all[key], sequence_number)

    def needs_no(self, entry: ManifestEntry) -> bool:
        """Whether a delete file applies to none of the data files."""
        delete, number = entry.data_file, entry.sequence_number or 0
        if delete.content is FileContent.POSITION_DELETES:
            path = only_data_file(delete)
            # the new files have new paths, which no older delete file can name
            return number < self._old[partition_key(delete)] if path is None else path not in self._paths
        # spec: equality deletes apply to data with lower numbers
        if self._metadata.specs_by_id[delete.spec_id].is_unpartitioned:
            return number <= min(self._all.values(), default=math.inf)
        return number <= self._all[partition_key(delete)]
