"""Transactions: changes that are committed together, or not at all."""

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.chain import Chain
from bergline.table.commits.commit import TableWork, check_table_count, commit, create
from bergline.table.commits.operation import CommitStamp
from bergline.table.commits.retry import Timing


class Transaction:
    """Collects a chain of operations for each table; leaving the block commits them all in one step.

    An exception in the block abandons them: the tables do not change, and written files are removed.
    """

    def __init__(self, catalog: Catalog, timing: Timing) -> None:
        self._catalog = catalog
        self._timing = timing
        self._work: dict[TableName, TableWork] = {}
        self._chains: dict[TableName, Chain] = {}
        self.has_ended = False
        self.tables: dict[TableName, LoadedTable] = {}
        """The committed tables, after the commit."""

    def chain(self, loaded: LoadedTable) -> Chain:
        """A chain for a table; UnsupportedError for a second table if the catalog can only move one at a time."""
        check_table_count(self._catalog, len(self._chains) + 1)
        chain = self._chains[loaded.name] = Chain(loaded.name, loaded.metadata, self._catalog.io)
        self._work[loaded.name] = TableWork(loaded.name, loaded.metadata.table_uuid, loaded.metadata_location, chain)
        return chain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.has_ended = True
        for chain in self._chains.values():
            chain.end()
        if kind is not None:
            for chain in self._chains.values():
                chain.settled(None)
            return
        work = [self._work[name] for name, chain in self._chains.items() if not chain.is_empty]
        if work:
            self.tables = {t.name: t for t in commit(self._catalog, work, self._timing)}


@contextlib.contextmanager
def staged_creation(catalog: Catalog, name: TableName, metadata: TableMetadata, timing: Timing) -> Iterator[Chain]:
    """A chain on a table that is created when the block ends, with the chain's changes."""
    chain = Chain(name, metadata, catalog.io)
    try:
        yield chain
    except BaseException:
        chain.end()
        chain.settled(None)
        raise
    chain.end()
    now_ms = timing.clock_ms()
    change = chain.attempt(metadata, CommitStamp(1, now_ms))
    content = apply_updates(metadata, change.updates, base_location=None, now_ms=now_ms)
    create(catalog, TableWork(name, metadata.table_uuid, "", chain), content, timing)
