"""Batches of streaming queries, each committed once: the summary of its snapshot identifies the batch."""

from typing import Final

import msgspec

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.branches import head_id
from bergline.table.commits.operation import Change, CommitStamp, Landed, Operation

QUERY_ID: Final = "spark.sql.streaming.queryId"
EPOCH_ID: Final = "spark.sql.streaming.epochId"
"""The same entries as Iceberg's own runtime: a query may continue in either."""


class StreamBatch(msgspec.Struct, frozen=True):
    """A batch of a query; batches of one query are committed in order."""

    query_id: str
    batch_id: int

    @property
    def summary(self) -> dict[str, str]:
        """The summary entries of its snapshot."""
        return {QUERY_ID: self.query_id, EPOCH_ID: str(self.batch_id)}

    def is_committed(self, metadata: TableMetadata, branch: str) -> bool:
        """Whether the history of a branch has this batch, or a later one of the same query."""
        for snapshot in metadata.ancestors(head_id(metadata, branch)):
            if snapshot.summary.get(QUERY_ID) == self.query_id:
                epoch = snapshot.summary.get(EPOCH_ID, "")
                return epoch.isdecimal() and self.batch_id <= int(epoch)
        return False


class CommittedOnce:
    """The write of a batch: nothing to do on a base that already has the batch, whoever committed it."""

    def __init__(self, operation: Operation, batch: StreamBatch, branch: str) -> None:
        self._operation = operation
        self._batch = batch
        self._branch = branch

    @property
    def needs_validation(self) -> bool:
        """Whether the write can become wrong."""
        return self._operation.needs_validation

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The change, unless the base already has it."""
        if self._batch.is_committed(base, self._branch):
            return Change()
        return msgspec.structs.replace(self._operation.attempt(base, stamp), can_rebase=False)

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs."""
        self._operation.settled(landed)
