"""A writer in a process of its own: jobs as JSON lines on stdin, a response for each on stdout.

Every change is written to the job's journal when it begins and, durably, after its commit has returned.
"""

import datetime as dt
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import msgspec

import bergline
from bergline import Lake, Table
from bergline.errors import BerglineError, ConflictError
from bergline.table.commits.retry import Timing
from support.processes.row_operations import run_operation
from support.processes.writer_jobs import BUSY_POLICY, TABLE, TWIN, Note, Step, change_rows


class Writer:
    """Keeps its lakes open from job to job, and counts the waits: each is one attempt that lost."""

    def __init__(self) -> None:
        self._lakes: dict[str, Lake] = {}
        self._waits = 0

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Carry out the steps of a job one after the other; errors other than conflicts are returned."""
        lake = self._lake(job["lake"])
        table = lake.load_table(TABLE)
        errors = []
        with Path(job["journal"]).open("a") as journal:
            for step in job["steps"]:
                before = _head(table, step)
                _note(journal, Note("begin", step, head=before))
                started, self._waits = time.perf_counter(), 0
                try:
                    if step["kind"] in _LAKE_CHANGES:
                        _LAKE_CHANGES[step["kind"]](lake, step)
                    else:
                        _CHANGES[step["kind"]](table, step)
                    what = "done"
                except ConflictError:
                    what = "conflict"
                except BerglineError as error:
                    what = "error"
                    errors.append(f"{step}: {type(error).__name__}: {error}")
                seconds = time.perf_counter() - started
                _note(journal, Note(what, step, seconds, self._waits, _head(table, step)))
        return {"errors": errors}

    def _lake(self, where: dict[str, Any]) -> Lake:
        key = json.dumps(where)
        if key not in self._lakes:
            opened = bergline.connect(**where)
            self._lakes[key] = Lake(opened.catalog, opened.name, timing=Timing(sleep=self._wait))
        return self._lakes[key]

    def _wait(self, seconds: float) -> None:
        self._waits += 1
        time.sleep(seconds)


def _head(table: Table, step: Step) -> int | None:
    """The snapshot that a step about rows begins or ends with."""
    return table.refresh().metadata.current_snapshot_id if step["kind"] == "rows" else None


def _note(journal: TextIO, note: Note) -> None:
    journal.write(msgspec.json.encode(note).decode() + "\n")
    journal.flush()
    os.fsync(journal.fileno())


def _append(table: Table, step: Step) -> None:
    table.append(change_rows(step["change"]), branch=step["ref"])


def _overwrite(table: Table, step: Step) -> None:
    table.overwrite(change_rows(step["change"]), branch=step["ref"])


def _delete(table: Table, step: Step) -> None:
    table.delete(f"change = {step['change'] - 1}", branch=step["ref"])


def _tag(table: Table, step: Step) -> None:
    table.refs.create_tag(step["ref"])


def _property(table: Table, step: Step) -> None:
    table.set_properties({step["ref"]: str(step["change"])})


def _column(table: Table, step: Step) -> None:
    with table.update_schema() as schema:
        schema.add_column(step["ref"], "int")


def _compact(table: Table, step: Step) -> None:
    table.compact(branch=step["ref"])


def _rewrite_manifests(table: Table, step: Step) -> None:
    table.rewrite_manifests(branch=step["ref"])


def _transaction(lake: Lake, step: Step) -> None:
    with lake.transaction() as transaction:
        transaction.load_table(TABLE).append(change_rows(step["change"]), branch=step["ref"])
        transaction.load_table(TWIN).append(change_rows(step["change"]), branch=step["ref"])


def _publish(lake: Lake, step: Step) -> None:
    """Rows for both tables, each in a commit of its own on a branch, published as one."""
    tables = [TABLE, TWIN]
    lake.branch(step["ref"], tables)
    for name in tables:
        lake.load_table(name).append(change_rows(step["change"]), branch=step["ref"])
    lake.publish(step["ref"], tables=tables, merge=True)


def _expire(table: Table, _: Step) -> None:
    table.expire(older_than=dt.datetime.now(dt.UTC), retain_last=10)


def _maintain(lake: Lake, _: Step) -> None:
    """All tables, with a policy by which there is always something to do."""
    report = bergline.maintain(lake, BUSY_POLICY)
    if not report.ok:
        raise BerglineError(str(report))


_LAKE_CHANGES: dict[str, Callable[[Lake, Step], None]] = {
    "transaction": _transaction,
    "publish": _publish,
    "maintain": _maintain,
}


def _rows(table: Table, step: Step) -> None:
    """An operation on rows, which is the step's `ref` as JSON."""
    run_operation(table, step["ref"])


_CHANGES: dict[str, Callable[[Table, Step], None]] = {
    "rows": _rows,
    "append": _append,
    "overwrite": _overwrite,
    "delete": _delete,
    "tag": _tag,
    "property": _property,
    "column": _column,
    "compact": _compact,
    "rewrite manifests": _rewrite_manifests,
    "expire": _expire,
}


def main() -> None:
    writer = Writer()
    respond = partial(print, flush=True)
    respond(json.dumps({"ready": True}))
    for line in sys.stdin:
        respond(json.dumps(writer.run(json.loads(line))))


if __name__ == "__main__":
    main()
