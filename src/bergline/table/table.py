"""A table as a user holds it: a handle that its own commits move forward in place."""

import contextlib
import datetime as dt
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Self

import pyarrow as pa

from bergline.arguments import check_whole
from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError
from bergline.expressions.predicate import Predicate
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.notebook import drawn
from bergline.table.commits.chain import Chain
from bergline.table.commits.operation import Operation
from bergline.table.commits.retry import Timing
from bergline.table.delegation import chained, delegated
from bergline.table.files import TableFiles
from bergline.table.handle import TableHandle
from bergline.table.inspection.metadata_tables import metadata_table
from bergline.table.inspection.metadata_view import MetadataView
from bergline.table.maintenance import TableMaintenance
from bergline.table.merges import TableMerges
from bergline.table.metadata_updates import TableMetadataUpdates
from bergline.table.references.changed_rows import Changelog, changes_between
from bergline.table.references.refs import Refs
from bergline.table.scans.append_scan import AppendScan
from bergline.table.scans.changelog_scan import ChangelogRange, ChangelogScan, changelog_snapshots, match_rules
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import ReadVersion, SnapshotChoice, epoch_ms, resolve_version
from bergline.table.transaction import Transaction
from bergline.table.writes import TableWrites


class Table:
    """`refresh` loads it again; every other method that changes the table is one commit."""

    def __init__(
        self,
        catalog: Catalog,
        loaded: LoadedTable,
        *,
        timing: Timing | None = None,
        summary: Mapping[str, str] | None = None,
        chain: Chain | None = None,
    ) -> None:
        """With a chain, changes are collected there until its transaction ends."""
        self._handle = handle = TableHandle(catalog, loaded, timing=timing, summary=summary, chain=chain)
        self._in_transaction = False
        self.refs = Refs(lambda: handle.metadata, handle.commit, handle.io, handle.rule_levels)

    def __repr__(self) -> str:
        inside = ", in a transaction" if self._handle.in_transaction else ""
        return f"Table({str(self.name)!r}, {self.metadata_location!r}{inside})"

    def _repr_html_(self) -> str:
        return drawn("table_html", self)

    @property
    def name(self) -> TableName:
        """Namespace and name."""
        return self._handle.name

    @property
    def io(self) -> FileIO:
        """The storage of the table's files."""
        return self._handle.io

    @property
    def metadata(self) -> TableMetadata:
        """The table as last loaded; in a transaction, including its changes."""
        return self._handle.metadata

    @property
    def metadata_location(self) -> str:
        """The pointer as last loaded; empty while a new table is only staged."""
        return self._handle.metadata_location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec for new files."""
        return self.metadata.spec

    @property
    def location(self) -> str:
        """The location of new files."""
        return self.metadata.location

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self.metadata.properties)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of `main`."""
        return self.metadata.current_snapshot

    def refresh(self) -> Self:
        """Load the table again; a transaction keeps the state with which it began."""
        self._handle.refresh()
        return self

    def commit(self, operation: Operation) -> TableMetadata:
        """Commit an operation and move this handle forward."""
        return self._handle.commit(operation)

    def check_rules(self, after: TableMetadata) -> None:
        """ProtectedRefError if a rule about refs forbids an operation's result; nothing is changed."""
        self._handle.check_rules(after)

    check_branch = delegated(TableWrites, TableWrites.check_branch)
    append = chained(TableWrites, TableWrites.append)
    overwrite = chained(TableWrites, TableWrites.overwrite)
    delete = chained(TableWrites, TableWrites.delete)
    overwrite_partitions = chained(TableWrites, TableWrites.overwrite_partitions)

    update = delegated(TableMerges, TableMerges.update)
    upsert = delegated(TableMerges, TableMerges.upsert)
    merge = delegated(TableMerges, TableMerges.merge)

    append_files = chained(TableFiles, TableFiles.append_files)
    add_files = delegated(TableFiles, TableFiles.add_files)
    overwrite_files = chained(TableFiles, TableFiles.overwrite_files)
    replace_partitions = chained(TableFiles, TableFiles.replace_partitions)
    row_delta = chained(TableFiles, TableFiles.row_delta)
    rewrite_files = chained(TableFiles, TableFiles.rewrite_files)

    update_schema = delegated(TableMetadataUpdates, TableMetadataUpdates.update_schema)
    update_spec = delegated(TableMetadataUpdates, TableMetadataUpdates.update_spec)
    replace_sort_order = chained(TableMetadataUpdates, TableMetadataUpdates.replace_sort_order)
    set_properties = chained(TableMetadataUpdates, TableMetadataUpdates.set_properties)
    set_location = chained(TableMetadataUpdates, TableMetadataUpdates.set_location)
    upgrade_format = chained(TableMetadataUpdates, TableMetadataUpdates.upgrade_format)
    set_statistics = chained(TableMetadataUpdates, TableMetadataUpdates.set_statistics)
    compute_statistics = delegated(TableMetadataUpdates, TableMetadataUpdates.compute_statistics)
    compute_partition_statistics = delegated(TableMetadataUpdates, TableMetadataUpdates.compute_partition_statistics)
    remove_statistics = chained(TableMetadataUpdates, TableMetadataUpdates.remove_statistics)
    remove_partition_statistics = chained(TableMetadataUpdates, TableMetadataUpdates.remove_partition_statistics)

    compact = delegated(TableMaintenance, TableMaintenance.compact)
    rewrite_data_files = delegated(TableMaintenance, TableMaintenance.rewrite_data_files)
    rewrite_position_deletes = delegated(TableMaintenance, TableMaintenance.rewrite_position_deletes)
    rewrite_manifests = chained(TableMaintenance, TableMaintenance.rewrite_manifests)
    rewrite_path = delegated(TableMaintenance, TableMaintenance.rewrite_path)
    expire = delegated(TableMaintenance, TableMaintenance.expire)
    plan_expiry = delegated(TableMaintenance, TableMaintenance.plan_expiry)
    plan_orphans = delegated(TableMaintenance, TableMaintenance.plan_orphans)
    sweep_orphans = delegated(TableMaintenance, TableMaintenance.sweep_orphans)

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Table"]:
        """Change this table in a block: one commit when the block ends, none if it raises.

        Reads from the block's table include the block's changes. Afterwards, only this handle can be used.
        """
        if self._handle.in_transaction or self._in_transaction:
            raise InvalidInputError(f"expected no transaction inside another one, found one on table `{self.name}`")
        self._in_transaction, handle = True, self._handle
        try:
            now = handle.load_newest()
            with Transaction(handle.catalog, handle.timing) as transaction:
                chain = transaction.chain(now)
                yield Table(handle.catalog, now, timing=handle.timing, summary=handle.summary, chain=chain)
            handle.loaded = transaction.tables.get(self.name, handle.loaded)
        finally:
            self._in_transaction = False

    def scan(
        self,
        row_filter: str | Predicate | None = None,
        *,
        ref: str | None = None,
        snapshot_id: int | None = None,
        as_of: dt.datetime | None = None,
        as_of_ms: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableScan:
        """A read of `main`, a ref, a snapshot or a point in time (a datetime, or milliseconds since 1970)."""
        version = self._version(ref, snapshot_id, as_of, as_of_ms)
        return TableScan(self.io, self.metadata, version, row_filter, columns)

    def scan_appends(self, start_snapshot_id: int, end_snapshot_id: int | None = None) -> AppendScan:
        """A read of the rows that were appended after one snapshot, up to another or to the head of `main`."""
        return AppendScan(self.io, self.metadata, start_snapshot_id, end_snapshot_id)

    def changes(
        self,
        before: SnapshotChoice | None,
        after: SnapshotChoice = MAIN,
        *,
        net_changes: bool | None = None,
        compute_updates: bool | None = None,
        identifier_columns: Sequence[str] | None = None,
    ) -> Changelog:
        """The rows that changed between two states, each a ref, a snapshot id or a time, in the columns of the later.

        None stands for the state before the oldest snapshot. Net changes, the default, omit rows that came and went in
        between; `net_changes=False` gives the changes of every snapshot, and the second state must descend from the
        first. So do update images, which are computed if identifier columns are given, or with `compute_updates` by the
        table's identifier fields or else, in format version 3, by row ids.
        """
        end = self._state(after)
        has_images = identifier_columns is not None if compute_updates is None else compute_updates
        rules = match_rules(
            self.metadata,
            end.schema,
            net_changes=not has_images if net_changes is None else net_changes,
            compute_updates=compute_updates,
            identifier_columns=identifier_columns,
        )
        start = before if type(before) is int else None if before is None else self._state(before).snapshot_id
        return changes_between(self.io, self.metadata, (start, end.snapshot_id), end.schema, rules)

    def scan_changes(self, chosen: ChangelogRange) -> ChangelogScan:
        """A read of all rows that snapshots added and deleted, including those only copied to other files."""
        return ChangelogScan(self.io, self.metadata, changelog_snapshots(self.metadata, chosen), self.schema)

    def _state(self, chosen: SnapshotChoice) -> ReadVersion:
        match chosen:
            case str():
                return resolve_version(self.metadata, ref=chosen)
            case dt.datetime():
                return resolve_version(self.metadata, as_of_ms=epoch_ms(chosen))
        return resolve_version(self.metadata, snapshot_id=check_whole(chosen, "a ref, a snapshot id or a time"))

    def inspect(
        self,
        name: str,
        *,
        ref: str | None = None,
        snapshot_id: int | None = None,
        as_of: dt.datetime | None = None,
        as_of_ms: int | None = None,
    ) -> pa.Table:
        """A metadata table (`files`, `partitions`, `refs`, …) of `main`, a ref, a snapshot or a point in time."""
        version = self._version(ref, snapshot_id, as_of, as_of_ms)
        snapshot = None if version.snapshot_id is None else self.metadata.snapshot(version.snapshot_id)
        view = MetadataView(self.io, self.metadata, self.metadata_location, snapshot)
        at_version = any(x is not None for x in (ref, snapshot_id, as_of, as_of_ms))
        return metadata_table(view, name, at_version=at_version)

    def _version(
        self, ref: str | None, snapshot_id: int | None, as_of: dt.datetime | None, as_of_ms: int | None
    ) -> ReadVersion:
        if as_of is not None:
            as_of_ms = epoch_ms(as_of)
        return resolve_version(self.metadata, ref=ref, snapshot_id=snapshot_id, as_of_ms=as_of_ms)


def load_again(table: Table) -> Table:
    """The table that has this name now, as a new handle."""
    handle = table._handle  # noqa: SLF001  (this module's)
    return Table(handle.catalog, handle.catalog.load_table(handle.name), timing=handle.timing)


def place_of(table: Table) -> Hashable:
    """What tells a table from others in this process: its name, in one lake at one of its refs."""
    return id(table.io), table.name, table.metadata.seen_at
