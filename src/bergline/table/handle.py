"""A handle on one table: what was loaded, and the way its changes are committed, each at once or in a transaction."""

from collections.abc import Mapping
from typing import Self

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.table.commits.chain import Chain
from bergline.table.commits.commit import TableWork, Timing, commit
from bergline.table.commits.operation import Operation
from bergline.table.references.staged import wap_summary
from bergline.table.references.summary import check_summary


class TableHandle:
    """The table as last loaded; its own commits move it forward in place."""

    def __init__(
        self,
        catalog: Catalog,
        loaded: LoadedTable,
        *,
        timing: Timing | None = None,
        summary: Mapping[str, str] | None = None,
        chain: Chain | None = None,
    ) -> None:
        """With a chain, changes gather there until its transaction ends."""
        self._catalog = catalog
        self._loaded = loaded
        self._timing = timing or Timing()
        self._summary = dict(summary or {})
        self._chain = chain

    def __repr__(self) -> str:
        inside = ", in a transaction" if self._chain else ""
        return f"{type(self).__name__}({str(self.name)!r}, {self.metadata_location!r}{inside})"

    @property
    def name(self) -> TableName:
        """Namespace and name."""
        return self._loaded.name

    @property
    def io(self) -> FileIO:
        """Where the table's files are."""
        return self._catalog.io

    @property
    def metadata(self) -> TableMetadata:
        """The table as last loaded; in a transaction, as it will be."""
        return self._chain.metadata if self._chain else self._loaded.metadata

    @property
    def metadata_location(self) -> str:
        """The pointer as last loaded; empty while a new table is only staged."""
        return self._loaded.metadata_location

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
        """Where new files go."""
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
        """Look again; a transaction keeps to the state that it began with."""
        if self._chain is None:
            self._loaded = self._catalog.load_table(self.name)
        return self

    def commit(self, operation: Operation) -> TableMetadata:
        """Bring an operation in and move this handle forward."""
        if self._chain is not None:
            self._chain.add(operation, self._timing.clock_ms())
            return self.metadata
        work = TableWork(self.name, self.metadata.table_uuid, self.metadata_location, operation)
        (self._loaded,) = commit(self._catalog, (work,), self._timing)
        return self.metadata

    def _full_summary(self, given: Mapping[str, str] | None, wap_id: str | None = None) -> dict[str, str]:
        """What a snapshot says beside its figures; InvalidInputError for entries that bergline writes itself."""
        return self._summary | check_summary(given) | wap_summary(wap_id)
