"""Table metadata: snapshots, refs, updates and requirements, and their JSON."""

from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile

__all__ = ["PartitionStatisticsFile", "StatisticsFile"]
