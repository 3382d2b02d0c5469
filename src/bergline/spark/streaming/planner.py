"""The part of a streaming read that runs beside Spark's driver, in a Python process of its own.

It is pickled with the lake that it connects to, and lives as long as the query.
"""

import pickle
from collections.abc import Mapping
from typing import Any

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.errors import ConflictError
from bergline.format.schema.schema import Schema
from bergline.lake.lake import Lake
from bergline.spark.reads.arrow import ReadTask, pack
from bergline.table.scans.stream_scan import StreamOffset, StreamRules, StreamScan, parse_offset, render_offset


class StreamedTable(msgspec.Struct, frozen=True):
    """What is read: a branch of the table of this name and uuid, in the columns that it had when the read was made."""

    name: TableName
    uuid: str | None
    branch: str
    schema: Schema
    rules: StreamRules
    cores: int
    """How many tasks run at a time."""


class StreamPlanner:
    """Offsets and tasks of one query.

    Spark's interface for Python has no admission control: the planner keeps where the latest batch ends, and the next
    one is limited where Spark asks how far the table has come.
    """

    def __init__(self, lake: Lake, streamed: StreamedTable) -> None:
        self._lake = lake
        self._streamed = streamed
        self._reached: dict[str, Any] | None = None
        self._planned: tuple[StreamOffset, StreamOffset, list[bytes]] | None = None

    def initial_offset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins."""
        beginning = render_offset(self._scan().beginning())
        self._reached = self._reached or beginning
        return beginning

    def latest_offset(self, *, takes_all: bool) -> dict[str, Any]:
        """Where the next batch ends; the end of the latest one if there is nothing new."""
        scan = self._scan()
        start = scan.beginning() if self._reached is None else parse_offset(self._reached)
        end = scan.end(start, limited=not takes_all)
        if self._reached is None or end != start:  # unchanged, it must be the same text as in the checkpoint
            self._reached = render_offset(end)
        return self._reached

    def tasks(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[bytes]:
        """Work for tasks that read the rows between two offsets, pickled.

        Spark asks several times for a batch, and with two equal offsets to say where a restarted query is.
        """
        first, last = parse_offset(start), parse_offset(end)
        self._reached = dict(end)
        if self._planned is None or self._planned[:2] != (first, last):
            scan = self._scan()
            plan = scan.plan(first, last)
            shared = msgspec.structs.replace(plan, files=())
            parts = pack(plan.files, self._streamed.cores)
            self._planned = first, last, [pickle.dumps(ReadTask(scan.io, shared, tuple(part))) for part in parts]
        return self._planned[2]

    def close(self) -> None:
        """Close the connections to the catalog."""
        self._lake.close()

    def _scan(self) -> StreamScan:
        """The table as it is now."""
        streamed = self._streamed
        table = self._lake.load_table(streamed.name)
        found = table.metadata.table_uuid
        if streamed.uuid is not None and found != streamed.uuid:
            raise ConflictError(
                f"expected table `{streamed.name}` with uuid {streamed.uuid}, found {found}: "
                "it was dropped and re-created",
                hints=["start the query anew, with a new `checkpointLocation`"],
            )
        return StreamScan(table.io, table.metadata, streamed.branch, streamed.schema, streamed.rules)
