"""Updates of a table's metadata that write no rows: every method is one commit."""

from collections.abc import Iterable, Mapping

from bergline.arguments import check_list, check_text, check_texts, check_whole, shown
from bergline.errors import InvalidInputError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import (
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
    check_format_version,
)
from bergline.format.metadata.updates import (
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveStatistics,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetStatistics,
    UpgradeFormatVersion,
)
from bergline.format.partition.sort_order import SortOrder, parse_sort_by
from bergline.io.locations import absolute_location
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.row_engine import RowEngine, check_row_engine
from bergline.table.evolution.layout_change import change_order
from bergline.table.evolution.pending_update import conflict, conflict_if_refused, is_settled
from bergline.table.evolution.properties import check_properties
from bergline.table.evolution.schema_update import SchemaUpdate
from bergline.table.evolution.spec_update import SpecUpdate
from bergline.table.handle import TableHandle
from bergline.table.statistics.column_statistics import write_column_statistics
from bergline.table.statistics.partition_statistics import write_partition_statistics
from bergline.table.statistics.statistics_file import RegisterStatistics


class TableMetadataUpdates:
    """Columns, partitioning, sort order, properties, location, format version and statistics."""

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def update_schema(self, *, allow_incompatible: bool = False) -> SchemaUpdate:
        """Change columns: `with table.update_schema() as schema: schema.add_column("tags", "list<string>")`.

        The block is one commit. Changes that existing rows may violate are refused, unless `allow_incompatible` is set.
        """
        return SchemaUpdate(self._table.metadata, self._table.commit, allow_incompatible=allow_incompatible)

    def update_spec(self) -> SpecUpdate:
        """Change how new files are partitioned: `with table.update_spec() as spec: spec.add_field("day(ts)")`."""
        return SpecUpdate(self._table.metadata, self._table.commit)

    def replace_sort_order(self, terms: Iterable[str]) -> None:
        """Declare how rows of new files are sorted: `["region", "ts desc nulls last"]`; no terms mean unsorted."""
        requested = check_list(terms, "sort term")
        loaded = self._table.metadata
        order = parse_sort_by(requested, loaded.schema)
        self._table.commit(
            MetadataOperation(lambda base: change_order(base, _order_on(base, requested, order, loaded)))
        )

    def set_properties(self, updates: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()) -> None:
        """Set and remove table properties; of two writers of one key the last one wins."""
        set_ = check_texts({} if updates is None else updates, "property")
        removed = check_list(remove, "property name")
        check_properties(set_, self._table.schema, remove=removed, base=self._table.metadata.properties)
        changes = (SetProperties(set_),) if set_ else ()
        removals = (RemoveProperties(removed),) if removed else ()
        self._table.commit(MetadataOperation(lambda _: Change((*changes, *removals))))

    def set_location(self, location: str) -> None:
        """Change the location of new files; existing files stay where they are."""
        if not check_text(location, "text for the location"):
            raise InvalidInputError("expected a location like `s3://bucket/path` or `/path`, found an empty text")
        absolute = absolute_location(location)
        self._table.commit(MetadataOperation(lambda _: Change((SetLocation(absolute),))))

    def upgrade_format(self, version: int) -> None:
        """Raise the format version to 2 or 3; it can never be lowered, and older readers lose access to the table."""
        check_format_version(check_whole(version, "the format version"))
        current = self._table.metadata.format_version
        if version < current:
            raise InvalidInputError(f"expected format version {current} or higher, found {version}: it never goes down")
        upgrade = Change((UpgradeFormatVersion(version),))
        self._table.commit(MetadataOperation(lambda base: upgrade if base.format_version < version else Change()))

    def set_statistics(self, file: StatisticsFile | PartitionStatisticsFile) -> None:
        """Register a statistics file, replacing an older one of its kind for the same snapshot."""
        match file:
            case StatisticsFile():
                change = Change((SetStatistics(file),))
            case PartitionStatisticsFile():
                change = Change((SetPartitionStatistics(file),))
            case _:
                raise InvalidInputError(f"expected a StatisticsFile or PartitionStatisticsFile, found {shown(file)}")

        def known(base: TableMetadata) -> Change:
            base.snapshot(file.snapshot_id)
            return Change() if file in (*base.statistics, *base.partition_statistics) else change

        self._table.commit(MetadataOperation(known))

    def compute_statistics(
        self,
        columns: Iterable[str] | None = None,
        *,
        snapshot_id: int | None = None,
        engine: RowEngine | None = None,
    ) -> StatisticsFile | None:
        """Count the distinct values of columns, by default of all, in `main` or a snapshot, and register the file.

        The counts are theta sketches in a Puffin file, as the official runtime writes them. Rows are read in this
        process, or by Spark's executors if `engine` is `bergline.spark.row_engine(spark)`. None for an empty table.
        """
        snapshot = self._snapshot(snapshot_id)
        names = None if columns is None else check_list(columns, "column")
        used = check_row_engine(engine) or ArrowRowEngine()
        if snapshot is None:
            return None
        file = write_column_statistics(self._table.io, self._table.metadata, snapshot, names, used)
        self._table.commit(RegisterStatistics(self._table.io, file))
        return file

    def compute_partition_statistics(self, *, snapshot_id: int | None = None) -> PartitionStatisticsFile | None:
        """Count rows and files of each partition of `main` or a snapshot from its manifests, and register the file.

        If the snapshot already has such a file, it is returned unchanged. None for an empty table.
        """
        snapshot = self._snapshot(snapshot_id)
        if snapshot is None:
            return None
        known = (f for f in self._table.metadata.partition_statistics if f.snapshot_id == snapshot.snapshot_id)
        file = next(known, None)
        if file is not None:
            return file
        file = write_partition_statistics(self._table.io, self._table.metadata, snapshot)
        if file is not None:
            self._table.commit(RegisterStatistics(self._table.io, file))
        return file

    def _snapshot(self, snapshot_id: int | None) -> Snapshot | None:
        metadata = self._table.metadata
        if snapshot_id is None:
            return metadata.current_snapshot
        return metadata.snapshot(check_whole(snapshot_id, "a snapshot id"))

    def remove_statistics(self, snapshot_id: int) -> None:
        """Remove a snapshot's statistics file from the metadata; the file itself stays."""
        forget = Change((RemoveStatistics(check_whole(snapshot_id, "a snapshot id")),))
        self._table.commit(MetadataOperation(lambda _: forget))

    def remove_partition_statistics(self, snapshot_id: int) -> None:
        """Remove a snapshot's partition statistics file from the metadata; the file itself stays."""
        forget = Change((RemovePartitionStatistics(check_whole(snapshot_id, "a snapshot id")),))
        self._table.commit(MetadataOperation(lambda _: forget))


def _order_on(base: TableMetadata, terms: tuple[str, ...], requested: SortOrder, loaded: TableMetadata) -> SortOrder:
    """The order on a base; ConflictError if a column was dropped or replaced since the table was loaded."""
    with conflict_if_refused(loaded, base):
        order = parse_sort_by(terms, base.schema)
    for term, field, now in zip(terms, requested.fields, order.fields, strict=True):
        if field.source_id != now.source_id and is_settled(field.source_id, loaded, base):
            raise conflict(f"the column of `{term}` is a different one now", loaded, base)
    return order
