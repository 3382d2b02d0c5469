"""Maintainers in several processes on one lake, beside writers: nothing is lost, and they come to an end."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from support.models.table_invariants import check_nothing_is_missing, pointer_line
from support.processes.writer_jobs import BUSY_POLICY, CHANGES, PARTS, TABLE, TWIN, Journal, Step, change_rows
from support.processes.writers import Writers

pytestmark = pytest.mark.long

MAINTAINERS = 2
EACH = min(int(os.environ.get("BERGLINE_EXAMPLES", "10")), 150)
KINDS = [("append", "main"), ("append", "main"), ("delete", "main"), ("append", "w{}"), ("transaction", "main")]


def plans() -> list[list[Step]]:
    """Three writers, and maintainers that do nothing else."""

    def steps(writer: int, kinds: list[tuple[str, str]]) -> list[Step]:
        chosen = [kinds[number % len(kinds)] for number in range(EACH)]
        return [
            Step(kind=kind, ref=ref.format(writer), change=writer * 10_000 + number)
            for number, (kind, ref) in enumerate(chosen)
        ]

    return [
        *(steps(writer, KINDS) for writer in range(3)),
        *(steps(writer, [("maintain", "")]) for writer in range(3, 3 + MAINTAINERS)),
    ]


@pytest.mark.parametrize(("shared", "kills"), [("postgres", 0), ("sqlite", 4)], indirect=["shared"])
def test_maintainers_beside_writers(
    writers: Writers, shared: dict[str, Any], tmp_path: Path, took: Callable[[object], None], kills: int
) -> None:
    with bergline.connect(**shared, create=True) as lake:
        lake.create_namespace("db")
        properties = {"bergline.maintain.branches": "main, w*", "commit.manifest-merge.enabled": "false"}
        tables = [lake.create_table(name, CHANGES, properties=properties) for name in (TABLE, TWIN)]
        for table in tables:
            table.append(change_rows(-1))
        journal = writers.run(shared, tmp_path / "journals", plans(), kills=kills)
        took(journal)
        assert not journal.errors
        for table in tables:
            pointer_line(table.refresh())
            check_nothing_is_missing(table)
        check_rows(*tables, journal)
        assert journal.steps("done", "maintain")
        check_nothing_is_left_to_do(lake, tables)
        check_rows(*tables, journal)


def check_rows(table: Table, twin: Table, journal: Journal) -> None:
    """What was done is there once; what was only begun is there whole or not at all; nothing else is."""
    deleted = {s["change"] - 1 for s in journal.steps("begin", "delete")}
    for branch in ["main", *(name for name in table.refs if name != "main")]:
        done = {s["change"] for s in journal.steps("done", "append", "transaction") if s["ref"] == branch}
        begun = {s["change"] for s in journal.steps("begin", "append", "transaction") if s["ref"] in {branch, "main"}}
        found = Counter(table.scan(ref=branch).to_arrow()["change"].to_pylist())
        assert set(found.values()) == {PARTS}
        assert done - deleted <= found.keys() <= begun | {-1}
        gone = {s["change"] - 1 for s in journal.steps("done", "delete") if s["ref"] == branch}
        assert found.keys().isdisjoint(gone)
    in_both = {s["change"] for s in journal.steps("begin", "transaction")} & _changes(table).keys()
    assert _changes(twin) == Counter(dict.fromkeys([-1, *in_both], PARTS))


def check_nothing_is_left_to_do(lake: Lake, tables: list[Table]) -> None:
    """A last run finishes what those that were killed left; the next one finds nothing, and changes nothing."""
    assert bergline.maintain(lake, BUSY_POLICY).ok
    before = [table.refresh().metadata_location for table in tables]
    report = bergline.maintain(lake, BUSY_POLICY)
    assert {step.status.value for table in report.tables for step in table.steps} == {"nothing to do"}, str(report)
    assert [table.refresh().metadata_location for table in tables] == before
    for table in tables:
        check_nothing_is_missing(table)


def _changes(table: Table) -> Counter[int]:
    return Counter(table.scan().to_arrow()["change"].to_pylist())
