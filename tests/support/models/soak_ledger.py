"""What clients of a soak were told, written down by themselves, and what of it must be found in the lake afterwards."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO

import msgspec

from bergline import Lake, Table
from bergline.catalog.sql.records import AuditEntry, records_of
from bergline.format.metadata.table_metadata import TableMetadata
from support.models.table_invariants import check_nothing_is_missing, pointer_line


class SoakOutcome(StrEnum):
    """What a client knows about its change."""

    DONE = "done"
    REFUSED = "refused"
    PERHAPS = "perhaps"


class SoakChange(msgspec.Struct, frozen=True):
    """One change of one row; times are of the clock that all processes share."""

    client: str
    table: str
    adds: bool
    """Whether the row was added; otherwise it was deleted."""
    row: int
    began: float
    ended: float
    outcome: SoakOutcome
    why: str = ""


class SoakLedger:
    """A file of one client, a line for each change."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("ab", buffering=0)

    def add(self, change: SoakChange) -> None:
        """Write a change down."""
        self._file.write(msgspec.json.encode(change) + b"\n")


class LedgerReader:
    """Reads what the clients write, on and on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self.changes: list[SoakChange] = []

    def read_on(self) -> None:
        """Read what was written since."""
        for path in self._directory.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                self._read[path] = self._read.get(path, 0) + len(whole) + 1
                self.changes += [msgspec.json.decode(line, type=SoakChange) for line in whole.split(b"\n")]

    def since(self, moment: float) -> list[SoakChange]:
        """The changes that began after a moment, in the order of their ends."""
        return sorted((c for c in self.changes if c.began >= moment), key=lambda c: c.ended)


def check_lake(lake: Lake, changes: Sequence[SoakChange], tables: Iterable[str], *, unserved: str) -> Iterator[str]:
    """What is wrong, in words; nothing if every table is as its ledger says.

    Tables whose names begin with `unserved` are committed to without a server, and have no audit rows.
    """
    by_table: dict[str, list[SoakChange]] = defaultdict(list)
    for change in changes:
        by_table[change.table].append(change)
    audit: dict[str, list[AuditEntry]] = defaultdict(list)
    for entry in records_of(lake.catalog).audit():
        audit[entry.resource].append(entry)
    positions = [event.position for event in lake.events()]
    if positions != list(range(positions[0], positions[0] + len(positions))):
        yield "the positions of events have gaps"
    for name in tables:
        table = lake.load_table(name)
        namespace, _, short = name.rpartition(".")
        rows = None if name.startswith(unserved) else audit[f"table/{namespace}/{short}"]
        for wrong in check_table(lake, table, by_table[name], rows):
            yield f"{name}: {wrong}"


def check_table(
    lake: Lake, table: Table, changes: Sequence[SoakChange], audit: Sequence[AuditEntry] | None
) -> Iterator[str]:
    """What is wrong with one table; without audit rows it need not have any."""
    yield from _check_rows(table, changes)
    try:
        check_nothing_is_missing(table)
        line = pointer_line(table)
    except (AssertionError, Exception) as error:  # noqa: BLE001  (said with the table's name, beside what else is wrong)
        yield f"{type(error).__name__}: {error}"
        return
    yield from _check_history(table.metadata)
    if audit is not None:
        yield from _check_records(lake, table, line, audit)
    commits, told = len(table.metadata.snapshots), Counter(change.outcome for change in changes)
    if not told[SoakOutcome.DONE] <= commits <= told[SoakOutcome.DONE] + told[SoakOutcome.PERHAPS]:
        yield f"{commits} snapshots for {told[SoakOutcome.DONE]} commits that were done and {told} in all"


def _check_rows(table: Table, changes: Sequence[SoakChange]) -> Iterator[str]:
    found = Counter[int](table.scan().to_arrow()["id"].to_pylist())
    if doubled := [row for row, times in found.items() if times > 1]:
        yield f"rows are there more than once: {doubled[:10]}"
    adds = {c.row: c.outcome for c in changes if c.adds}
    deletes: dict[int, set[SoakOutcome]] = defaultdict(set)
    for change in changes:
        if not change.adds:
            deletes[change.row].add(change.outcome)
    gone = {row for row, outcomes in deletes.items() if SoakOutcome.DONE in outcomes}
    perhaps_gone = {row for row, outcomes in deletes.items() if SoakOutcome.PERHAPS in outcomes}
    done = {row for row, outcome in adds.items() if outcome is SoakOutcome.DONE}
    refused = {row for row, outcome in adds.items() if outcome is SoakOutcome.REFUSED}
    if lost := done - found.keys() - gone - perhaps_gone:
        yield f"rows that were acknowledged are lost: {sorted(lost)[:10]}"
    if there := refused & found.keys():
        yield f"rows that were refused are there: {sorted(there)[:10]}"
    if unknown := found.keys() - adds.keys():
        yield f"rows are there that nobody added: {sorted(unknown)[:10]}"
    if back := gone & found.keys():
        yield f"rows are there whose deletion was acknowledged: {sorted(back)[:10]}"


def _check_history(metadata: TableMetadata) -> Iterator[str]:
    """One line of snapshots, numbered without gaps, whose totals follow from what each added and deleted."""
    snapshots = sorted(metadata.snapshots, key=lambda s: s.sequence_number)
    if [s.sequence_number for s in snapshots] != list(range(1, len(snapshots) + 1)):
        yield "sequence numbers of snapshots are not 1, 2, 3, …"
    parents = [None, *(s.snapshot_id for s in snapshots)]
    if [s.parent_snapshot_id for s in snapshots] != parents[:-1] or metadata.current_snapshot_id != parents[-1]:
        yield "snapshots are not one line that ends at the current one"
    for what in ("records", "data-files", "delete-files", "position-deletes"):
        total = 0
        for snapshot in snapshots:
            summary = snapshot.summary
            added, removed = ("added", "deleted") if what in {"records", "data-files"} else ("added", "removed")
            total += int(summary.get(f"{added}-{what}", 0)) - int(summary.get(f"{removed}-{what}", 0))
            if int(summary.get(f"total-{what}", 0)) != total:
                yield f"total-{what} of snapshot {snapshot.snapshot_id} is not {total}: {dict(summary)}"
                break


def _check_records(
    lake: Lake, table: Table, line: Sequence[TableMetadata], audit: Sequence[AuditEntry]
) -> Iterator[str]:
    """As many audit rows of each version as it has new snapshots, and one event of each snapshot, in their order."""
    locations = [e.metadata_file for e in table.metadata.metadata_log] + [table.metadata_location]
    expected = [locations[0]]
    for place in range(1, len(line)):
        expected += [locations[place]] * (len(line[place].snapshots) - len(line[place - 1].snapshots))
    if [e.metadata_location for e in audit] != expected:
        found = Counter(e.metadata_location for e in audit)
        missing, extra = Counter(expected) - found, found - Counter(expected)
        yield f"audit rows are not those of its versions: missing {dict(missing)}, too many {dict(extra)}"
    events = [e for e in lake.events(table=table.name) if e.type in {"table.create", "table.commit"}]
    if [e.data["metadata-location"] for e in events] != expected:
        yield "the locations of events are not those of its versions"
    snapshots = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number)
    if [e.data.get("snapshot-id") for e in events[1:]] != [str(s.snapshot_id) for s in snapshots]:
        yield "events are not one of each snapshot, in their order"
