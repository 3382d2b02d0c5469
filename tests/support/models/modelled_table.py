"""A table and its model, and what must hold of them after every step."""

from typing import Any

import msgspec
import pyarrow as pa

from bergline import Table
from bergline.format.metadata.snapshot import Snapshot
from support.models.refs_model import History, RefModel
from support.models.table_invariants import Entries, check_nothing_is_missing, pointer_line, unneeded_files


class ModelledTable(msgspec.Struct):
    """A table and its model."""

    table: Table
    history: History
    strays: set[str] = set()
    """Files that nothing needs, and that nobody has swept away."""
    staged: dict[str, int] = {}
    """Snapshots by the WAP ids that they were staged under."""
    read: set[int] = set()
    manifests: dict[str, Entries] = {}

    def ref(self, pick: int | str) -> str:
        """A ref by its name, or one of those that there are."""
        there = sorted(self.history.refs)
        return pick if isinstance(pick, str) else there[pick % len(there)]

    def snapshot(self, pick: int) -> int:
        """One of the snapshots that there are, oldest first."""
        there = sorted(self.history.retained, key=lambda i: (self.history.snapshots[i].at_ms, i))
        return there[pick % len(there)]

    def new_snapshots(self) -> list[Snapshot]:
        """Those that the model does not know yet, in the order in which they came."""
        return [s for s in self.table.metadata.snapshots if s.snapshot_id not in self.history.snapshots]

    def check(self) -> None:
        """The table as a new reader sees it has the refs, snapshots and rows of the model."""
        self.table.refresh()
        metadata, history = self.table.metadata, self.history
        refs = {
            n: RefModel(r.snapshot_id, r.is_branch, r.min_snapshots_to_keep, r.max_snapshot_age_ms, r.max_ref_age_ms)
            for n, r in metadata.refs.items()
        }
        assert refs == history.refs
        assert set(metadata.snapshots_by_id) == history.retained
        for snapshot in metadata.snapshots:
            model = history.snapshots[snapshot.snapshot_id]
            assert (snapshot.parent_snapshot_id, snapshot.timestamp_ms) == (model.parent, model.at_ms)
            parent = metadata.snapshots_by_id.get(model.parent or 0)
            if metadata.format_version > 1 and parent:
                assert snapshot.sequence_number > parent.sequence_number
        check_nothing_is_missing(self.table, self.manifests, merged=True)
        self.check_rows(history.retained - self.read)

    def check_rows(self, snapshot_ids: set[int]) -> None:
        """Snapshots have the rows of the model, and rows have ids of their own."""
        lineage = self.table.metadata.format_version > 2
        columns = ["n", "k", "_row_id"] if lineage else ["n", "k"]
        for snapshot_id in snapshot_ids:
            expected = self.history.snapshots[snapshot_id].rows
            found = self.table.scan(snapshot_id=snapshot_id, columns=columns).to_arrow().to_pylist()
            assert sorted(row["n"] for row in found) == sorted(expected), f"rows of snapshot {snapshot_id}"
            assert {row["n"]: row["k"] for row in found} == expected
            if lineage:
                assert len({row["_row_id"] for row in found} - {None}) == len(found)
            self.read.add(snapshot_id)

    def check_files(self) -> None:
        """Beside what snapshots need there is nothing but what is known to be left over."""
        assert unneeded_files(self.table) == self.strays

    def check_everything(self) -> None:
        """Everything is read again, each ref by its name and with its columns."""
        self.check()
        self.check_files()
        self.check_rows(self.history.retained)
        for name, ref in self.history.refs.items():
            model = self.history.snapshots[ref.head]
            found = self.table.scan(ref=name).to_arrow()
            assert numbers(found) == sorted(model.rows)
            assert found.column_names == list(self.history.columns if ref.is_branch else model.columns)
        if self.table.metadata.format_version > 1:
            pointer_line(self.table)


def numbers(rows: pa.Table) -> list[Any]:
    """The numbers of rows, sorted."""
    return sorted(rows.column("n").to_pylist())
