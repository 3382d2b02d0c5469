"""Which of some data files a delete file may be about."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from bergline.format.deletes import only_data_file
from bergline.format.manifest import DataFile, FileContent, partition_key
from bergline.format.metadata import TableMetadata
from bergline.scan.shared_keys import may_share_keys


class HitFiles:
    """Data files by path and partition."""

    def __init__(self, files: Collection[DataFile], base: TableMetadata) -> None:
        self._files = files
        self._base = base
        self._by_path = {f.file_path: [f] for f in files}
        self._by_partition: dict[tuple[Any, ...], list[DataFile]] = defaultdict(list)
        for file in files:
            self._by_partition[partition_key(file)].append(file)

    def by(self, delete: DataFile) -> list[DataFile]:
        """Those of which a delete file may delete rows, whatever the sequence numbers say."""
        if delete.content is FileContent.EQUALITY_DELETES:
            everywhere = self._base.specs_by_id[delete.spec_id].is_unpartitioned
            near = self._files if everywhere else self._by_partition.get(partition_key(delete), ())
            return [f for f in near if may_share_keys(f, delete, self._base)]
        about = only_data_file(delete)
        return self._by_partition.get(partition_key(delete), []) if about is None else self._by_path.get(about, [])
