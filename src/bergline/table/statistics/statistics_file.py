"""A statistics file that was written for a snapshot, registered in the table's metadata."""

from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from bergline.format.metadata.updates import SetPartitionStatistics, SetStatistics
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, Landed, MetadataOperation


class RegisterStatistics(MetadataOperation):
    """Replaces an older file of its kind for the same snapshot; the file is deleted if that certainly failed."""

    def __init__(self, io: FileIO, file: StatisticsFile | PartitionStatisticsFile) -> None:
        super().__init__(self._registered)
        self._io = io
        self._file = file

    def settled(self, landed: Landed | None) -> None:
        """Delete the file if it was not registered."""
        if landed is None:
            self._io.delete([self._file.statistics_path])

    def _registered(self, base: TableMetadata) -> Change:
        base.snapshot(self._file.snapshot_id)
        if isinstance(self._file, StatisticsFile):
            return Change((SetStatistics(self._file),))
        return Change((SetPartitionStatistics(self._file),))
