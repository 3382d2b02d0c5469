"""The steps that writers carry out and their journals: each step is one commit, to be found in the table."""

from collections import Counter
from typing import TypedDict

import msgspec
import pyarrow as pa

from bergline import MaintenancePolicy

TABLE = "db.changes"
TWIN = "db.twin"
CHANGES = pa.schema([pa.field("change", pa.int64(), nullable=False), pa.field("part", pa.int32(), nullable=False)])
PARTS = 2
BUSY_POLICY = MaintenancePolicy(
    compaction_min_input_files=2, manifests_min_count=2, max_snapshot_age_ms=1, min_snapshots_to_keep=10
)


class Step(TypedDict):
    """One change: its number is unique in the run; `ref` is the branch, tag or property that it is about."""

    kind: str
    ref: str
    change: int


class Note(msgspec.Struct, frozen=True):
    """A line of a journal: a step was begun, is done for certain, or failed with a conflict."""

    what: str
    step: Step
    seconds: float = 0.0
    lost_attempts: int = 0
    head: int | None = None
    """Of a step about rows: the snapshot that was current then."""


class Journal(msgspec.Struct, frozen=True):
    """All that the writers of a run noted."""

    notes: list[Note]
    errors: list[str]
    asked: int
    killed: int
    seconds: float

    def steps(self, what: str, *kinds: str) -> list[Step]:
        """The steps of some kinds that were begun, done or in conflict."""
        return [n.step for n in self.notes if n.what == what and n.step["kind"] in kinds]

    def __str__(self) -> str:
        ended = Counter(n.what for n in self.notes)
        done = [n for n in self.notes if n.what == "done"]
        attempts = sum(n.lost_attempts for n in self.notes) / max(len(done), 1) + 1
        times = sorted(n.seconds for n in done)
        return (
            f"{len(done)} of {self.asked} in {self.seconds:.1f} s ({len(done) / self.seconds:.0f} a second), "
            f"{attempts:.1f} attempts each, median {times[len(times) // 2] * 1000:.0f} ms, slowest {times[-1]:.1f} s"
            + (f", {ended['conflict']} conflicts" if ended["conflict"] else "")
            + (f", {self.killed} killed" if self.killed else "")
        )


def change_rows(change: int) -> pa.Table:
    """The rows of one change: all of them are in a table, or none."""
    return pa.table({"change": [change] * PARTS, "part": list(range(PARTS))}, schema=CHANGES)
