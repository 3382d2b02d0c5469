"""Replicas on one PostgreSQL, all killed again and again under load; and that what would be wrong is found."""

import os
import re
import subprocess
import sys

import pyarrow as pa
import pytest

from bergline import Lake
from support.models.soak_ledger import SoakChange, SoakOutcome, check_table
from support.paths import ROOT
from support.processes.soak_client import KINDS

MINUTES = max(0.6, int(os.environ.get("BERGLINE_EXAMPLES", "0")) / 100)


def change(row: int, outcome: SoakOutcome, *, adds: bool = True) -> SoakChange:
    return SoakChange("append-0", "db.t", adds, row, 0.0, 1.0, outcome)


@pytest.mark.server
@pytest.mark.timeout(1200)
def test_nothing_is_lost_or_doubled_while_replicas_and_the_database_are_killed() -> None:
    options = ["--minutes", str(MINUTES), "--replicas", "2", "--clients", str(len(KINDS)), "--recovery", "60"]
    seed = os.environ.get("BERGLINE_SEED", "0")
    program = [sys.executable, str(ROOT / "tools" / "soak.py"), *options, "--seed", seed]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(
        r"^soak: (\d+) kills, ([\d,]+) changes, nothing lost, nothing doubled$", done.stdout, re.MULTILINE
    )
    assert found, done.stdout
    assert int(found[1]) > 0
    assert set(re.findall(r"^\| (\w+) \| [1-9]", done.stdout, re.MULTILINE)) >= set(KINDS)


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ([change(1, SoakOutcome.DONE), change(2, SoakOutcome.DONE), change(4, SoakOutcome.DONE)], r"lost: \[4\]"),
        ([change(1, SoakOutcome.DONE), change(2, SoakOutcome.REFUSED)], r"refused are there: \[2\]"),
        ([change(1, SoakOutcome.DONE)], r"nobody added: \[2\]"),
        ([change(2, SoakOutcome.DONE), change(2, SoakOutcome.DONE, adds=False)], r"deletion was acknowledged: \[2\]"),
        ([change(1, SoakOutcome.DONE), change(2, SoakOutcome.DONE)], "more than once"),
    ],
)
def test_rows_that_are_not_as_clients_were_told_are_found(lake: Lake, told: list[SoakChange], wrong: str) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    if "once" in wrong:
        table.append([{"id": 2}])
    assert any(re.search(wrong, said) for said in check_table(lake, table, told, ()))


def test_commits_without_audit_rows_and_events_are_found(lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append([{"id": 1}])
    said = list(check_table(lake, table, [change(1, SoakOutcome.DONE)], ()))
    assert [line.split(":")[0] for line in said] == [
        "audit rows are not those of its versions",
        "the locations of events are not those of its versions",
        "events are not one of each snapshot, in their order",
    ]


def test_missing_files_are_found(lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    lake.catalog.io.delete(table.metadata.snapshots[0].manifest_list or "")
    assert any("missing" in said for said in check_table(lake, table, [], ()))
