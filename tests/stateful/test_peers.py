"""bergline, PyIceberg and the official runtime append to one table at the same time: nothing that was said is lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from bergline import Lake, Table
from support.models.table_invariants import check_nothing_is_missing, pointer_line
from support.processes.writer_jobs import CHANGES, PARTS, TABLE, Step, change_rows
from support.processes.writers import Writers
from support.servers.peers import OfficialRuntime

EACH = 20
OURS, OFFICIAL, PYICEBERG = (0, 1000), 2000, 3000
Said = tuple[set[int], set[int]]
"""Changes that were said to be done, and those that ended in an error."""

_INSERTS = """
done, failed = [], []
change = first
while len(done) < count and len(failed) < 10 * count:
    change += 1
    rows = ", ".join(f"(CAST({change} AS BIGINT), {part})" for part in range(parts))
    try:
        spark.sql(f"INSERT INTO {table} VALUES {rows}")
        done.append(change)
    except Exception as error:
        failed.append(change)
result = [done, failed]
"""


def official_appends(runtime: OfficialRuntime) -> Said:
    """Java gives up after four retries, and says so: then another change is tried."""
    done, failed = runtime.python(_INSERTS, first=OFFICIAL, count=EACH, parts=PARTS, table=TABLE)
    return set(done), set(failed)


def pyiceberg_appends(catalog: Catalog) -> Said:
    """PyIceberg hardly retries: most of its commits fail beside other writers, and say so."""
    done: set[int] = set()
    failed: set[int] = set()
    change = PYICEBERG
    while len(done) < EACH and len(failed) < 100 * EACH:
        change += 1
        try:
            catalog.load_table(TABLE).append(change_rows(change))
        except CommitFailedException:
            failed.add(change)
        else:
            done.add(change)
    return done, failed


def changes(table: Table) -> dict[int, int]:
    found: dict[int, int] = {}
    for change in table.scan().to_arrow()["change"].to_pylist():
        found[change] = found.get(change, 0) + 1
    return found


@pytest.mark.official
def test_three_kinds_of_writers_on_one_table(
    tmp_path: Path,
    lake: Lake,
    writers: Writers,
    official: Callable[[str], list[tuple[Any, ...]]],
    official_runtime: OfficialRuntime,
    pyiceberg: Catalog,
    took: Callable[[object], None],
) -> None:
    table = lake.create_table(TABLE, CHANGES).append(change_rows(-1))
    assert official(f"SELECT count(*) FROM {TABLE}") == [(PARTS,)]
    plans = [[Step(kind="append", ref="main", change=first + n) for n in range(EACH)] for first in OURS]
    shared = {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    with ThreadPoolExecutor(2) as threads:
        theirs = [threads.submit(official_appends, official_runtime), threads.submit(pyiceberg_appends, pyiceberg)]
        journal = writers.run(shared, tmp_path / "journals", plans)
        said = [peer.result() for peer in theirs]
    took(journal)
    for name, (done, failed) in zip(("official", "PyIceberg"), said, strict=True):
        took(f"{name}: {len(done)} done, {len(failed)} given up")
    assert not journal.errors
    ours = {s["change"] for s in journal.steps("done", "append")}
    assert [len(ours), *(len(done) for done, _ in said)] == [len(OURS) * EACH, EACH, EACH]

    table.refresh()
    found = changes(table)
    assert set(found.values()) == {PARTS}
    acknowledged = ours.union({-1}, *(done for done, _ in said))
    assert acknowledged <= found.keys() <= acknowledged.union(*(failed for _, failed in said))
    check_nothing_is_missing(table)
    assert len(table.metadata.snapshots) == len(found)
    assert len(pointer_line(table)) <= 1 + len(found)  # ours that waited together are one version
    assert sorted(official(f"SELECT change, count(*) FROM {TABLE} GROUP BY change")) == sorted(found.items())
    assert pyiceberg.load_table(TABLE).scan().to_arrow().num_rows == PARTS * len(found)
