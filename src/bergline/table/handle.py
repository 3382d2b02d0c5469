"""The state that all parts of a table share: what was loaded, and how its changes are committed."""

from collections.abc import Mapping

import msgspec

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.table.commits.chain import Chain
from bergline.table.commits.commit import TableWork, commit, load_same_table
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, RowLevelCommand, isolation_level
from bergline.table.commits.operation import Operation
from bergline.table.commits.retry import Timing
from bergline.table.engine.row_engine import RowEngine
from bergline.table.references.summary import check_summary, wap_summary


class WriteArguments(msgspec.Struct, frozen=True):
    """The target of a write, its snapshot's summary entries, its isolation level, and its row engine."""

    branch: str
    summary: Mapping[str, str] | None = None
    isolation: str | Isolation | None = None
    wap_id: str | None = None
    engine: RowEngine | None = None

    def level(self, metadata: TableMetadata, command: RowLevelCommand) -> Isolation | None:
        """The isolation level; None if only changes that would break the table are checked for."""
        return None if self.isolation == NO_ISOLATION else isolation_level(metadata, command, self.isolation)


class TableHandle:
    """The table as last loaded; commits move it forward, at once or, with a chain, when its transaction ends."""

    def __init__(
        self,
        catalog: Catalog,
        loaded: LoadedTable,
        *,
        timing: Timing | None = None,
        summary: Mapping[str, str] | None = None,
        chain: Chain | None = None,
    ) -> None:
        self.catalog = catalog
        self.loaded = loaded
        self.timing = timing or Timing()
        self.summary = dict(summary or {})
        self.chain = chain

    @property
    def name(self) -> TableName:
        """Namespace and name."""
        return self.loaded.name

    @property
    def io(self) -> FileIO:
        """The storage of the table's files."""
        return self.catalog.io

    @property
    def metadata(self) -> TableMetadata:
        """The table as last loaded; in a transaction, including its changes."""
        return self.chain.metadata if self.chain else self.loaded.metadata

    @property
    def metadata_location(self) -> str:
        """The pointer as last loaded; empty while a new table is only staged."""
        return self.loaded.metadata_location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    def rule_levels(self) -> tuple[RuleLevel, ...]:
        """The rules about refs that apply to the table in addition to its own."""
        return self.catalog.rule_levels(self.name)

    @property
    def in_transaction(self) -> bool:
        """Whether changes are collected, to be committed together later."""
        return self.chain is not None

    def refresh(self) -> None:
        """Load the table again; a transaction keeps the state with which it began."""
        if self.chain is None:
            self.loaded = self.catalog.load_table(self.name)

    def load_newest(self) -> LoadedTable:
        """The current table; ConflictError if it was dropped and re-created."""
        return load_same_table(self.catalog, self.name, self.loaded.metadata.table_uuid, self.metadata_location)

    def commit(self, operation: Operation) -> TableMetadata:
        """Commit an operation, and move forward to the resulting table."""
        if self.chain is not None:
            self.chain.add(operation, self.timing.clock_ms())
            return self.metadata
        work = TableWork(self.name, self.metadata.table_uuid, self.metadata_location, operation)
        (self.loaded,) = commit(self.catalog, (work,), self.timing)
        return self.metadata

    def check_rules(self, after: TableMetadata) -> None:
        """ProtectedRefError if a rule about refs forbids an operation's result."""
        for refusal in self.catalog.refusals(self.loaded, after):
            raise refusal

    def snapshot_summary(self, given: Mapping[str, str] | None, wap_id: str | None = None) -> dict[str, str]:
        """The summary entries of a snapshot; InvalidInputError for those that bergline writes itself."""
        return self.summary | check_summary(given) | wap_summary(wap_id)
