"""DELETE, UPDATE, MERGE, INSERT and compaction in several Spark sessions at the same time have a serial order.

Other processes append, compact and expire meanwhile.
"""

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import ConflictError, NotFoundError
from support.fixtures.seeds import seeded_random
from support.models.row_history import RowHistory, check_row_ids
from support.models.table_invariants import check_nothing_is_missing
from support.processes.row_operations import ATTEMPTS, OPERATION, ROWS, RowOperation, as_arrow, statement
from support.processes.writer_jobs import TABLE, Journal, Note, Step
from support.processes.writers import Writers

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

SESSIONS, EACH, IDS = 2, 4, 40
KINDS = ("merge", "update", "delete", "append", "upsert")
FIRST = RowOperation("append", 0, tuple(range(0, IDS, 2)))
CASES = [(3, "merge-on-read"), (2, "copy-on-write")][: 2 if "BERGLINE_EXAMPLES" in os.environ else 1]
RUN_CONF = f"spark.sql.iceberg.snapshot-property.{OPERATION}"


def as_step(operation: RowOperation) -> Step:
    return Step(kind="rows", ref=msgspec.json.encode(operation).decode(), change=operation.number)


class SessionWriter:
    """Runs statements in a session of its own, and notes them as the writers in other processes do."""

    def __init__(self, spark: SparkSession, lake: Lake, operations: list[RowOperation]) -> None:
        self._spark = spark.newSession()
        self._table = lake.load_table(TABLE)
        self._operations = operations
        bergline.spark.attach(self._spark, lake)
        self.notes: list[Note] = []

    def run(self) -> None:
        try:
            for operation in self._operations:
                self._note("begin", operation, 0.0)
                started = time.perf_counter()
                what = "done" if self._carried_out(operation) else "conflict"
                self._note(what, operation, time.perf_counter() - started)
        finally:
            bergline.spark.detach(self._spark)

    def _carried_out(self, operation: RowOperation) -> bool:
        self._spark.conf.set(RUN_CONF, str(operation.number))
        for _ in range(ATTEMPTS):
            try:
                self._spark.sql(statement(operation, TABLE)).collect()
            except ConflictError:
                continue
            except NotFoundError as error:
                if error.kind != "file":
                    raise
                continue  # expired while it was read
            return True
        return False

    def _note(self, what: str, operation: RowOperation, seconds: float) -> None:
        head = self._table.refresh().metadata.current_snapshot_id
        self.notes.append(Note(what, as_step(operation), seconds, head=head))


def operations(writer: int) -> list[RowOperation]:
    chance = seeded_random(writer)
    found = []
    for number in range(EACH):
        own, low = writer * 1000 + number + 1, chance.randrange(IDS)
        kind = KINDS[(writer + number) % len(KINDS)]
        if kind in {"delete", "update"}:
            least = chance.randrange(9)
            found.append(RowOperation(kind, own, low=low, high=low + chance.randrange(3, 20), least=least))
        else:
            found.append(RowOperation(kind, own, tuple(sorted(chance.sample(range(IDS), 5)))))
    return found


def beside() -> list[list[Step]]:
    """What other processes do: append, compact, and expire."""
    return [
        [as_step(RowOperation("append", 50_001 + number, (number, number + 9))) for number in range(EACH)],
        [as_step(RowOperation("compact", 60_001 + number)) for number in range(EACH)],
        [as_step(RowOperation("expire", 70_001 + number, least=1)) for number in range(EACH)],
    ]


@pytest.mark.parametrize(("version", "mode"), CASES)
def test_statements_of_several_sessions_have_a_serial_history(
    spark: SparkSession, lake: Lake, tmp_path: Path, version: int, mode: str
) -> None:
    properties = {"format-version": str(version), "write.metadata.previous-versions-max": "100000"}
    properties |= {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
    table = lake.create_table(TABLE, ROWS, partition_by=["part"], properties=properties)
    table.append(as_arrow(FIRST.new_rows))
    sessions = [SessionWriter(spark, lake, operations(writer)) for writer in range(SESSIONS)]
    with Writers(3) as others:
        uri = {"uri": f"sqlite:///{tmp_path}/catalog.db"}
        with ThreadPoolExecutor(SESSIONS) as threads:
            under_way = [threads.submit(session.run) for session in sessions]
            journal = others.run(uri, tmp_path / "journals", beside())
        for future in under_way:
            future.result()
    assert not journal.errors
    notes = [*journal.notes, *(note for session in sessions for note in session.notes)]
    check(table.refresh(), msgspec.structs.replace(journal, notes=notes), version)


def check(table: Table, journal: Journal, version: int) -> None:
    history = RowHistory(table, journal)
    history.check("serializable", first=Counter(FIRST.new_rows))
    done = [msgspec.json.decode(n.step["ref"], type=RowOperation).kind for n in journal.notes if n.what == "done"]
    assert {"merge", "update", "delete", "append", "compact", "expire"} <= set(done)
    check_nothing_is_missing(table)
    if version > 2:
        check_row_ids(table)
