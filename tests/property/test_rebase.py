"""Random histories of clients that look at older states of a table, through the server's commits.

What they commit must equal the same changes done one after the other, in the order in which they landed.
"""

from itertools import count
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, Outcome, TableChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.rest.client.requirements import all_requirements
from bergline.errors import ConflictError
from bergline.format.manifest.manifest import FileContent
from bergline.format.metadata.snapshot import REBASED_FROM, Snapshot
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.server.commits.requested_commits import RequestedChange, commit_requested
from bergline.table.commits.retry import Timing
from support.models.brute_force_reader import read_rows
from support.models.table_invariants import check_nothing_is_missing, pointer_line

ARROW = pa.schema([pa.field("n", pa.int64(), nullable=False), ("k", pa.int32())])
NAME = TableName(("db",), "t")
CLIENTS = 3
branches = st.sampled_from(["main", "main", "dev", "new"])


class Step(msgspec.Struct, frozen=True):
    """What a client does next, on the table as it last saw it."""

    client: int
    action: str
    branch: str
    which: int
    looks: bool
    """Whether it looks at the table first."""
    resends: bool
    """Whether what it sends arrives twice."""


steps = st.builds(
    Step,
    client=st.integers(0, CLIENTS - 1),
    action=st.sampled_from(["append", "append", "append", "fast append", "delete", "delete", "compact", "manifests"]),
    branch=branches,
    which=st.integers(0, 20),
    looks=st.sampled_from([False, False, True]),
    resends=st.booleans(),
)


class StaleClient:
    """A catalog as one client sees it: the state that it last looked at, until the server refuses something."""

    def __init__(self, catalog: PointerCatalog) -> None:
        self._catalog = catalog
        self.view: LoadedTable = catalog.load_table(NAME)
        self.resends = False
        self.sent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def load_table(self, _: TableName) -> LoadedTable:
        return self.view

    def look(self) -> None:
        self.view = self._catalog.load_table(NAME)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        (change,) = changes
        self.sent += 1
        requested = RequestedChange(NAME, all_requirements(change), change.updates, change.can_rebase)
        try:
            tables = commit_requested(self._catalog, (requested,))
        except ConflictError as error:
            self.look()
            return Conflicted(error)
        if self.resends:
            assert commit_requested(self._catalog, (requested,)) == tables
        (self.view,) = tables
        return Committed(tables)


class Machine:
    """A table, the clients that write to it, and what its branches should hold."""

    def __init__(self, lake: Lake, version: str, mode: str) -> None:
        properties = {
            "format-version": version,
            "write.delete.mode": mode,
            "commit.manifest.min-count-to-merge": "3",
        }
        self.table = lake.create_table("db.t", ARROW, partition_by=["k"], properties=properties)
        self._numbers = count(1)
        self.table.append(self._rows(3))
        self.table.refs.create_branch("dev")
        assert isinstance(lake.catalog, PointerCatalog)
        self._catalog = lake.catalog
        self._clients = [StaleClient(lake.catalog) for _ in range(CLIENTS)]
        self._branches = {"main": frozenset({1, 2, 3}), "dev": frozenset({1, 2, 3})}
        self._expected = {self.table.metadata.snapshots[0].snapshot_id: self._branches["main"]}

    def _rows(self, number: int) -> pa.Table:
        taken = [next(self._numbers) for _ in range(number)]
        return pa.Table.from_pydict({"n": taken, "k": [n % 2 for n in taken]}, schema=ARROW)

    def run(self, step: Step) -> None:
        client = self._clients[step.client]
        client.resends = step.resends
        if step.looks:
            client.look()
        before = self._catalog.load_table(NAME).metadata
        timing = Timing(sleep=lambda _: None, uniform=lambda _, high: high)
        table = Lake(client, "lake", timing=timing).load_table("db.t")  # type: ignore[arg-type]
        now = self._branches.get(step.branch, self._branches["main"])
        try:
            after = self._act(table, step, now)
        except ConflictError:
            event(f"{step.action} conflicts")
            assert self._catalog.load_table(NAME).metadata == before
            client.look()
            return
        new = [
            s for s in self._catalog.load_table(NAME).metadata.snapshots if s.snapshot_id not in before.snapshots_by_id
        ]
        for snapshot in new:
            self._branches[step.branch] = after
            self._expected[snapshot.snapshot_id] = after
            moved = "moved" if REBASED_FROM in snapshot.summary else "as it is"
            event(f"{step.action} {moved}")

    def _act(self, table: Table, step: Step, now: frozenset[int]) -> frozenset[int]:
        match step.action:
            case "append" | "fast append":
                rows = self._rows(1 + step.which % 2)
                table.append(rows, branch=step.branch, fast=step.action == "fast append")
                return now | set(rows.column("n").to_pylist())
            case "delete":
                number = sorted(now)[step.which % len(now)] if now else 0
                table.delete(f"n = {number}", branch=step.branch)
                return now - {number}
            case "compact" if step.branch in table.metadata.refs:
                table.compact(branch=step.branch)
            case "manifests" if step.branch in table.metadata.refs:
                table.rewrite_manifests(branch=step.branch)
        return now

    def check(self) -> None:
        table = self.table.refresh()
        check_nothing_is_missing(table)
        pointer_line(table)
        row_ids: dict[int, tuple[int, int]] = {}
        for snapshot in table.metadata.snapshots:
            rows = read_rows(table.io.read, table.metadata_location, snapshot_id=snapshot.snapshot_id)
            assert sorted(row["n"] for row in rows) == sorted(self._expected[snapshot.snapshot_id])
            self._check_totals(table, snapshot)
            if table.metadata.format_version == 3:
                given = {row["n"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}
                for number, lineage in given.items():  # a row has one id and one number for ever
                    assert row_ids.setdefault(number, lineage) == lineage
                assert snapshot.first_row_id is not None
                assert snapshot.added_rows is not None
        if table.metadata.format_version == 3:
            taken = [row_id for row_id, _ in row_ids.values()]
            assert len(set(taken)) == len(taken)
            assert max(taken) < table.metadata.next_row_id
        for name, expected in self._branches.items():
            rows = read_rows(table.io.read, table.metadata_location, ref=name)
            assert sorted(row["n"] for row in rows) == sorted(expected)

    def _check_totals(self, table: Table, snapshot: Snapshot) -> None:
        manifests = load_manifest_list(table.io, snapshot)
        files = [e.data_file for e in live_entries(table.io, manifests, table.metadata)]
        data = [f for f in files if f.content is FileContent.DATA]
        summary = snapshot.summary
        assert int(summary["total-data-files"]) == len(data)
        assert int(summary["total-records"]) == sum(f.record_count for f in data)
        assert int(summary["total-delete-files"]) == len(files) - len(data)
        created = sum(m.added_snapshot_id == snapshot.snapshot_id for m in manifests)
        assert int(summary["manifests-created"]) == created
        assert int(summary["manifests-kept"]) == len(manifests) - created
        if REBASED_FROM in summary:
            assert not table.io.exists(summary[REBASED_FROM])


@settings(max_examples=30, deadline=None)
@given(
    version=st.sampled_from(["2", "3"]),
    mode=st.sampled_from(["merge-on-read", "copy-on-write"]),
    story=st.lists(steps, min_size=4, max_size=14),
)
def test_stale_changes_equal_a_serial_order(version: str, mode: str, story: list[Step]) -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        machine = Machine(lake, version, mode)
        for step in story:
            machine.run(step)
        machine.check()
