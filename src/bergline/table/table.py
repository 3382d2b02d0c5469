"""A table as a user holds it: a handle that its own commits move forward in place."""

import contextlib
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from bergline.arguments import check_whole
from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.errors import InvalidInputError
from bergline.expressions.predicate import Predicate
from bergline.format.metadata.refs import MAIN
from bergline.table.adding_files import TableAddingFiles
from bergline.table.altering import TableAltering
from bergline.table.commits.chain import Chain
from bergline.table.commits.commit import Timing, load_same_table
from bergline.table.expiring import TableExpiring
from bergline.table.inspection.metadata_tables import metadata_table
from bergline.table.inspection.metadata_view import MetadataView
from bergline.table.maintaining import TableMaintaining
from bergline.table.references.changed_rows import RowChanges, row_changes
from bergline.table.references.refs import Refs
from bergline.table.scans.append_scan import AppendScan
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import ReadVersion, epoch_ms, resolve_version
from bergline.table.sweeping import TableSweeping
from bergline.table.transaction import Transaction
from bergline.table.writing import TableWriting


class Table(TableWriting, TableAddingFiles, TableAltering, TableMaintaining, TableExpiring, TableSweeping):
    """`refresh` looks again; every other method that changes the table is one commit."""

    def __init__(
        self,
        catalog: Catalog,
        loaded: LoadedTable,
        *,
        timing: Timing | None = None,
        summary: Mapping[str, str] | None = None,
        chain: Chain | None = None,
    ) -> None:
        super().__init__(catalog, loaded, timing=timing, summary=summary, chain=chain)
        self._in_transaction = False
        self.refs = Refs(lambda: self.metadata, self.commit, self.io)

    @contextlib.contextmanager
    def transaction(self) -> Iterator["Table"]:
        """This table as a block changes it: one commit when the block ends, none if it raises.

        What is read from the table in the block has the block's own changes. Afterwards only this handle is of use.
        """
        if self._chain is not None or self._in_transaction:
            raise InvalidInputError(f"expected no transaction inside another one, found one on table `{self.name}`")
        self._in_transaction = True
        try:
            now = load_same_table(self._catalog, self.name, self.metadata.table_uuid, self.metadata_location)
            with Transaction(self._catalog, self._timing) as transaction:
                chain = transaction.chain(now)
                yield Table(self._catalog, now, timing=self._timing, summary=self._summary, chain=chain)
            self._loaded = transaction.tables.get(self.name, self._loaded)
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
        """A read of `main`, a ref, a snapshot or a moment (as a datetime, or in milliseconds since 1970)."""
        version = self._version(ref, snapshot_id, as_of, as_of_ms)
        return TableScan(self.io, self.metadata, version, row_filter, columns)

    def scan_appends(self, start_snapshot_id: int, end_snapshot_id: int | None = None) -> AppendScan:
        """A read of the rows that appends brought after one snapshot, up to another or to the head of `main`."""
        return AppendScan(self.io, self.metadata, start_snapshot_id, end_snapshot_id)

    def changes(self, before: int | str, after: int | str = MAIN) -> RowChanges:
        """The rows that came and went between two states, each a ref or a snapshot id, with the columns of the later.

        Rows that only moved to other files are no change.
        """
        start, end = (
            resolve_version(self.metadata, ref=state)
            if isinstance(state, str)
            else resolve_version(self.metadata, snapshot_id=check_whole(state, "a ref or a snapshot id"))
            for state in (before, after)
        )
        return row_changes(self.io, self.metadata, start.snapshot_id, end.snapshot_id, end.schema)

    def inspect(
        self,
        name: str,
        *,
        ref: str | None = None,
        snapshot_id: int | None = None,
        as_of: dt.datetime | None = None,
        as_of_ms: int | None = None,
    ) -> pa.Table:
        """A metadata table (`files`, `partitions`, `refs`, …) of `main`, a ref, a snapshot or a moment."""
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
