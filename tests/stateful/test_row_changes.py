"""DELETE, UPDATE, MERGE, appends, compaction and expiry in processes of their own on one table, in a serial order."""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import bergline
from bergline import Lake
from bergline.table.engine.arrow_engine import ArrowRowEngine
from support.fixtures.seeds import seeded_random
from support.models.row_history import RowHistory, check_row_ids
from support.models.table_invariants import check_nothing_is_missing
from support.processes.row_operations import OPERATION, ROWS, RowOperation, as_arrow
from support.processes.writer_jobs import TABLE, Journal, Note, Step
from support.processes.writers import Writers

pytestmark = pytest.mark.long

EACH = min(int(os.environ.get("BERGLINE_EXAMPLES", "6")), 150)  # every version of the table names all before it
IDS = 60
KINDS = ("append", "delete", "update", "upsert", "merge")
CHANGERS = 5
FIRST = RowOperation("append", 0, tuple(range(0, IDS, 2)))
ROW_LINEAGE = 3


def plans(chance: random.Random, *, forget_files: bool) -> list[list[Step]]:
    """Writers that change rows, each in a mix of its own, one that compacts, and one that expires."""

    def operation(writer: int, number: int) -> RowOperation:
        own = writer * 100_000 + number + 1
        low = chance.randrange(IDS)
        ids = tuple(sorted(chance.sample(range(IDS), 6)))
        if writer == CHANGERS:
            return RowOperation(("compact", "compact", "manifests")[number % 3], own)
        if writer == CHANGERS + 1:
            return RowOperation("expire", own, least=int(forget_files))
        match KINDS[(writer + number) % len(KINDS)]:
            case "append":
                return RowOperation("append", own, ids[:3])
            case "delete" | "update" as kind:
                return RowOperation(kind, own, low=low, high=low + chance.randrange(3, 25), least=chance.randrange(9))
            case kind:
                return RowOperation(kind, own, ids)

    changes = [[operation(writer, number) for number in range(EACH)] for writer in range(CHANGERS + 2)]
    tags = [Step(kind="tag", ref=f"kept-{number}", change=number) for number in range(EACH)]
    return [
        *(
            [Step(kind="rows", ref=msgspec.json.encode(one).decode(), change=one.number) for one in own]
            for own in changes
        ),
        tags,
    ]


Isolation = Literal["serializable", "snapshot"]
CASES: dict[str, tuple[str, int, str, Isolation, int]] = {
    "v2 copy-on-write": ("sqlite", 2, "copy-on-write", "serializable", 0),
    "v2 merge-on-read, snapshot isolation": ("sqlite", 2, "merge-on-read", "snapshot", 0),
    "v3 merge-on-read, killed": ("sqlite", 3, "merge-on-read", "serializable", 4),
    "v3 copy-on-write, snapshot isolation": ("postgres", 3, "copy-on-write", "snapshot", 0),
}


@pytest.mark.parametrize(
    ("shared", "version", "mode", "isolation", "kills"), CASES.values(), ids=CASES, indirect=["shared"]
)
def test_rows_that_many_change_have_a_serial_history(
    writers: Writers,
    shared: dict[str, Any],
    tmp_path: Path,
    took: Callable[[object], None],
    version: int,
    mode: str,
    isolation: Isolation,
    kills: int,
) -> None:
    properties = {"format-version": str(version), "write.metadata.previous-versions-max": "100000"}
    for command in ("delete", "update", "merge"):
        properties |= {f"write.{command}.mode": mode, f"write.{command}.isolation-level": isolation}
    with bergline.connect(**shared, create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table(TABLE, ROWS, partition_by=["part"], properties=properties)
        table.append(as_arrow(FIRST.new_rows))
        # who looks at all states afterwards needs their files
        asked = plans(seeded_random(version), forget_files=isolation == "serializable")
        journal = writers.run(shared, tmp_path / "journals", asked, kills=kills)
        took(journal)
        assert not journal.errors
        history = RowHistory(table.refresh(), journal)
        states = history.check(isolation, first=Counter(FIRST.new_rows))
        assert len(states) > EACH
        check_nothing_is_missing(table)
        if version == ROW_LINEAGE:
            check_row_ids(table)


class InterruptedEngine(ArrowRowEngine):
    """Lets another operation be committed while rows are rewritten."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def rewrite(self, *arguments: Any) -> Any:
        self._meanwhile()
        return super().rewrite(*arguments)


def test_history_without_isolation_is_found_out(lake: Lake, tmp_path: Path) -> None:
    """The check itself: a delete that overlooks rows which others added meanwhile has no serial order."""
    table = lake.create_table(TABLE, ROWS, properties={"write.metadata.previous-versions-max": "1000"})
    table.append(as_arrow(FIRST.new_rows))
    start = table.metadata.current_snapshot_id
    append, delete = RowOperation("append", 1, (5, 7)), RowOperation("delete", 2, low=0, high=10)

    def meanwhile() -> None:
        lake.load_table(TABLE).append(as_arrow(append.new_rows), summary={OPERATION: "1"})

    table.delete(delete.condition, isolation="none", engine=InterruptedEngine(meanwhile), summary={OPERATION: "2"})
    notes = [
        Note(what, Step(kind="rows", ref=msgspec.json.encode(one).decode(), change=one.number), head=head)
        for one in (append, delete)
        for what, head in (("begin", start), ("done", table.metadata.current_snapshot_id))
    ]
    history = RowHistory(table.refresh(), Journal(notes, [], 2, 0, 1.0))
    history.check("snapshot", first=Counter(FIRST.new_rows))
    with pytest.raises(AssertionError, match="too much"):
        history.check("serializable", first=Counter(FIRST.new_rows))
    doubled = [*notes, Note("conflict", notes[0].step, head=start)]
    with pytest.raises(AssertionError):
        RowHistory(table, Journal(doubled, [], 2, 0, 1.0)).check("snapshot", first=Counter(FIRST.new_rows))
