"""Locations below one prefix and their counterparts below another, in metadata and in text."""

import msgspec

from bergline.catalog.table_locations import PATH_PROPERTIES
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata


class PathPrefix(msgspec.Struct, frozen=True):
    """Replaces a prefix; files with new content are staged. No location has a trailing slash."""

    source: str
    target: str
    staging: str

    def moved(self, path: str) -> str:
        """The new location of a file; InvalidInputError if it is not below the prefix."""
        return self.target + self._below(path)

    def staged(self, path: str) -> str:
        """The staging location of a file with new content, until it is copied."""
        return self.staging + self._below(path)

    def contains(self, path: str) -> bool:
        """Whether a location is below the prefix, or is the prefix."""
        return path == self.source or path.startswith(f"{self.source}/")

    def metadata(self, metadata: TableMetadata) -> TableMetadata:
        """A table's metadata with all locations replaced; directories outside of the prefix stay."""
        properties = {
            key: self.moved(value) if key in PATH_PROPERTIES and self.contains(value.rstrip("/")) else value
            for key, value in metadata.properties.items()
        }
        log = [msgspec.structs.replace(e, metadata_file=self.moved(e.metadata_file)) for e in metadata.metadata_log]
        statistics, of_partitions = (
            tuple(msgspec.structs.replace(f, statistics_path=self.moved(f.statistics_path)) for f in files)
            for files in (metadata.statistics, metadata.partition_statistics)
        )
        return msgspec.structs.replace(
            metadata,
            location=self.moved(metadata.location.rstrip("/")),
            properties=properties,
            snapshots=tuple(self._snapshot(s) for s in metadata.snapshots),
            metadata_log=tuple(log),
            statistics=statistics,
            partition_statistics=of_partitions,
        )

    def _snapshot(self, snapshot: Snapshot) -> Snapshot:
        if snapshot.manifest_list is None:
            raise UnsupportedError(f"expected a manifest list, found none for snapshot {snapshot.snapshot_id}")
        return msgspec.structs.replace(snapshot, manifest_list=self.moved(snapshot.manifest_list))

    def _below(self, path: str) -> str:
        if not self.contains(path):
            raise InvalidInputError(f"expected locations below {self.source}, found {path}")
        return path[len(self.source) :]
